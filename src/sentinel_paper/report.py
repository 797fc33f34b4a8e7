"""All experiments of a folder on one page, as HTML that needs nothing else and as Markdown.

Only the small files of the experiments are read, JSON, CSV and SVG: neither records nor a GPU are needed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_paper import output, registry, report_rows
from sentinel_paper.claims import Verdict
from sentinel_paper.output import table
from sentinel_paper.report_curves import charts
from sentinel_paper.report_frontier import frontier
from sentinel_paper.report_html import html_page
from sentinel_paper.settings import PRESETS
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, Judged, headline, judge
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.storage.validation import require

TITLE = "SENTINEL, reproduced"
METHOD = (
    "Every verdict is computed from the numbers of the runs. One agent is significantly better than another when the "
    "95 % bootstrap interval of the difference, paired by seed, excludes zero and a Wilcoxon signed-rank test, "
    "Holm-corrected within the claim, has p < .05. A claim that an agent is better than others holds when it is "
    "significantly better than each of them, and does not hold when one of them is significantly better; otherwise it "
    "is undecided. A claim that is tested in several ways holds when it holds in all of them, and does not hold when "
    "it fails in one.\n\n"
    "Every claim is one row, with a verdict for each preset side by side. A preset says which options the agents learn "
    f"with: {'; '.join(f'`{name}`: {preset.words}' for name, preset in PRESETS.items())}. Verdicts differ between "
    "presets where learning does: with the paper's constants an agent makes 447 updates in 100 000 decisions on the "
    "highway, and hardly drives better than one who always brakes; with the learner it makes some 50 000.\n\n"
    f"A claim is counted under the first of {', '.join(f'`{name}`' for name in PRESETS)} that it was run with, which "
    "its row names; effects are those of that preset, and the effects of the others are in the last table. A claim "
    f'marked {NO_PRESETS} is decided by an experiment that has no presets; "{NOT_RUN}" means that the '
    "experiment was not run under that preset. Where an experiment was run several times under one preset, the "
    "verdict is that of the result with the most runs. Of several comparisons the table shows the least favourable "
    "one; p is Holm-corrected. Higher values are better, fewer falls and crashes are better; brackets are 95 % "
    "intervals over runs. For theorems, counterexamples are searched, which can refute but not prove them. Not listed "
    "are sentences that no experiment decides: what is novel, what others have done, and why value and crashes improve "
    "together."
)
_NEEDED = (
    *("name", "title", "where", "command", "options", "quick", "version", "setup", "results", "findings"),
    *("words", "sections"),
)


# Texts of a page are a few paragraphs long.
_LONGEST = 100_000
# A file beside the page, or none.
_FILE = re.compile(r"[\w-]*")
# What begins a tag or a comment (not the sign between two numbers), and what leads out of the page.
_TAG, _LINK = re.compile(r"<(?=[A-Za-z/!?])"), re.compile(r"\]\((?!#)")
# Bytes of a page and of a figure; the largest of the experiments have a tenth of it.
_LARGEST_PAGE, _LARGEST_FIGURE = 2**24, 2**25


def write_report(folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder that experiments left folders of their own in.

    Raises:
        UsageError: when there is none.
        CorruptError: for a page that cannot be read.
    """
    pages = collect(folder)
    judged = judge(pages)
    figures = {name: _svg(folder, page, name) for page in pages for name in figures_of(page)}
    words = (TITLE, opening(pages, judged), METHOD)
    curves = {page["folder"]: found for page in pages if (found := charts(folder, page))}
    return [
        write_file(folder / "report.html", html_page(words, judged, pages, figures, frontier(folder, pages), curves)),
        write_file(folder / "report.md", markdown(pages, judged)),
    ]


def collect(folder: Path) -> list[dict[str, Any]]:
    """The pages of all experiments in a folder, in the order of the paper; several of one experiment by folder.

    Studies beyond the paper are the last.
    """
    order = {one.name: place for place, one in enumerate((*registry.EXPERIMENTS, *registry.STUDIES))}
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


def opening(pages: Sequence[Mapping[str, Any]], judged: Sequence[Judged]) -> str:
    """What the report is, before its table of claims."""
    versions = ", ".join(sorted({page["version"] for page in pages}))
    papers, studies = report_rows.parted(pages)
    others = f" and {_counted(len(studies), 'study', 'studies')} {registry.BEYOND}" if studies else ""
    return (
        f"{_counted(len(papers), 'result', 'results')} of the SENTINEL paper's experiments (UAI 2022){others}, run "
        f"with sentinel-rl {versions}. {headline(judged)}"
    )


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def markdown(pages: Sequence[Mapping[str, Any]], judged: Sequence[Judged]) -> str:
    """The report as Markdown: the claims, then every page with its headings one level down."""
    pages = harmless(list(map(dict, pages)))
    claims = table(harmless(report_rows.claim_rows(judged)), "left")
    parts = [f"# {TITLE}", opening(pages, judged), "## Every claim", claims, METHOD]
    for heading, rows in report_rows.side_by_side(pages):
        parts += [f"## {heading}: side by side", table(rows)]
    papers, studies = report_rows.parted(pages)
    for page in (*papers, *studies):
        if page in studies[:1]:
            parts += [f"## {report_rows.BEYOND}", report_rows.BEYOND_WORDS]
        _, *lines = output.markdown(page).rstrip("\n").split("\n")
        lines = [f"#{line}" if line.startswith("#") else line for line in lines]
        parts.append(f'<a id="{report_rows.anchor(page)}"></a>\n\n## {report_rows.title(page)}')
        parts.append("\n".join(lines).strip("\n").replace("](", f"]({page['folder']}/"))
    for heading, some in (("Every finding", papers), (f"Every finding {registry.BEYOND}", studies)):
        parts += [f"## {heading}", table(report_rows.finding_rows(some), "left")] if some else []
    return "\n\n".join(parts) + "\n"


