"""One figure of a calibration, and one of a hand-over."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentinel_rl import plotting
from sentinel_rl.calibration.calibrate import BINS, TAILS, Calibration, summary
from sentinel_rl.calibration.handover import WITHIN, Handover

_BEFORE, _AFTER = plotting.RED, plotting.BLUE
_SETTLED = 0.05


def draw_calibration(drawing: Figure, told: Calibration) -> None:
    """Draw three pictures: the PIT histogram, the reliability of all levels, and the lower tails with intervals."""
    histogram, reliability, tails = drawing.subplots(1, 3)
    _histogram(histogram, told)
    _reliability(reliability, told)
    _tails(tails, told)
    drawing.legend(*histogram.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _histogram(axes: Axes, told: Calibration) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    for name, scores, colour in (("predicted", told.before, _BEFORE), ("recalibrated", told.after, _AFTER)):
        counts = summary(scores).histogram
        axes.stairs(counts / counts.sum() * BINS, edges, color=colour, label=name, linewidth=2.4)
    axes.axhline(1.0, color=plotting.GREY, linestyle=":", label="calibrated")
    axes.set(xlabel="PIT of the mixture", ylabel="density", title="Where returns fell", xlim=(0, 1), ylim=(0, None))


def _reliability(axes: Axes, told: Calibration) -> None:
    expected = np.linspace(0, 1, 201)
    for levels, colour in zip(told.levels, (_BEFORE, _AFTER), strict=True):
        axes.plot(expected, np.searchsorted(np.sort(levels), expected) / levels.size, color=colour)
    axes.plot([0, 1], [0, 1], color=plotting.GREY, linestyle=":")
    axes.set(xlabel="predicted probability", ylabel="frequency", title="All quantiles", xlim=(0, 1), ylim=(0, 1))


def _tails(axes: Axes, told: Calibration) -> None:
    places = np.arange(len(TAILS))
    for shift, scores, colour in ((-0.14, told.before, _BEFORE), (0.14, told.after, _AFTER)):
        for score in scores[:-1]:
            shares = [100 * share.share for share in score.below]
            axes.plot(places + 1.8 * shift, shares, ".", color=colour, alpha=0.4, markersize=5)
        below = np.array(summary(scores).below) * 100
        reach = [below[:, 0] - below[:, 1], below[:, 2] - below[:, 0]]
        axes.errorbar(places + shift, below[:, 0], reach, fmt="o", color=colour, capsize=4, markersize=6)
    for place, level in zip(places, TAILS, strict=True):
        axes.hlines(100 * level, place - 0.4, place + 0.4, color=plotting.GREY, linestyle=":")
    axes.set(ylabel="returns below it, %", title="Lower tails (dots: members)", ylim=(0, None))
    axes.set_xticks(places, [f"{level:.0%}" for level in TAILS])
    axes.set_xlabel("predicted quantile")


def draw_handover(drawing: Figure, told: Handover) -> None:
    """Draw two pictures: risk by coverage without playing, and what episodes with the fallback were like."""
    curve, played = drawing.subplots(1, 2)
    curve.plot(100 * told.curve.coverage, 100 * told.curve.risk, color=_AFTER)
    curve.axhline(100 * told.curve.at_random, color=plotting.GREY, linestyle=":")
    curve.set(xlabel="decisions kept, %", ylabel=f"an end within {WITHIN} decisions, %")
    # The first few cases alone make a mean that jumps.
    settled = told.curve.risk[told.curve.coverage >= _SETTLED]
    highest = 100 * max(float(settled.max()), told.curve.at_random)
    curve.set(title="Without playing", xlim=(0, 100), ylim=(0, 1.2 * highest or 1.0))
    for by, colour, shift in ((told.score, _AFTER, -0.3), ("random", plotting.GREY, 0.3)):
        arms = [arm for arm in told.arms if arm.by == by]
        handed = np.array([100 * arm.handed_over for arm in arms]) + shift
        ended = 100 * np.array([arm.terminated for arm in arms]).reshape(-1, 3)
        reach = [ended[:, 0] - ended[:, 1], ended[:, 2] - ended[:, 0]]
        played.errorbar(handed, ended[:, 0], reach, fmt="o", color=colour, capsize=4, label=by)
    played.set(xlabel="decisions handed over, %", ylabel="episodes that ended early, %")
    played.set(title="Played with the fallback", ylim=(0, None))
    drawing.legend(*played.get_legend_handles_labels(), loc="outside lower center", ncols=2)
