"""What an experiment leaves in its folder: figures, the numbers as CSV, and a page as Markdown and as JSON."""

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from sentinel_paper.claims import Finding
from sentinel_paper.registry import find
from sentinel_rl import __version__, plotting
from sentinel_rl.storage.atomic import write_file

Row = Mapping[str, Any]
# Options of the command that settings may have, in the order of the command line.
_OPTIONS = ("runs", "steps", "preset", "seed")


@dataclasses.dataclass(frozen=True)
class Section:
    """A further part of a page: a heading, words, a table (or none), a figure (or none) by the name of its files."""

    title: str
    words: str = ""
    rows: Sequence[Row] = ()
    figure: str = ""

    def markdown(self) -> str:
        """The part."""
        parts = [
            f"## {self.title}",
            self.words,
            table(self.rows) if self.rows else "",
            f"![{self.title}]({self.figure}.png)" if self.figure else "",
        ]
        return "\n\n".join(part for part in parts if part)


@dataclasses.dataclass(frozen=True)
class Page:
    """The text of an experiment: what is computed, the numbers worth reading, and what they mean.

    `sections` follow the verdicts; `about` says where, with what and how long it was computed.
    """

    name: str
    settings: Any
    setup: str
    results: Sequence[Row]
    findings: Sequence[Finding]
    words: str
    sections: Sequence[Section] = ()
    about: Sequence[Row] = ()

    def markdown(self) -> str:
        """The page."""
        experiment = find(self.name)
        return (
            "\n\n".join(
                [
                    f"# {experiment.title}",
                    f"In the paper: {experiment.where}. Made by `{command(self.name, self.settings)}` "
                    f"with sentinel-rl {__version__}.",
                    *self._warning(),
                    self.setup,
                    f"![{experiment.title}]({self.name}.png)",
                    "## What came out",
                    table(self.results),
                    f"All numbers: [{self.name}.csv]({self.name}.csv).",
                    "## What the paper says, and whether it holds",
                    *(_paragraph(finding) for finding in self.findings),
                    "## In plain words",
                    self.words,
                    *(section.markdown() for section in self._parts()),
                    "",
                ]
            ).rstrip("\n")
            + "\n"
        )

    def data(self) -> dict[str, Any]:
        """The page as JSON knows it, for reports over several experiments."""
        experiment = find(self.name)
        return {
            "name": self.name,
            "title": experiment.title,
            "where": experiment.where,
            "command": command(self.name, self.settings),
            "version": __version__,
            "setup": "\n\n".join([*self._warning(), self.setup]),
            "results": [_told(row) for row in self.results],
            "findings": [
                {"claim": finding.claim.text, "where": finding.claim.where, "setting": finding.setting}
                | {"verdict": str(finding.verdict), "effect": finding.effect, "reason": finding.reason}
                for finding in self.findings
            ],
            "words": self.words,
            "sections": [
                {"title": part.title, "words": part.words, "figure": part.figure}
                | {"rows": [_told(row) for row in part.rows]}
                for part in self._parts()
            ],
        }

    def _warning(self) -> list[str]:
        tiny = "Made with `--quick`: it shows that all parts work, its numbers and verdicts mean nothing."
        return [tiny] if getattr(self.settings, "quick", False) else []

    def _parts(self) -> list[Section]:
        made = [Section("How it was made", rows=self.about)] if self.about else []
        return [*self.sections, *made]


def publish(page: Page, drawing: Figure, numbers: Sequence[Row], out: Path) -> list[Path]:
    """Write figure, numbers, and page in both forms; every file is complete or not there."""
    return [
        *plotting.save(drawing, out / page.name),
        write_file(out / f"{page.name}.csv", csv_text(numbers)),
        write_file(out / f"{page.name}.md", page.markdown()),
        write_file(out / f"{page.name}.json", json.dumps(page.data(), indent=1, ensure_ascii=False) + "\n"),
    ]


def command(name: str, settings: Any) -> str:
    """The command line that gives these records again."""
    options = [f"--{option} {getattr(settings, option)}" for option in _OPTIONS if hasattr(settings, option)]
    quick = ["--quick"] if getattr(settings, "quick", False) else []
    return " ".join(["sentinel reproduce", name, *quick, *options])


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV, numbers with ten significant digits.

    Example:
        >>> print(csv_text([{"alpha": 0.25, "total": -1 / 3}]), end="")
        alpha,total
        0.25,-0.3333333333
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([_cell(value, ".10g") for value in row.values()] for row in rows)
    return text.getvalue()


def table(rows: Sequence[Row], side: Literal["left", "right"] = "right") -> str:
    """Rows as a Markdown table, numbers with three decimals, cells on one side.

    Example:
        >>> print(table([{"alpha": 0.25, "total": -1 / 3}]))
        | alpha | total |
        | ---: | ---: |
        | 0.250 | -0.333 |
    """
    lines = [list(rows[0]), [{"left": "---", "right": "---:"}[side]] * len(rows[0])]
    lines += [[_cell(value, ".3f").replace("|", "\\|") for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _told(row: Row) -> dict[str, str]:
    return {column: _cell(value, ".3f") for column, value in row.items()}


def _cell(value: Any, form: str) -> str:
    return value if isinstance(value, str) else f"{value:d}" if isinstance(value, int) else format(value, form)


def _paragraph(finding: Finding) -> str:
    claim = finding.claim
    return f"> {claim.text} ({claim.where})\n\n**{finding.verdict.capitalize()}**, {finding.setting}: {finding.reason}"
