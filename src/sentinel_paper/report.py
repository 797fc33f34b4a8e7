"""All experiments of a folder on one page, as HTML that needs nothing else and as Markdown.

Only the small files of the experiments are read, JSON, Markdown and SVG: neither records nor a GPU are needed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_paper import report_rows
from sentinel_paper.output import table
from sentinel_paper.registry import EXPERIMENTS
from sentinel_paper.report_html import html_page
from sentinel_paper.statements import Line
from sentinel_rl import __version__
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.atomic import write_file

TITLE = "SENTINEL, reproduced"
METHOD = (
    "Every verdict is computed from the numbers of the run. One agent is better than another when the 95 % "
    "bootstrap interval of the difference, paired by seed, leaves out zero and a Wilcoxon test, Holm-corrected "
    "within the claim, has p < .05. That it is better than others holds when it is better than every one of them, "
    "and does not hold when another is better than it; everything else is undecided. A claim that is judged in "
    "several ways holds when it does in all of them, and does not hold when it does not in one. Of several "
    "comparisons the table shows the least favourable one; p is Holm-corrected. Higher values are better, fewer "
    "falls and crashes are better; brackets are 95 % intervals over runs. Theorems are searched for "
    "counterexamples, which can refute but not prove them. Not listed are sentences that no experiment decides: "
    "what is novel, what others have done, and why value and crashes improve together."
)
_NEEDED = ("name", "title", "where", "command", "version", "setup", "results", "findings", "words", "sections")


def write_report(folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder that experiments left folders of their own in.

    Raises:
        UsageError: when there is none.
        CorruptError: for a page that cannot be read.
    """
    pages = collect(folder)
    told = report_rows.all_lines(pages)
    figures = {name: _svg(folder, page, name) for page in pages for name in figures_of(page)}
    return [
        write_file(folder / "report.html", html_page((TITLE, opening(pages, told), METHOD), told, pages, figures)),
        write_file(folder / "report.md", markdown(folder, pages, told)),
    ]


def collect(folder: Path) -> list[dict[str, Any]]:
    """The pages of all experiments in a folder, in the order of the paper; several of one experiment by folder."""
    order = {experiment.name: place for place, experiment in enumerate(EXPERIMENTS)}
    found = [
        {**_page(path), "folder": path.parent.relative_to(folder).as_posix()}
        for path in sorted(folder.glob("**/*.json"))
        if path.stem in order
    ]
    if not found:
        raise UsageError(f"there are no results in {folder}: sentinel reproduce NAME makes some")
    return sorted(found, key=lambda page: order[page["name"]])


def figures_of(page: Mapping[str, Any]) -> list[str]:
    """The figures of a page by their files without ending, the main one first."""
    return [
        f"{page['folder']}/{name}" for name in [page["name"], *(part["figure"] for part in page["sections"])] if name
    ]


def opening(pages: Sequence[Mapping[str, Any]], told: Sequence[Line]) -> str:
    """What the report is, in a sentence before its table of claims."""
    return (
        f"{len(pages)} result{'s' * (len(pages) > 1)} of the SENTINEL paper's experiments (UAI 2022), run with "
        f"sentinel-rl {__version__}. Of the claims of the abstract and of section 6, counted once for every result "
        f"that judges them, {report_rows.counted(told)}."
    )


def markdown(folder: Path, pages: Sequence[Mapping[str, Any]], told: Sequence[Line]) -> str:
    """The report as Markdown: the claims, then every page with its headings one level down."""
    parts = [f"# {TITLE}", opening(pages, told), "## Every claim", table(report_rows.claim_rows(told), "left"), METHOD]
    for heading, rows in report_rows.side_by_side(pages):
        parts += [f"## {heading}: side by side", table(rows)]
    for page in pages:
        text = (folder / page["folder"] / f"{page['name']}.md").read_text(encoding="utf-8")
        _, *lines = text.rstrip("\n").split("\n")
        lines = [f"#{line}" if line.startswith("#") else line for line in lines]
        parts.append(f'<a id="{report_rows.anchor(page)}"></a>\n\n## {report_rows.title(page)}')
        parts.append("\n".join(lines).strip("\n").replace("](", f"]({page['folder']}/"))
    return "\n\n".join([*parts, "## Every finding", table(report_rows.finding_rows(pages), "left")]) + "\n"


def _page(path: Path) -> dict[str, Any]:
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in _NEEDED if name not in page]
    except (ValueError, TypeError) as error:
        raise CorruptError(f"{path} cannot be read ({error}): run its experiment again") from error
    if missing:
        raise CorruptError(f"{path} has no {', '.join(missing)}: run its experiment again")
    return dict(page)


def _svg(folder: Path, page: Mapping[str, Any], name: str) -> str:
    path = folder / f"{name}.svg"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CorruptError(f"{path}, a figure of {page['name']}, is missing: run the experiment again") from error
