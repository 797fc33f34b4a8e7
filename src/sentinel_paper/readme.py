"""The results on a README's first screen: a table and a figure of a results folder, between two markers."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_paper.output import ABOUT, table
from sentinel_paper.registry import HEADLINE_PARTS
from sentinel_paper.report import collect, harmless
from sentinel_paper.report_rows import size, verdict_rows
from sentinel_paper.settings import DEFAULT_PRESET, PRESETS
from sentinel_paper.statements import headline, judge, preference
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.storage.validation import from_file

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
# What is shown: the first of these that is there.
_PREFERRED = ("table-highway", "table-ensemble-size", "fig-toy-wasserstein", "gauss-mix-cvar")
_STANDARD_ERROR = re.compile(r" ± \S+(?= \[)")


def fill(readme: Path, folder: Path) -> Path:
    """Put the results of a folder between the markers of a file, and return the file.

    Raises:
        UsageError: for a file that cannot be read or has no markers.
        CorruptError: for a page that no experiment has written.
    """
    try:
        text = readme.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{readme} cannot be read: {error}") from error
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"{readme} has no place for results: write {BEGIN} and {END}, each on a line of its own")
    # Through a link to the file that it names: writing replaces a file.
    return write_file(readme.resolve(), f"{head}{BEGIN}\n{block(folder, readme.parent)}{END}{tail}")


def block(folder: Path, base: Path) -> str:
    """The text between the markers; links are relative to `base`."""
    pages = harmless(collect(folder))
    page, judged = shown(pages), judge(pages)
    where = Path(os.path.relpath(folder, base)).as_posix()
    stem = f"{where}/{page['folder']}/{page['name']}"
    others = [f"[{other['folder']}]({where}/{other['folder']}/{other['name']}.md)" for other in pages if other != page]
    parts = [
        f"![{page['title']}]({stem}.svg)",
        table([_shortened(row) for row in page["results"]]),
        f"Means with 95 % bootstrap intervals over runs, {size(page)}: `{page['command']}`{_computed(page)} "
        f"([details]({stem}.md)).",
        f"{headline(judged)}",
        table(verdict_rows(judged, HEADLINE_PARTS), "left"),
        f"**[Every claim with its verdicts and intervals]({where}/report.md)**"
        + (f"; more results: {', '.join(others)}." if others else "."),
    ]
    return "\n\n".join(parts) + "\n"


def shown(pages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The page that is shown: of the most wanted experiment, not a quick one, the first preset of the headline."""
    order = list(PRESETS)

    def rank(page: Mapping[str, Any]) -> tuple[Any, ...]:
        place = _PREFERRED.index(page["name"]) if page["name"] in _PREFERRED else len(_PREFERRED)
        preset = page["options"].get("preset", DEFAULT_PRESET)
        return page["quick"], place, order.index(preset) if preset in order else len(order), preference(page)

    return min(pages, key=rank)


def _shortened(row: Mapping[str, str]) -> dict[str, str]:
    """Without standard errors where there is an interval: a first screen is narrow."""
    return {column: _STANDARD_ERROR.sub("", cell) for column, cell in row.items()}


def _computed(page: Mapping[str, Any]) -> str:
    """On what device, and how long training took, where the page says so."""
    rows = [row for part in page["sections"] if part["title"] == ABOUT for row in part["rows"]]
    devices = sorted({row.get("device", "") for row in rows} - {""})
    with from_file(f"{page['folder']}/{page['name']}.json", "page"):
        seconds = sum(float(row.get("s training") or 0) / int(row.get("cells at once") or 1) for row in rows)
    return f", on {' and '.join(devices)}, {seconds:.0f} s of training in total over all programs" if devices else ""