def _page(path: Path) -> dict[str, Any]:
    """The page of a file, every entry of which is checked."""
    try:
        page = json.loads(_read(path, _LARGEST_PAGE))
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptError(f"{path} cannot be read ({error}): run its experiment again") from error
    try:
        missing = [name for name in _NEEDED if name not in page]
        missing += ["names of its claims"] * any("name" not in finding for finding in page.get("findings", []))
        if not missing:
            _check(page, path.stem)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptError(f"{path} is no page of an experiment ({error}): run its experiment again") from error
    if missing:
        raise CorruptError(f"{path} has no {', '.join(missing)}: run its experiment again")
    return dict(page)


def _check(page: Mapping[str, Any], name: str) -> None:
    """Raise `ValueError` for an entry that a page does not have."""
    require(page["name"] == name, "name", page["name"], f"that of its file, {name}")
    for entry in ("title", "where", "command", "version", "setup", "words"):
        _require_text(entry, page[entry])
    _require_text("answer", page.get("answer", ""))  # pages that older versions have written have none
    require(isinstance(page["quick"], bool), "quick", page["quick"], "true or false")
    require(isinstance(page["options"], dict), "options", page["options"], "a dictionary")
    for option, value in page["options"].items():
        wanted = int if option in ("runs", "steps", "seed") else str | int
        require(isinstance(value, wanted), f"options.{option}", value, "a text or a whole number")
    _check_rows("results", page["results"], at_least=1)
    require(isinstance(page["findings"], list) and bool(page["findings"]), "findings", page["findings"], "a list")
    for finding in page["findings"]:
        for entry in ("name", "claim", "where", "setting", "verdict", "effect", "reason"):
            _require_text(f"findings.{entry}", finding[entry])
        require(finding["verdict"] in set(map(str, Verdict)), "verdict", finding["verdict"], "a known one")
    for section in page["sections"]:
        for entry in ("title", "words", "figure"):
            _require_text(f"sections.{entry}", section[entry])
        require(_FILE.fullmatch(section["figure"]) is not None, "figure", section["figure"], "a name without a folder")
        _check_rows("sections.rows", section["rows"], at_least=0)


def _check_rows(name: str, rows: Any, at_least: int) -> None:
    require(isinstance(rows, list) and len(rows) >= at_least, name, rows, f"a list of at least {at_least} rows")
    for row in rows:
        require(isinstance(row, dict) and len(row) > 0, name, row, "a list of rows with columns")
        for column, value in row.items():
            _require_text(f"{name}.{column}", value)


def _require_text(name: str, value: Any) -> None:
    require(isinstance(value, str) and len(value) <= _LONGEST, name, value, f"a text of at most {_LONGEST} characters")


def harmless(value: Any) -> Any:
    """A value whose texts begin no tag, no comment and no link to elsewhere, which Markdown would pass on."""
    if isinstance(value, str):
        return _LINK.sub("]&#40;", _TAG.sub("&lt;", value))
    if isinstance(value, dict):
        return {harmless(name): harmless(entry) for name, entry in value.items()}
    return [harmless(entry) for entry in value] if isinstance(value, list) else value


def _read(path: Path, largest: int) -> str:
    """The text of a file that is measured before it is read."""
    if path.stat().st_size > largest:
        raise ValueError(f"{path.stat().st_size} bytes, at most {largest} are read")
    return path.read_text(encoding="utf-8")


def _svg(folder: Path, page: Mapping[str, Any], name: str) -> str:
    path = folder / f"{name}.svg"
    if path.exists() and not path.resolve().is_relative_to(folder.resolve()):
        raise CorruptError(f"{path}, a figure of {page['name']}, is a link to a file elsewhere: put the figure there")
    try:
        return _read(path, _LARGEST_FIGURE)
    except OSError as error:
        raise CorruptError(f"{path}, a figure of {page['name']}, is missing: run the experiment again") from error
    except ValueError as error:
        raise CorruptError(f"{path} is no figure of {page['name']} ({error}): run the experiment again") from error
