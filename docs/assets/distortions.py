"""Draw the distortions g(u): ``python docs/assets/distortions.py`` writes distortions.svg beside itself."""

from pathlib import Path

import jax
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from sentinel_rl.risk import CPW, CVaR, Distortion, DualPower, MinMaxVar, ProportionalHazard, VaR, Wang

# One panel per measure; several parameters each, from most averse to least.
PANELS: dict[str, list[tuple[str, Distortion]]] = {
    "CVaR": [(f"alpha {a:g}", CVaR(a)) for a in (0.1, 0.25, 0.5, 1.0)],
    "Wang": [(f"alpha {a:g}", Wang(a)) for a in (0.1, 0.25, 0.5, 0.75)],
    "ProportionalHazard": [(f"kappa {k:g}", ProportionalHazard(k)) for k in (0.25, 0.5, 0.75, 1.0)],
    "DualPower": [(f"k {k:g}", DualPower(k)) for k in (8.0, 4.0, 2.0, 1.0)],
    "MinMaxVar": [(f"x {x:g}", MinMaxVar(x)) for x in (2.0, 1.0, 0.5, 0.0)],
    "CPW and VaR (not coherent)": [
        ("CPW eta 0.5", CPW(0.5)),
        ("CPW eta 0.71", CPW(0.71)),
        ("VaR alpha 0.25", VaR(0.25)),
        ("VaR alpha 0.75", VaR(0.75)),
    ],
}
COLOURS = ("#9e2a2b", "#e07a1f", "#2a7f9e", "#3d405b")
STYLES = ("-", "--", "-.", (0, (1, 1.2)))


def draw(path: Path) -> None:
    """Write the figure."""
    u = np.linspace(0.0, 1.0, 501)
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 6.2), sharex=True, sharey=True, layout="constrained")
    for axis, (title, measures) in zip(axes.flat, PANELS.items(), strict=True):
        axis.plot([0, 1], [0, 1], color="0.75", linewidth=1, zorder=0)
        for (label, measure), colour, style in zip(measures, COLOURS, STYLES, strict=True):
            axis.plot(u, np.asarray(measure.g(u)), color=colour, linestyle=style, linewidth=1.8, label=label)
        axis.set(title=title, xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axis.set_box_aspect(1)
        free = "lower right" if len({type(measure) for _, measure in measures}) == 1 else "upper center"
        axis.legend(loc=free, fontsize=8, frameon=False, borderaxespad=0.4)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("u, probability of doing no better (worst outcomes at the left)", fontsize=10)
    figure.supylabel("g(u), its distorted value", fontsize=10)
    # A white ground reads in light and dark pages; no date, so that the same code gives the same file.
    figure.savefig(path, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "sentinel-rl", "font.size": 9.5, "axes.titlesize": 10.5})
    draw(Path(__file__).with_suffix(".svg"))
