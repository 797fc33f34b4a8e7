"""The pages that users read, and the blocks of code in them.

A block is run as it is printed, unless a comment on the line before it says otherwise:

- ``<!-- long: OLD = NEW; OLD = NEW -->``: `make test` runs it with every OLD replaced by NEW, `make test-long` runs it
  as printed.
- ``<!-- long -->``: `make test` only compiles or parses it, `make test-long` runs it.
- ``<!-- needs PACKAGE -->``: `make test` only compiles it, `make test-clients` runs it.
- ``<!-- not run: REASON -->``: it is only compiled or parsed, because a test cannot run it.
- ``<!-- output -->`` before text: it is what the block of Python before it prints; ``...`` stands for anything.
- ``<!-- output, numbers vary -->``: likewise, but for the numbers, which are those of a training.

Any other comment before a block is left alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "pycon", "console", "bash", "text", "toml", "bibtex"}

_FENCE = re.compile(
    r"(?:^<!-- (?P<marker>[^\n]*?) -->\n\s*)?"
    r"^(?P<indent> *)```(?P<language>\S*)\n(?P<code>.*?)^(?P=indent)```$",
    flags=re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A fenced block of a page: its language, the number of its first line, and how it is to be run."""

    page: str
    line: int
    language: str
    code: str
    marker: str

    @property
    def runs(self) -> bool:
        """Whether a test can run it at all."""
        return not self.marker.startswith("not run:")

    @property
    def needs(self) -> str:
        """The package that it needs beside those of the light tests."""
        return self.marker.removeprefix("needs ") if self.marker.startswith("needs ") else ""

    @property
    def long(self) -> bool:
        """Whether it takes too long for the light tests as it is printed."""
        return self.marker.startswith("long")

    @property
    def replacements(self) -> list[tuple[str, str]]:
        """What makes a long block short."""
        pairs = self.marker.removeprefix("long").removeprefix(":").split(";") if self.long else []
        return [(old.strip(), new.strip()) for old, _, new in (pair.partition(" = ") for pair in pairs if pair.strip())]

    def shortened(self) -> "Block | None":
        """Return the block as the light tests run it, or None where they only read it."""
        if not self.long:
            return self if self.runs and not self.needs else None
        code = self.code
        for old, new in self.replacements:
            if not (old and new and old in code):
                raise ValueError(f"{self.page}:{self.line}: cannot replace {old!r} by {new!r}: it is not in the block")
            code = code.replace(old, new)
        return self._replace(code=code) if self.replacements else None


def name_of(page: Path) -> str:
    """How a page is called in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    text = page.read_text()
    return [
        Block(
            name_of(page),
            text.count("\n", 0, found.start("code")) + 1,
            found["language"],
            "\n".join(line.removeprefix(found["indent"]) for line in found["code"].splitlines()) + "\n",
            found["marker"] or "",
        )
        for found in _FENCE.finditer(text)
    ]


def commands_in(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the commands of a console or bash block with their lines; a backslash joins two lines."""
    prompt = "$ " if block.language == "console" else ""
    joined, first = "", 0
    for number, line in enumerate(block.code.splitlines(), start=block.line):
        if joined:
            joined += line.strip()
        elif line.startswith(prompt) and line.strip() and not line.startswith("#"):
            joined, first = line.removeprefix(prompt), number
        if joined.endswith("\\"):
            joined = joined.removesuffix("\\")
        elif joined:
            yield first, joined
            joined = ""


def inline_commands(page: Path) -> list[str]:
    """Return the commands that stand in the text of a page, between single backquotes."""
    prose = _FENCE.sub("", page.read_text())
    return [found.replace("\n", " ") for found in re.findall(r"(?<!`)`((?:sentinel|make|python) [^`]+)`", prose)]
