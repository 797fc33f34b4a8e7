"""Figure 9 (example 3): when does a decision maker take an action whose odds are uncertain?

The problem and its values are in `beta_belief`: a belief with mean m and concentration c about the odds of an action
(the paper's Beta(1, 1) is c = 2, m = 1/2), which is valued risk-neutrally, with additive and with composite CVaR.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from sentinel_paper import beta_belief
from sentinel_paper.beta_belief import Thresholds, Values
from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_paper.output import Page, Row, publish
from sentinel_rl import plotting

NAME = "gaussian-estimators"
PRINTED_CONCENTRATION, PRINTED_MEAN = 2.0, 0.5
CLOSE = 0.01


@dataclasses.dataclass(frozen=True)
class Settings:
    """The paper's example, for more beliefs than the one it prints."""

    alpha: float = 0.25
    concentrations: tuple[float, ...] = tuple(2.0**power for power in range(15))
    shown: tuple[float, ...] = (2.0, 16.0, 128.0)
    belief_means: tuple[float, ...] = tuple(np.linspace(0.02, 0.98, 49).round(2).tolist())


@dataclasses.dataclass(frozen=True)
class Records:
    """Values of the uncertain action, one `Values` over the belief means per concentration shown, and thresholds."""

    settings: Settings
    safe: float
    printed: Values
    shown: tuple[Values, ...]
    thresholds: Thresholds


SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "optimal-in-the-limit",
        "As the belief concentrates, both the composite and the additive risk end up with the optimal behaviour.",
        "appendix C.3",
    ),
    Claim(
        "differ-when-uncertain",
        "The main difference in behaviour arises in situations with high parameter uncertainty.",
        "appendix C.3",
    ),
)


def run(settings: Settings, report: Callable[[int, int], None]) -> Records:
    """Compute the values on a grid of beliefs, then solve for the thresholds."""
    means, alpha = settings.belief_means, settings.alpha
    mean = np.array([PRINTED_MEAN, *(means * len(settings.shown))])
    concentration = np.array([PRINTED_CONCENTRATION, *np.repeat(settings.shown, len(means))])
    found = beta_belief.values(mean, concentration, alpha)
    rows = range(1, mean.size, len(means))
    return Records(
        settings,
        beta_belief.safe_value(alpha),
        found[0],
        tuple(found[row : row + len(means)] for row in rows),
        beta_belief.thresholds(np.array(settings.concentrations), alpha, report),
    )


def findings(records: Records) -> list[Finding]:
    """Judge both claims by the thresholds, from the paper's concentration on."""
    settings, found = records.settings, records.thresholds
    sizes = np.array(settings.concentrations)
    since = sizes >= PRINTED_CONCENTRATION
    gaps = {kind: np.abs(getattr(found, kind)[since] - found.known) for kind in ("additive", "composite")}
    apart = (found.composite - found.additive)[since]
    setting = f"concentration {sizes[since][0]:g} to {sizes[since][-1]:g}"
    shrinks = all((np.diff(gap) < 0).all() for gap in gaps.values())
    said = "; ".join(
        f"{kind} is off by {gap[0]:.4f} at first and by {gap[-1]:.4f} at last" for kind, gap in gaps.items()
    )
    return [
        Finding(
            PAPER["optimal-in-the-limit"],
            setting,
            Verdict.of(shrinks and all(gap[-1] < CLOSE for gap in gaps.values())),
            f"with omega known, the uncertain action is taken above {found.known:.4f}; {said}. The distance "
            f"{'shrinks' if shrinks else 'does not shrink'} with every doubling.",
            f"off by at most {max(gap[-1] for gap in gaps.values()):.4f} at concentration {sizes[-1]:g}; exact",
        ),
        Finding(
            PAPER["differ-when-uncertain"],
            setting,
            Verdict.of(bool((np.diff(apart) < 0).all())),
            f"the belief means above which additive and composite risk take the uncertain action are {apart[0]:.4f} "
            f"apart at first and {apart[-1]:.4f} at last.",
            f"thresholds {apart[0]:.4f} apart at first, {apart[-1]:.4f} at last; exact",
        ),
    ]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        "The safe action pays N(0, 1). The uncertain one pays N(1, 1) with probability omega, else N(-1, 1), and omega "
        "is known only by a Beta belief with a mean and a concentration (the number of observations it is worth). "
        f"CVaR {records.settings.alpha:g} throughout: the safe action is worth {records.safe:.4f}. The table shows the "
        "mean of the belief above which each decision maker takes the uncertain action; risk-neutral does above 0.5."
    )
    page = Page(NAME, records.settings, setup, _results(records), findings(records), _words(records))
    with plotting.figure(10, 8) as drawing:
        grid = drawing.subplots(2, 2).ravel()
        for place, axes in enumerate(grid[:-1]):
            _draw_values(records, place, axes)
        grid[0].legend(loc="upper left")
        _draw_thresholds(records, grid[-1])
        return publish(page, drawing, _numbers(records), out)


