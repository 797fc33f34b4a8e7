"""The figure that the report begins with, value against crashes in training, and the sentences that say what it shows.

Points are agents: those of every result of ``table-highway``, one result per preset, the paper's printed ones, and
those of ``learner/risk.csv``, where the folder has it. All sentences are computed from these numbers and the verdicts.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sentinel_paper.curves import colours
from sentinel_paper.highway_agents import ADDITIVE, AGENTS, BRAKE, COMPOSITE, CONTENDERS, NEUTRAL
from sentinel_paper.highway_agents import CEILING as SEARCH
from sentinel_paper.judging import LEVEL
from sentinel_paper.registry import HEADLINE_PARTS
from sentinel_paper.report_curves import COLOUR_NAMES
from sentinel_paper.report_numbers import read_numbers
from sentinel_paper.report_rows import size
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, Judged, Page, count_words, preference
from sentinel_rl.study import compare, summarise

TABLE = "table-highway"
LEARNER = "learner/risk.csv"
# The presets that keep the paper's constants, the one to speak of first.
PAPERS_PRESETS = ("sound", "literal")
# The value of the search with the exact model over 500 episodes (docs/highway.md), where no table has it.
CEILING = 32.84
# What the agents of the learner's file are called in the tables; the others keep their names.
_LEARNERS = {
    "neutral": NEUTRAL,
    "additive CVaR .25": ADDITIVE,
    "CVaR .25 o CVaR .25": COMPOSITE,
    "CVaR .5 o CVaR .5": "SENTINEL-4 composite, CVaR .5",
}
_SHADES = colours([agent.label for agent in AGENTS])
_PASSIVE = {driver.label for driver in CONTENDERS} - {agent.label for agent in AGENTS}
_SHORT = "SENTINEL-4 "


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean with the ends of its interval."""

    mean: float
    low: float
    high: float

    def told(self, digits: int) -> str:
        """The mean and its interval in words.

        Example:
            >>> Interval(23.674, 23.58, 23.766).told(2)
            '23.67 [23.58, 23.77]'
        """
        return f"{self.mean:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclasses.dataclass(frozen=True)
class Point:
    """An agent in the figure: its label, value and crashes in training."""

    agent: str
    value: Interval
    crashes: Interval


@dataclasses.dataclass(frozen=True)
class Group:
    """The agents of one source.

    Args:
        kind: ``paper``, ``preset``, ``learner`` or ``passive``, which the shape of the points follows from.
        name: of the source.
        words: what it is, with the number of runs.
        points: its agents.
        crashes: in training, one per run by agent, the same seeds for all; empty where single runs are not known.
    """

    kind: str
    name: str
    words: str
    points: Sequence[Point]
    crashes: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def point(self, agent: str) -> Point | None:
        """The point of an agent."""
        return next((one for one in self.points if one.agent == agent), None)


@dataclasses.dataclass(frozen=True)
class Frontier:
    """All groups of the figure, and the value that a search with the exact model reaches."""

    groups: Sequence[Group]
    ceiling: float = CEILING

    def of(self, kind: str, names: Sequence[str] = ()) -> Group | None:
        """The first group of a kind, in the order of the names where there are any."""
        found = [group for group in self.groups if group.kind == kind and (not names or group.name in names)]
        return min(found, key=lambda group: names.index(group.name) if names else 0, default=None)

    def data(self) -> dict[str, Any]:
        """What the page draws."""
        return {
            "ceiling": self.ceiling,
            "groups": [
                {"kind": group.kind, "name": group.name, "words": group.words}
                | {"points": [_drawn(point) for point in group.points]}
                for group in self.groups
            ],
        }


