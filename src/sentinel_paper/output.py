"""What an experiment leaves in its folder: a figure, the numbers as CSV, and a page in Markdown."""

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from sentinel_paper.claims import Finding
from sentinel_paper.registry import find
from sentinel_rl import __version__
from sentinel_rl.cli import figures
from sentinel_rl.cli.files import write_atomically

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Page:
    """The text of an experiment: what is computed, the numbers worth reading, and what they mean."""

    name: str
    settings: Any
    setup: str
    results: Sequence[Row]
    findings: Sequence[Finding]
    words: str

    def markdown(self) -> str:
        """The page."""
        experiment = find(self.name)
        return (
            "\n\n".join(
                [
                    f"# {experiment.title}",
                    f"In the paper: {experiment.where}. Made by `{command(self.name, self.settings)}` "
                    f"with sentinel-rl {__version__}.",
                    self.setup,
                    f"![{experiment.title}]({self.name}.png)",
                    "## What came out",
                    table(self.results),
                    f"All numbers: [{self.name}.csv]({self.name}.csv).",
                    "## What the paper says, and whether it holds",
                    *(_paragraph(finding) for finding in self.findings),
                    "## In plain words",
                    self.words,
                    "",
                ]
            ).rstrip("\n")
            + "\n"
        )


def publish(page: Page, drawing: Figure, numbers: Sequence[Row], out: Path) -> list[Path]:
    """Write figure, numbers and page; every file is complete or not there."""
    return [
        *figures.save(drawing, out / page.name),
        write_atomically(out / f"{page.name}.csv", csv_text(numbers)),
        write_atomically(out / f"{page.name}.md", page.markdown()),
    ]


def command(name: str, settings: Any) -> str:
    """The command line that gives these records again."""
    options = [f"--{option} {getattr(settings, option)}" for option in ("runs", "seed") if hasattr(settings, option)]
    return " ".join(["sentinel reproduce", name, *options])


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


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table, numbers with three decimals.

    Example:
        >>> print(table([{"alpha": 0.25, "total": -1 / 3}]))
        | alpha | total |
        | ---: | ---: |
        | 0.250 | -0.333 |
    """
    lines = [list(rows[0]), ["---:"] * len(rows[0])]
    lines += [[_cell(value, ".3f") for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any, form: str) -> str:
    return value if isinstance(value, str) else f"{value:d}" if isinstance(value, int) else format(value, form)


def _paragraph(finding: Finding) -> str:
    claim = finding.claim
    return f"> {claim.text} ({claim.where})\n\n**{finding.verdict.capitalize()}**, {finding.setting}: {finding.reason}"
