"""The figures of the study of caution."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentinel_paper.caution_cells import HIGHWAY, Arm, Measures, World
from sentinel_paper.caution_findings import KNOWN
from sentinel_paper.caution_looks import SCORES
from sentinel_paper.caution_numbers import Records, optima
from sentinel_paper.caution_verdicts import Driven
from sentinel_rl import plotting
from sentinel_rl.study import dominated, summarise

_COLOURS = {"neutral": plotting.BLACK, "additive": plotting.ADDITIVE, "composite": plotting.COMPOSITE}
_MARKERS = "osD^vP"


def draw_frontiers(drawing: Figure, records: Records, worlds: Sequence[str]) -> None:
    """Draw crash rate against speed in every world: an arm has a point for each pair of measures of its kind.

    Points are not joined, and those that another one beats in both quantities are hollow.
    """
    columns = 2 if len(worlds) > 3 else len(worlds)
    panels = np.atleast_1d(drawing.subplots(-(-len(worlds) // columns), columns)).ravel()
    arms = records.arms(HIGHWAY)
    for panel, world in zip(panels, worlds, strict=True):
        points = [
            (arm, measures, records.driven(arm, measures, records.worlds[world]))
            for arm in arms
            for measures in records.candidates(arm)
        ]
        _draw_points(panel, arms, points)
        panel.set(title=world, xlabel="mean speed (m/s)", ylabel="episodes with a crash (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3)


def _draw_points(panel: Axes, arms: Sequence[Arm], points: Sequence[tuple[Arm, Measures, Driven]]) -> None:
    means = [(float(100 * np.nanmean(one.crashes)), float(np.nanmean(one.speed))) for _, _, one in points]
    beaten = dominated(means, (True, False))
    named: set[str] = set()
    for (arm, measures, one), (crashes, speed), hollow in zip(points, means, beaten, strict=True):
        across, up = summarise(one.speed), summarise(100 * one.crashes, worse="high")
        colour = _COLOURS[arm.kind]
        panel.errorbar(
            speed,
            crashes,
            xerr=_bars(across.mean, across.low, across.high),
            yerr=_bars(up.mean, up.low, up.high),
            fmt=_MARKERS[arms.index(arm) % len(_MARKERS)],
            color=colour,
            markerfacecolor="white" if hollow else colour,
            markersize=7,
            linewidth=1,
            label=None if arm.label in named else f"trained {arm.label}",
        )
        if measures.aleatory < 1:
            panel.annotate(
                f"{measures.aleatory:g}".removeprefix("0"),
                (speed, crashes),
                (4, -10) if arm.kind == "additive" else (4, 4),
                textcoords="offset points",
                fontsize=8,
                color=colour,
            )
        named.add(arm.label)


def _bars(mean: float, low: float, high: float) -> list[list[float]]:
    return [[max(mean - low, 0.0)], [max(high - mean, 0.0)]]


def draw_small(drawing: Figure, records: Records, worlds: Sequence[World]) -> None:
    """Draw mean against CVaR .25 of every arm, and the exact optima as lines."""
    panels = np.atleast_1d(drawing.subplots(1, len(worlds)))
    for panel, world in zip(panels, worlds, strict=True):
        best = optima(world)
        panel.axvline(best["best mean, exact"][0], color=plotting.GREY, linewidth=1, linestyle="--", label="best mean")
        tail = best["best CVaR .25, exact"][1]
        panel.axhline(tail, color=plotting.GREY, linewidth=1, linestyle=":", label="best CVaR .25")
        for place, arm in enumerate(records.arms(world)):
            found = records.laws(world, arm)
            across, up = summarise(found["mean"]), summarise(found["CVaR .25"])
            panel.errorbar(
                across.mean,
                up.mean,
                xerr=_bars(across.mean, across.low, across.high),
                yerr=_bars(up.mean, up.low, up.high),
                fmt=_MARKERS[place % len(_MARKERS)],
                color=_COLOURS[arm.kind],
                linewidth=1,
                label=arm.label,
            )
        panel.set(title=world.name, xlabel="mean return", ylabel="CVaR .25 of the return")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def draw_gaps(drawing: Figure, records: Records, worlds: Sequence[World]) -> None:
    """Draw the AUROC of every score, world by world."""
    panels = np.atleast_1d(drawing.subplots(1, len(worlds), sharex=True))
    for panel, world in zip(panels, worlds, strict=True):
        there = records.arms(world)
        for place, score in enumerate(SCORES):
            for row, arm in enumerate(there):
                one = summarise(records.look(world, arm, score))
                height = row + 0.12 * (place - 2.5)
                colour = f"C{place}"
                panel.plot([one.low, one.high], [height] * 2, color=colour, linewidth=1.2)
                panel.plot([one.mean], [height], "o", color=colour, markersize=5, label=None if row else score)
        panel.axvline(0.5, color=plotting.GREY, linewidth=1)
        panel.axvline(KNOWN, color=plotting.GREY, linewidth=1, linestyle="--")
        panel.set(title=world.name, xlabel="AUROC", xlim=(-0.03, 1.03), ylim=(len(there) - 0.4, -0.6))
        panel.set_yticks(range(len(there)), [arm.label for arm in there], fontsize=9)
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