def frontier(folder: Path, pages: Sequence[Page]) -> Frontier:
    """Read the figure's numbers; there are no groups where the folder has no result of the highway's table.

    Raises:
        CorruptError: for a file that no experiment has written.
    """
    by_preset: dict[str, Page] = {}
    for page in sorted((page for page in pages if page["name"] == TABLE), key=preference):
        by_preset.setdefault(page["options"].get("preset", ""), page)
    groups: list[Group] = []
    passive: list[Point] = []
    ceiling = CEILING
    for preset, page in by_preset.items():
        points, printed = _table(folder, page)
        ceiling = next((point.value.mean for point in points if point.agent == SEARCH), ceiling)
        # Policies that learn nothing are the same under every preset.
        passive = passive or [point for point in points if point.agent in _PASSIVE and point.agent != SEARCH]
        trained = [point for point in points if point.agent not in _PASSIVE]
        crashes = _crashes(folder, f"{page['folder']}/{TABLE}-runs.csv")
        groups.append(Group("preset", preset, f"preset {preset}, {size(page, with_preset=False)}", trained, crashes))
        if printed and not any(group.kind == "paper" for group in groups):
            groups.append(Group("paper", "the paper", "the paper, as printed, ± standard error", printed))
    groups += _learner(folder)
    if passive:
        groups.append(Group("passive", "no learning", "policies that learn nothing", passive))
    order = ("learner", "paper", "preset", "passive")
    return Frontier(sorted((group for group in groups if group.points), key=lambda one: order.index(one.kind)), ceiling)


def sentences(drawn: Frontier, judged: Sequence[Judged]) -> list[str]:
    """What was found: with agents that learn, with the paper's constants, and claim by claim."""
    parts = [_with_a_learner(drawn), _with_papers_constants(drawn), _counted(judged)]
    return [part for part in parts if part]


def _with_papers_constants(drawn: Frontier) -> str:
    group, paper, passive = drawn.of("preset", PAPERS_PRESETS), drawn.of("paper"), drawn.of("passive")
    if group is None:
        return ""
    best = max(group.points, key=lambda point: point.value.mean)
    words = (
        f"With the paper's constants ({group.words}) the highest value is {best.value.told(2)} ({_short(best.agent)})"
    )
    if paper is not None:
        top = max(paper.points, key=lambda point: point.value.mean)
        words += f"; the paper prints up to {top.value.mean:.2f} ({_short(top.agent)})"
    brake = passive.point(BRAKE) if passive is not None else None
    if brake is not None:
        words += f", and the constant action SLOWER has {brake.value.told(2)}"
    return f"{words}{_caution(group)}."


def _with_a_learner(drawn: Frontier) -> str:
    """Of the preset that is neither of the paper's, or of the learner's file where there is none."""
    others = [group.name for group in drawn.groups if group.kind == "preset" and group.name not in PAPERS_PRESETS]
    group = drawn.of("preset", others) if others else drawn.of("learner")
    if group is None:
        return ""
    told = [(agent, group.point(agent)) for agent in (NEUTRAL, ADDITIVE, COMPOSITE)]
    values = ", ".join(f"{point.value.told(2)} ({_short(agent)})" for agent, point in told if point is not None)
    if not values:
        return ""
    return (
        f"With a learner that learns ({group.words}) the value is {values}, where a search with the exact model "
        f"reaches {drawn.ceiling:.2f}{_caution(group)}."
    )


def _caution(group: Group) -> str:
    """How composite risk changes the crashes in training, against the other two."""
    if not {COMPOSITE, ADDITIVE, NEUTRAL} <= set(group.crashes):
        return ""
    others = {agent: group.crashes[agent] for agent in (NEUTRAL, ADDITIVE)}
    found = compare(group.crashes[COMPOSITE], others, better="low")
    told = " and ".join(
        f"{one.difference:+.0f} [{one.low:+.0f}, {one.high:+.0f}] against {_short(agent)}"
        f"{'' if _significant(one.low, one.high, one.p_holm) else ' (not significant)'}"
        for agent, one in found.items()
    )
    return f"; composite risk has {np.nanmean(group.crashes[COMPOSITE]):.0f} crashes in training, {told}"


def _significant(low: float, high: float, p_holm: float) -> bool:
    return (low > 0 or high < 0) and p_holm < LEVEL