def _numbers(records: Records) -> list[Row]:
    """Thresholds for all concentrations, then values of the uncertain action for those shown."""
    settings, found = records.settings, records.thresholds
    rows: list[Row] = [
        {"quantity": "threshold", "concentration": size, "belief_mean": "", "risk_neutral": 0.5}
        | {"additive": found.additive[row], "composite": found.composite[row], "known_omega": found.known}
        for row, size in enumerate(settings.concentrations)
    ]
    for size, worth in zip(settings.shown, records.shown, strict=True):
        rows += [
            {"quantity": "value", "concentration": size, "belief_mean": mean, "risk_neutral": worth.neutral[row]}
            | {"additive": worth.additive[row], "composite": worth.composite[row], "known_omega": worth.known[row]}
            for row, mean in enumerate(settings.belief_means)
        ]
    return rows


def _results(records: Records) -> list[Row]:
    return [
        {"concentration": f"{row['concentration']:g}", "additive": f"{row['additive']:.4f}"}
        | {"composite": f"{row['composite']:.4f}", "omega known": f"{row['known_omega']:.4f}"}
        for row in _numbers(records)
        if row["quantity"] == "threshold"
    ]


def _words(records: Records) -> str:
    found, printed = records.thresholds, records.printed
    bold = "earlier" if (found.additive < found.known).all() else "not always earlier"
    wary = "later" if (found.composite > found.known).all() else "not always later"
    peak = records.settings.concentrations[int(np.argmax(found.composite))]
    return (
        f"Additive risk takes the uncertain action {bold} than someone who knows omega, composite risk {wary}. The "
        "CVaR of the uncertain action is convex in omega, so that averaging it over a belief rewards uncertainty; "
        "composite risk counts only the worst part of the belief and asks for evidence first. Composite is most "
        f"cautious at concentration {peak:g}: below that a belief is nearly all or nothing.\n\n"
        f"Under the belief the paper prints, Beta(1, 1), the uncertain action is worth {float(printed.neutral):.4f} to "
        f"a risk-neutral decision maker (as much as the safe one), {float(printed.additive):.4f} with additive and "
        f"{float(printed.composite):.4f} with composite risk ({float(printed.known):.4f} in total), against "
        f"{records.safe:.4f} for the safe one."
    )


def _draw_values(records: Records, place: int, axes: Axes) -> None:
    """How much better the uncertain action looks than the safe one."""
    means, worth = records.settings.belief_means, records.shown[place]
    axes.plot(means, worth.neutral, color=plotting.NEUTRAL, label="risk-neutral")
    axes.plot(means, worth.additive - records.safe, color=plotting.ADDITIVE, label="additive")
    axes.plot(means, worth.composite - records.safe, color=plotting.COMPOSITE, label="composite")
    axes.plot(means, worth.known - records.safe, color=plotting.BLACK, linewidth=1.4, linestyle=":", label="ω known")
    axes.axhline(0, color=plotting.BLACK, linewidth=1)
    axes.set(title=f"belief worth {records.settings.shown[place]:g} observations", xlabel="mean of the belief")
    axes.set_ylabel("uncertain minus safe")


def _draw_thresholds(records: Records, axes: Axes) -> None:
    """Where each decision maker begins to take the uncertain action."""
    sizes, found = records.settings.concentrations, records.thresholds
    axes.plot(sizes, found.composite, "o-", color=plotting.COMPOSITE, label="composite")
    axes.plot(sizes, found.additive, "o-", color=plotting.ADDITIVE, label="additive")
    axes.axhline(found.known, color=plotting.BLACK, linewidth=1.4, linestyle=":", label="ω known")
    axes.axhline(0.5, color=plotting.NEUTRAL, label="risk-neutral")
    axes.set(title="uncertain action taken above", xlabel="observations behind the belief", ylabel="mean of the belief")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 16, 256, 4096], labels=["1", "16", "256", "4096"])
    axes.legend(loc="upper right")
