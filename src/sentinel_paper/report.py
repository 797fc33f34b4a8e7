"""All experiments of a folder on one page, as HTML that needs nothing else and as Markdown."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_paper.claims import Verdict
from sentinel_paper.output import table
from sentinel_paper.registry import EXPERIMENTS
from sentinel_paper.report_html import html_page
from sentinel_rl import __version__
from sentinel_rl.cli.files import write_atomically
from sentinel_rl.errors import CorruptError, UsageError

TITLE = "SENTINEL, reproduced"
_NEEDED = ("name", "title", "where", "command", "version", "setup", "results", "findings", "words", "sections")


def write_report(folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder that experiments left folders of their own in.

    Raises:
        UsageError: when there is none.
        CorruptError: for a page that cannot be read.
    """
    pages = collect(folder)
    figures = {name: _svg(folder, page, name) for page in pages for name in figures_of(page)}
    return [
        write_atomically(folder / "report.html", html_page(TITLE, opening(pages), claims(pages), pages, figures)),
        write_atomically(folder / "report.md", markdown(folder, pages)),
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


def opening(pages: Sequence[Mapping[str, Any]]) -> str:
    """What the report is, in a paragraph."""
    counts = Counter(finding["verdict"] for page in pages for finding in page["findings"])
    told = ", ".join(f"{counts[verdict]} {_plural(verdict, counts[verdict])}" for verdict in Verdict)
    return (
        f"{len(pages)} experiment{'s' * (len(pages) > 1)} of the SENTINEL paper (UAI 2022), run with sentinel-rl "
        f"{__version__}. "
        f"Every verdict is computed from the numbers of the run: of {sum(counts.values())} findings {told}. Higher "
        "values are better, fewer falls and crashes are better; brackets are 95 % bootstrap intervals over runs."
    )


def _plural(verdict: Verdict, count: int) -> str:
    several = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.UNDECIDED: "are undecided"}
    return (
        {**{one: str(one) for one in Verdict}, Verdict.UNDECIDED: "is undecided"}[verdict]
        if count == 1
        else several[verdict]
    )


def claims(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Every claim with its verdict and the reason, one row each."""
    return [
        {"claim": finding["claim"], "in the paper": finding["where"], "verdict": finding["verdict"]}
        | {"experiment": page["folder"], "setting": finding["setting"], "why": finding["reason"]}
        for page in pages
        for finding in page["findings"]
    ]


def markdown(folder: Path, pages: Sequence[Mapping[str, Any]]) -> str:
    """The report as Markdown: the claims, then every page with its headings one level down."""
    parts = [f"# {TITLE}", opening(pages), "## Every claim", table(claims(pages))]
    for page in pages:
        text = (folder / page["folder"] / f"{page['name']}.md").read_text(encoding="utf-8")
        lines = [f"#{line}" if line.startswith("#") else line for line in text.rstrip("\n").split("\n")]
        parts.append("\n".join(lines).replace("](", f"]({page['folder']}/"))
    return "\n\n".join(parts) + "\n"


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
