"""The tables of the report: every claim, presets side by side, every finding. Cells are text, with Markdown's links."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentinel_paper.claims import Verdict
from sentinel_paper.registry import EXPERIMENTS
from sentinel_paper.statements import ABSTRACT, NOT_RUN, SECTION, Line, lines

Page = Mapping[str, Any]
TextRow = dict[str, str]
_OPTION = re.compile(r"--(\w+) ([^-\s]\S*)")
_SEVERAL = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.UNDECIDED: "are undecided"}


def anchor(page: Page) -> str:
    """What the section of a page is linked by: the name of its folder."""
    return "results-" + re.sub(r"\W", "-", page["folder"].replace("/", "--"))


def size(page: Page) -> str:
    """Preset, runs and steps of a page, from the command that made it.

    Example:
        >>> size({"command": "sentinel reproduce table-highway --runs 50 --steps 100000 --preset sound --seed 1000"})
        'preset sound, 50 runs of 100000 steps'
    """
    options = dict(_OPTION.findall(page["command"]))
    runs = f"{options['runs']} runs" if "runs" in options else "computed exactly"
    parts = [
        f"preset {options['preset']}" if "preset" in options else "",
        f"{runs} of {options['steps']} steps" if "steps" in options else runs,
        "made with --quick" if "--quick" in page["command"] else "",
    ]
    return ", ".join(part for part in parts if part)


def title(page: Page) -> str:
    """The heading of a page in the report, which no other page has."""
    return f"{page['title']}: {size(page)} ({page['folder']})"


def all_lines(pages: Sequence[Page]) -> list[Line]:
    """What the pages say about every statement of the paper."""
    claims = {experiment.name: [claim.text for claim in experiment.load().PAPER] for experiment in EXPERIMENTS}
    return lines(pages, claims)


def claim_rows(told: Iterable[Line]) -> list[TextRow]:
    """The table that the report begins with."""
    return [
        {"claim": line.statement.text, "in the paper": line.statement.where, "verdict": line.verdict}
        | {"effect with 95 % interval": "; ".join(f"{setting}: {effect}" for setting, effect in line.effects)}
        | {"from": _source(line)}
        for line in told
    ]


def _source(line: Line) -> str:
    if line.page is None or line.verdict == NOT_RUN:
        return f"`sentinel reproduce {line.experiment}`"
    return f"[{line.page['folder']}, {size(line.page)}](#{anchor(line.page)})"


def counted(told: Iterable[Line], parts: Sequence[str] = (ABSTRACT, SECTION)) -> str:
    """How many of the lines on parts of the paper have which verdict, in words."""
    counts = Counter(line.verdict for line in told if line.statement.part in parts)
    shown = [f"{counts[verdict]} {_plural(verdict, counts[verdict])}" for verdict in Verdict if counts[verdict]]
    missing = counts[NOT_RUN]
    return ", ".join([*shown, *([f"{missing} {'is' if missing == 1 else 'are'} not run yet"] if missing else [])])


def _plural(verdict: Verdict, count: int) -> str:
    if count > 1:
        return _SEVERAL[verdict]
    return "is undecided" if verdict == Verdict.UNDECIDED else str(verdict)


def finding_rows(pages: Sequence[Page]) -> list[TextRow]:
    """Every finding of every page with its full reason."""
    return [
        {"experiment": f"[{page['folder']}](#{anchor(page)})", "claim": finding["claim"]}
        | {"verdict": finding["verdict"], "setting": finding["setting"], "why": finding["reason"]}
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
    options = dict(_OPTION.findall(page["command"]))
    return f"{options.get('preset', '')} {options.get('runs', '')} runs ({page['folder']})".strip()
