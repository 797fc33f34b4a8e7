"""What one needs to believe the highway's table, per agent."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sentinel_paper.curves import draw_bands, draw_shares
from sentinel_paper.highway_agents import ADDITIVE, AGENTS, BRAKE, COMPOSITE, NEUTRAL, RIVALS
from sentinel_paper.metrics import first_mean, last_mean
from sentinel_paper.output import Row
from sentinel_paper.trained import FROZEN, Records


def diagnostics(records: Records) -> list[Row]:
    """What one needs to believe the table, per agent."""
    rows: list[Row] = []
    for agent in AGENTS:
        record = records.found[agent.label]
        row = {"agent": agent.label}
        for kind in ("epistemic", "aleatory"):
            row[f"{kind} penalty, first"] = _told(first_mean(record, f"metric/{kind}"))
            row[f"{kind} penalty, last"] = _told(last_mean(record, f"metric/{kind}"))
        clipped = [last_mean(record, f"metric/clip_{end}") for end in ("low", "high")]
        row["clipped low, high"] = ", ".join(_told(part) for part in clipped)
        for kind in ("additive", "neutral"):
            share = record.arrays.get(f"choices/{kind}")
            row[f"other choice if {kind}"] = "" if share is None else _told(float(np.mean(share)))
        rows.append(row)
    return rows


def _told(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else ""


def draw_diagnostics(records: Records, drawing: Figure) -> None:
    """Draw penalties and returns over training, and where and how fast the frozen policies drive."""
    sentinels = (COMPOSITE, ADDITIVE, NEUTRAL)
    grid = drawing.subplots(2, 2).ravel()
    draw_bands(grid[0], records, "metric/epistemic", sentinels)
    grid[0].set(title="epistemic penalty over training")
    draw_bands(grid[1], records, "return_curve", (COMPOSITE, *RIVALS))
    grid[1].set(title="return of training episodes")
    shown: Sequence[str] = (*sentinels, "CDQN", BRAKE)
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
