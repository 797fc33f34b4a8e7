"""The tables of the report: every claim, presets side by side, every finding. Cells are text, with Markdown's links."""

import re
from collections.abc import Iterable, Sequence

from sentinel_paper import registry
from sentinel_paper.statements import NOT_RUN, Judged, Judgement, Page

TextRow = dict[str, str]
BEYOND = registry.BEYOND.capitalize()
BEYOND_WORDS = (
    "What follows is no claim of the paper, and is counted nowhere above: questions that this library asked by itself, "
    "with agents that it trained anew."
)


def parted(pages: Sequence[Page]) -> tuple[list[Page], list[Page]]:
    """The pages of the paper's experiments, and those of studies beyond it."""
    studies = {one.name for one in registry.STUDIES}
    return [page for page in pages if page["name"] not in studies], [page for page in pages if page["name"] in studies]


def anchor(page: Page) -> str:
    """What the section of a page is linked by: the name of its folder."""
    return "results-" + re.sub(r"\W", "-", page["folder"].replace("/", "--"))


def size(page: Page, with_preset: bool = True) -> str:
    """Preset, runs and steps of a page.

    Example:
        >>> size({"options": {"runs": 50, "steps": 100_000, "preset": "sound", "seed": 1_000}, "quick": False})
        'preset sound, 50 runs of 100000 steps'
    """
    options = page["options"]
    runs = f"{options['runs']} runs" if "runs" in options else "computed exactly"
    parts = [
        f"preset {options['preset']}" if "preset" in options and with_preset else "",
        f"{runs} of {options['steps']} steps" if "steps" in options else runs,
        "made with --quick" if page["quick"] else "",
    ]
    return ", ".join(part for part in parts if part)


def title(page: Page) -> str:
    """The heading of a page in the report, which no other page has."""
    return f"{page['title']}: {size(page)} ({page['folder']})"


def claim_rows(judged: Iterable[Judged]) -> list[TextRow]:
    """The table that the report begins with: a row per statement, its headline, and a column per preset."""
    return [
        {"claim": one.statement.text, "verdict": _linked(one.headline), "counted under": one.headline_preset}
        | {preset: _linked(judgement) for preset, judgement in one.by_preset.items()}
        | {"effect with 95 % interval": one.headline.effects, "from": _sources(one)}
        | {"in the paper": one.statement.where, "name": f"`{one.statement.name}`"}
        for one in judged
    ]


def verdict_rows(judged: Iterable[Judged], parts: Sequence[str]) -> list[TextRow]:
    """A short table of some parts of the paper: a row per statement, and the verdicts only."""
    return [
        {"claim": one.statement.text, "verdict": one.headline.verdict, "counted under": one.headline_preset}
        | {preset: judgement.verdict for preset, judgement in one.by_preset.items()}
        for one in judged
        if one.statement.part in parts
    ]


def _linked(judgement: Judgement) -> str:
    """A verdict that links to the first page it follows from."""
    if not judgement.pages or judgement.verdict == NOT_RUN:
        return judgement.verdict
    return f"[{judgement.verdict}](#{anchor(judgement.pages[0])})"


def _sources(judged: Judged) -> str:
    """Links to the pages of the preset that is counted, and commands for those that are missing."""
    found = {page["name"]: page for page in judged.headline.pages}
    return "; ".join(
        f"[{found[name]['folder']}, {size(found[name], with_preset=False)}](#{anchor(found[name])})"
        if name in found
        else f"`sentinel reproduce {name}`"
        for name in judged.statement.claims()
    )


def finding_rows(pages: Sequence[Page]) -> list[TextRow]:
    """Every finding of every page with its full reason."""
    return [
        {"experiment": f"[{page['folder']}](#{anchor(page)})", "name": f"`{finding['name']}`"}
        | {"claim": finding["claim"], "verdict": finding["verdict"]}
        | {"setting": finding["setting"], "why": finding["reason"]}
        for page in pages
        for finding in page["findings"]
    ]


def side_by_side(pages: Sequence[Page]) -> list[tuple[str, list[TextRow]]]:
    """For every experiment with several pages a title and a table: our numbers of each beside the others'."""
    by_name: dict[str, list[Page]] = {}
    for page in pages:
        by_name.setdefault(page["name"], []).append(page)
    return [(several[0]["title"], _merged(several)) for several in by_name.values() if len(several) > 1]


def _merged(pages: Sequence[Page]) -> list[TextRow]:
    """One row per first cell; a column of ours once for every page, a column of the paper's once."""
    first = next(iter(pages[0]["results"][0]))
    columns = [column for column in pages[0]["results"][0] if column != first]
    found = [{row[first]: row for row in page["results"] if first in row} for page in pages]
    keys = list(dict.fromkeys(key for rows in found for key in rows))
    merged = []
    for key in keys:
        row = {first: key}
        for column in columns:
            if column.startswith("paper"):
                row[column] = next((rows[key][column] for rows in found if column in rows.get(key, {})), "")
                continue
            for page, rows in zip(pages, found, strict=True):
                row[f"{column}, {_short(page)}"] = rows.get(key, {}).get(column, "")
        merged.append(row)
    return merged


def _short(page: Page) -> str:
    """What tells a page from others of its experiment."""
    options = page["options"]
    return f"{options.get('preset', '')} {options.get('runs', '')} runs ({page['folder']})".strip()
