"""The learning curves that the report's page draws, from ``NAME-curves.csv`` beside a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_paper.curves import colours
from sentinel_paper.registry import find
from sentinel_paper.report_numbers import read_numbers
from sentinel_rl import plotting
from sentinel_rl.storage.validation import from_file

# A screen shows no more points of a curve.
MOST_POINTS = 100
# What the page's style calls the colours of all figures: it has them for light and dark.
COLOUR_NAMES = {
    plotting.BLACK: "ink",
    plotting.BLUE: "blue",
    plotting.ORANGE: "orange",
    plotting.GREEN: "green",
    plotting.RED: "red",
    plotting.PURPLE: "purple",
    plotting.SKY: "sky",
    plotting.GREY: "grey",
}
Rows = Sequence[Mapping[str, str]]


def charts(folder: Path, page: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The charts of a page: one for every quantity and horizon, with mean and interval per agent and point.

    Raises:
        CorruptError: for a file that no experiment has written.
    """
    across = "steps" if find(page["name"]).grid else "transitions"
    name = f"{page['folder']}/{page['name']}-curves.csv"
    rows = read_numbers(folder, name, ("agent",), (across, "mean", "low", "high"), optional=("curve", "horizon"))
    # Before there was a column for it, only ends of episodes were written.
    ends = "crashes" if "highway" in page["name"] else "falls"
    found: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        found.setdefault((row.get("curve", ends), row.get("horizon", "")), []).append(row)
    with from_file(name, "table of learning curves"):
        return [_chart(curve, horizon, across, some) for (curve, horizon), some in found.items()]


def _chart(curve: str, horizon: str, across: str, rows: Rows) -> dict[str, Any]:
    by_agent: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        by_agent.setdefault(row["agent"], []).append(row)
    shades = colours(list(by_agent))
    return {
        "title": f"{curve[:1].upper()}{curve[1:]}, {int(horizon)} steps"
        if horizon
        else f"{curve[:1].upper()}{curve[1:]}",
        "across": across,
        "quantity": curve,
        # Distances fall over several powers of ten, within few transitions.
        "log": "distance" in curve,
        "lines": [
            {"agent": agent, "colour": COLOUR_NAMES[shades[agent]], "points": _points(some, across)}
            for agent, some in by_agent.items()
        ],
    }


def _points(rows: Rows, across: str) -> list[list[float]]:
    """Place, mean, lower and upper end at evenly chosen points, the last one among them."""
    every = -(-len(rows) // MOST_POINTS)
    kept = [row for place, row in enumerate(rows) if (len(rows) - 1 - place) % every == 0]
    return [[float(f"{float(row[column]):.5g}") for column in (across, "mean", "low", "high")] for row in kept]
