"""Diagnostics beside the highway's table, per agent."""

import functools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sentinel_paper.curves import draw_bands, draw_shares
from sentinel_paper.highway_agents import ADDITIVE, AGENTS, BRAKE, CEILING, COMPOSITE, NEUTRAL, RIVALS, RULE
from sentinel_paper.metrics import Metric, first_means, last_means, summaries
from sentinel_paper.output import Row
from sentinel_paper.trained import FROZEN, Records
from sentinel_rl import plotting
from sentinel_rl.study import Record, Summary


def _measured() -> tuple[Metric, ...]:
    """What is measured in every run; NaN for agents that have no such thing."""
    penalties = [
        Metric(
            f"{kind}_penalty_{end}", f"{kind} penalty, {end}", "low", functools.partial(of, name=f"metric/{kind}"), 3
        )
        for kind in ("epistemic", "aleatory")
        for end, of in (("first", first_means), ("last", last_means))
    ]
    clipped = [
        Metric(f"clipped_{end}", f"clipped {end}", "low", functools.partial(last_means, name=f"metric/clip_{end}"), 3)
        for end in ("low", "high")
    ]
    choices = [
        Metric(f"other_choice_{kind}", f"other choice if {kind}", "low", functools.partial(_choices, kind=kind), 3)
        for kind in ("additive", "neutral")
    ]
    return (*penalties, *clipped, *choices)


def _choices(record: Record, kind: str) -> np.ndarray:
    found = record.arrays.get(f"choices/{kind}")
    return np.full(len(record.cell.seeds), np.nan) if found is None else np.asarray(found, np.float64)


DIAGNOSTICS = _measured()


def diagnostics(records: Records) -> list[Row]:
    """A table of diagnostics, per agent: means over the runs with their 95 % intervals."""
    told = {metric.title: summaries(records, metric) for metric in DIAGNOSTICS}
    return [
        {"agent": agent.label} | {title: _told(found[agent.label]) for title, found in told.items()} for agent in AGENTS
    ]


def _told(one: Summary) -> str:
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" if one.n else ""


def draw_diagnostics(records: Records, drawing: Figure) -> None:
    """Draw penalties and returns over training, and where and how fast the frozen policies drive."""
    sentinels = (COMPOSITE, ADDITIVE, NEUTRAL)
    grid = drawing.subplots(2, 2).ravel()
    draw_bands(grid[0], records, "metric/epistemic", sentinels)
    grid[0].set(title="epistemic penalty over training")
    draw_bands(grid[1], records, "return_curve", (COMPOSITE, *RIVALS))
    ceiling = float(np.nanmean(records.found[CEILING].arrays[f"eval/{FROZEN}/reward"]))
    grid[1].axhline(ceiling, color=plotting.BLACK, linewidth=1, linestyle="--", label=CEILING)
    grid[1].set(title="return of training episodes")
    shown: Sequence[str] = (*sentinels, "CDQN", BRAKE, RULE, CEILING)
    for axes, kind in zip(grid[2:], ("lane", "speed"), strict=True):
        shares = {
            label: np.asarray(records.found[label].arrays[f"eval/{FROZEN}/{kind}"])
            for label in shown
            if f"eval/{FROZEN}/{kind}" in records.found[label].arrays
        }
        if shares:
            driven = np.flatnonzero(sum(share.mean(axis=0) for share in shares.values()) > 1e-3)
            bins = range(int(driven[0]), int(driven[-1]) + 1)
            draw_shares(axes, {label: share[:, bins] for label, share in shares.items()}, [str(one) for one in bins])
        axes.set(title=f"{kind} of the frozen policy", xlabel={"lane": "0 is left-most", "speed": "m/s"}[kind])
    grid[1].legend(fontsize=8)
    grid[2].legend(fontsize=8)