def _counted(judged: Sequence[Judged]) -> str:
    """The verdicts on abstract and section 6: each claim once, then under every preset."""
    counted = [one for one in judged if one.statement.part in HEADLINE_PARTS]
    parts = []
    for preset in counted[0].by_preset:
        verdicts = [one.by_preset[preset].verdict for one in counted]
        run = [verdict for verdict in verdicts if verdict not in (NOT_RUN, NO_PRESETS)]
        if run:
            some = "" if len(run) == len(counted) else f", which was run for {len(run)} of them,"
            parts.append(f"under `{preset}`{some} {count_words(run)}")
    once = count_words(one.headline.verdict for one in counted)
    return (
        f"Of the {len(counted)} claims in the paper's {' and '.join(HEADLINE_PARTS)} that an experiment can decide, "
        f"{'; '.join([once, *parts])}."
    )


def _table(folder: Path, page: Page) -> tuple[list[Point], list[Point]]:
    """Our points of a page, and the paper's."""
    name = f"{page['folder']}/{TABLE}.csv"
    rows = read_numbers(folder, name, ("agent", "metric"), ("mean", "low", "high"))
    ours: dict[str, dict[str, Interval]] = {}
    printed: dict[str, dict[str, Interval]] = {}
    for row in rows:
        metric = row["metric"]
        ours.setdefault(row["agent"], {})[metric] = Interval(*(float(row[end]) for end in ("mean", "low", "high")))
    papers = {agent.label: agent.printed for agent in AGENTS}
    for agent in ours:
        for metric, (mean, sem) in papers.get(agent, {}).items():
            printed.setdefault(agent, {})[metric] = Interval(mean, mean - sem, mean + sem)
    return _points(ours), _points(printed)


def _points(found: Mapping[str, Mapping[str, Interval]]) -> list[Point]:
    return [
        Point(agent, metrics["value"], metrics["crashes"])
        for agent, metrics in found.items()
        if {"value", "crashes"} <= set(metrics)
    ]


def _learner(folder: Path) -> list[Group]:
    """The agents of the learner's file, summed up over its runs."""
    runs: dict[str, list[dict[str, str]]] = {}
    for row in read_numbers(folder, LEARNER, ("agent",), ("seed", "value", "crashes")):
        runs.setdefault(_LEARNERS.get(row["agent"], row["agent"]), []).append(row)
    points = []
    for agent, rows in runs.items():
        value = summarise(np.array([float(row["value"]) for row in rows]))
        crashes = summarise(np.array([float(row["crashes"]) for row in rows]), worse="high")
        ends = [Interval(one.mean, one.low, one.high) for one in (value, crashes)]
        points.append(Point(agent, *ends))
    counts = sorted({len(rows) for rows in runs.values()})
    words = f"the default learner, {' to '.join(map(str, counts))} runs"
    return [Group("learner", "learner", words, points, _crashes(folder, LEARNER))] if points else []


def _crashes(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Crashes of every run by agent, where all agents have the same seeds."""
    found: dict[str, dict[float, float]] = {}
    for row in read_numbers(folder, name, ("agent",), ("seed", "crashes")):
        found.setdefault(_LEARNERS.get(row["agent"], row["agent"]), {})[float(row["seed"])] = float(row["crashes"])
    if len({tuple(sorted(runs)) for runs in found.values()}) != 1:
        return {}
    return {agent: np.array([runs[seed] for seed in sorted(runs)]) for agent, runs in found.items()}


def _short(agent: str) -> str:
    return agent.removeprefix(_SHORT)


def _drawn(point: Point) -> dict[str, Any]:
    shade = _SHADES.get(point.agent.split(",")[0])
    return {
        "agent": _short(point.agent),
        "colour": COLOUR_NAMES[shade] if shade else "ink",
        "value": list(dataclasses.astuple(point.value)),
        "crashes": list(dataclasses.astuple(point.crashes)),
    }
