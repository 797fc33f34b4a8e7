"""Learning curves with bands, and histograms, in the style of all plotting."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from sentinel_paper.output import Row
from sentinel_paper.trained import Records
from sentinel_rl import plotting
from sentinel_rl.study.learning_curves import band

_NOTIONS = {"composite": plotting.COMPOSITE, "additive": plotting.ADDITIVE, "risk-neutral": plotting.NEUTRAL}
_OTHERS = (plotting.GREEN, plotting.ORANGE, plotting.PURPLE, plotting.SKY, plotting.BLACK, *_NOTIONS.values())


def colours(labels: Sequence[str]) -> dict[str, str]:
    """One colour per label: that of a notion for an agent which is named after it and nothing else."""
    known = {label: shade for label in labels for notion, shade in _NOTIONS.items() if label.endswith(notion)}
    rest = [label for label in labels if label not in known]
    free = [shade for shade in _OTHERS if shade not in known.values()]
    return known | {label: free[place % len(free)] for place, label in enumerate(rest)}


def draw_bands(axes: Axes, records: Records, array: str, labels: Sequence[str]) -> None:
    """Draw the mean curve of every label with its interval."""
    shades = colours(labels)
    for label in labels:
        record = records.found[label]
        if array not in record.arrays:
            continue
        steps, (mean, low, high) = record.arrays["steps"], band(np.asarray(record.arrays[array], np.float64))
        axes.plot(steps, mean, color=shades[label], label=label)
        axes.fill_between(steps, low, high, color=shades[label], alpha=0.2, linewidth=0)
    axes.set_xlabel("steps")


def draw_shares(axes: Axes, shares: Mapping[str, np.ndarray], names: Sequence[str]) -> None:
    """Draw the shares ``[S, bins]`` of several labels as groups of bars, means over the runs."""
    shades, width = colours(list(shares)), 0.8 / max(1, len(shares))
    for place, (label, share) in enumerate(shares.items()):
        middles = np.arange(len(names)) + (place - (len(shares) - 1) / 2) * width
        axes.bar(middles, np.nanmean(share, axis=0), width, color=shades[label], label=label)
    every = max(1, len(names) // 10)
    axes.set_xticks(range(0, len(names), every), names[::every])
    axes.set_ylabel("share")


def curve_rows(records: Records) -> list[Row]:
    """The learning curves of all contenders, as ``NAME-curves.csv`` has them: mean and interval at every point."""
    arrays = {records.task.ends: "terminations_curve", "return": "return_curve"}
    rows: list[Row] = []
    for curve, array in arrays.items():
        for label, record in records.found.items():
            if array not in record.arrays:
                continue
            told = band(np.asarray(record.arrays[array], np.float64))
            rows += [
                {"curve": curve, "horizon": records.settings.steps, "agent": label, "steps": int(step)}
                | {"mean": mean, "low": low, "high": high}
                for step, mean, low, high in zip(record.arrays["steps"], *told, strict=True)
                if np.isfinite(mean)
            ]
    return rows
