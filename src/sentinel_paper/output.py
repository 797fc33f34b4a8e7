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
from sentinel_paper.registry import BEYOND, find
from sentinel_rl import __version__, plotting
from sentinel_rl.storage.atomic import write_file

Row = Mapping[str, Any]
# Options of the command that settings may have, in the order of the command line.
OPTIONS = ("runs", "steps", "preset", "seed")
# Headings of every page.
RESULTS, CLAIMS, SUMMARY, ABOUT = "Results", "Claims and verdicts", "Summary", "How it was computed"
_TINY = "Made with `--quick`: it shows that all parts work, its numbers and verdicts mean nothing."


@dataclasses.dataclass(frozen=True)
class Section:
    """A further part of a page: a heading, words, a table (or none), a figure (or none) by the name of its files."""

    title: str
    words: str = ""
    rows: Sequence[Row] = ()
    figure: str = ""


@dataclasses.dataclass(frozen=True)
class Page:
    """The text of an experiment: what is computed, the numbers worth reading, and what they mean.

    `answer` comes before all else, where there is a short one; `sections` follow the verdicts; `about` says on which
    device, with which versions and in how many seconds it was computed.
    """

    name: str
    settings: Any
    setup: str
    results: Sequence[Row]
    findings: Sequence[Finding]
    words: str
    sections: Sequence[Section] = ()
    about: Sequence[Row] = ()
    answer: str = ""

    def data(self) -> dict[str, Any]:
        """The page as it is kept in JSON: all that `markdown` and the report over several experiments need."""
        experiment = find(self.name)
        about = [Section(ABOUT, rows=self.about)] if self.about else []
        return {
            "name": self.name,
            "title": experiment.title,
            "where": experiment.where,
            "command": command(self.name, self.settings),
            "options": {name: getattr(self.settings, name) for name in OPTIONS if hasattr(self.settings, name)},
            "quick": _quick(self.settings),
            "version": __version__,
            "answer": self.answer,
            "setup": f"{_TINY}\n\n{self.setup}" if _quick(self.settings) else self.setup,
            "results": [_as_text(row) for row in self.results],
            "findings": [
                {"name": finding.claim.name, "claim": finding.claim.text, "where": finding.claim.where}
                | {"setting": finding.setting, "verdict": str(finding.verdict)}
                | {"effect": finding.effect, "reason": finding.reason}
                for finding in self.findings
            ],
            "words": self.words,
            "sections": [
                {"title": part.title, "words": part.words, "figure": part.figure}
                | {"rows": [_as_text(row) for row in part.rows]}
                for part in (*self.sections, *about)
            ],
        }


def markdown(page: Mapping[str, Any]) -> str:
    """The data of a page as Markdown."""
    parts = [
        f"# {page['title']}",
        f"{_place(page['where'])}. Made by `{page['command']}` with sentinel-rl {page['version']}.",
        page.get("answer", ""),
        page["setup"],
        f"![{page['title']}]({page['name']}.png)",
        f"## {RESULTS}",
        table(page["results"]),
        f"All numbers: [{page['name']}.csv]({page['name']}.csv).",
        f"## {CLAIMS}",
        *(_paragraph(finding) for finding in page["findings"]),
        f"## {SUMMARY}",
        page["words"],
    ]
    for section in page["sections"]:
        parts += [f"## {section['title']}", section["words"], table(section["rows"]) if section["rows"] else ""]
        parts.append(f"![{section['title']}]({section['figure']}.png)" if section["figure"] else "")
    return "\n\n".join(part for part in parts if part) + "\n"


def publish(page: Page, drawing: Figure, numbers: Sequence[Row], out: Path) -> list[Path]:
    """Write figure, numbers, and page in both forms; every file is complete or not there."""
    data = page.data()
    return [
        *plotting.save(drawing, out / page.name),
        write_file(out / f"{page.name}.csv", csv_text(numbers)),
        write_file(out / f"{page.name}.md", markdown(data)),
        write_file(out / f"{page.name}.json", json_text(data)),
    ]


def json_text(page: Mapping[str, Any]) -> str:
    """The data of a page as the text of its file."""
    return json.dumps(page, indent=1, ensure_ascii=False) + "\n"


def command(name: str, settings: Any) -> str:
    """The command line that gives these records again."""
    options = [f"--{option} {getattr(settings, option)}" for option in OPTIONS if hasattr(settings, option)]
    quick = ["--quick"] if _quick(settings) else []
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
    lines += [[_cell(value, ".3f").replace("|", "\\|").replace("\n", " ") for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _as_text(row: Row) -> dict[str, str]:
    return {column: _cell(value, ".3f") for column, value in row.items()}


def _cell(value: Any, form: str) -> str:
    return value if isinstance(value, str) else f"{value:d}" if isinstance(value, int) else format(value, form)


def _place(where: str) -> str:
    return where.capitalize() if where == BEYOND else f"In the paper: {where}"


def _quick(settings: Any) -> bool:
    return bool(getattr(settings, "quick", False))


def _paragraph(finding: Mapping[str, str]) -> str:
    verdict = finding["verdict"].capitalize()
    return f"> {finding['claim']} ({finding['where']})\n\n**{verdict}**, {finding['setting']}: {finding['reason']}"
