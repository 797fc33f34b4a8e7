"""Table 1: seven agents on the highway, and three policies that learn nothing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding
from sentinel_paper.curves import draw_bands, draw_shares
from sentinel_paper.metrics import (
    CRASHES,
    TAIL,
    TAILS,
    TRAINING_TAIL,
    TRAINING_VALUE,
    VALUE,
    Metric,
    comparisons,
    evaluated,
    first_mean,
    last_mean,
    numbers,
    overview,
    summaries,
)
from sentinel_paper.output import Page, Row, Section
from sentinel_paper.progress import GridReport
from sentinel_paper.settings import HIGHWAY, Options
from sentinel_paper.trained import FROZEN, Contender, Means, Records, Settings
from sentinel_paper.trained_page import about, draw_dots, twenty, write
from sentinel_rl.cli import figures
from sentinel_rl.study.cell import Evaluation

NAME = "table-highway"
COMPOSITE = "SENTINEL-4 composite"
ADDITIVE = "SENTINEL-4 additive"
NEUTRAL = "SENTINEL-4 risk-neutral"
BRAKE = "always SLOWER"


_Pair = tuple[float, float]


def _row(label: str, agent: str, value: _Pair, tail: _Pair, crashes: _Pair, **options: str) -> Contender:
    return Contender(label, agent, options, {"value": value, "tail": tail, "crashes": crashes})


# As printed, means and standard errors over 20 runs.
AGENTS = (
    _row("VDQN", "vdqn", (23.30, 0.36), (14.29, 0.80), (1252.33, 170.35)),
    _row("CDQN", "cdqn", (25.96, 0.51), (19.50, 1.44), (839.53, 150.20)),
    _row(
        *(NEUTRAL, "sentinel", (26.56, 0.32), (20.88, 1.25), (617.11, 100.15)),
        epistemic="expectation",
        aleatory="expectation",
    ),
    _row("VDQN-CVaR", "vdqn-cvar", (24.39, 0.50), (16.64, 1.25), (871.33, 171.23)),
    _row("UA-DQN", "uadqn", (24.46, 0.29), (16.9, 0.44), (1060.65, 13.94)),
    _row(
        *(ADDITIVE, "sentinel", (26.82, 0.42), (21.54, 1.40), (645.55, 127.59)),
        epistemic="expectation",
        aleatory="cvar:0.25",
    ),
    _row(
        *(COMPOSITE, "sentinel", (27.43, 0.13), (24.16, 0.54), (341.18, 43.86)),
        epistemic="cvar:0.25",
        aleatory="cvar:0.25",
    ),
)
# What every highway table needs to be read: policies that learn nothing.
POLICIES = (
    Contender("random", "random"),
    Contender("idle", "random", {"action": 1}),
    Contender(BRAKE, "random", {"action": 4}),
)
CONTENDERS = (*AGENTS, *POLICIES)
RIVALS = tuple(agent.label for agent in AGENTS if agent.label != COMPOSITE)
SHIFTS: Mapping[str, Options] = {"dense traffic": {"vehicles_density": 2.0}}
SETTINGS = Settings()
PAPER = (
    Claim("SENTINEL-4 with composite CVaR achieves a higher value than all competing algorithms.", "section 6"),
    Claim("It achieves a higher estimate of the aleatory risk (CVaR .25 of the return).", "section 6"),
    Claim("It has fewer crashes.", "section 6"),
    Claim("The variance of the performance metrics over runs is the least for composite CVaR.", "section 6"),
    Claim("SENTINEL-4 with composite CVaR: value 27.43, CVaR .25 24.16, 341.18 crashes.", "table 1"),
)


def run(settings: Settings, report: GridReport, means: Means) -> Records:
    """Train all agents, and evaluate their frozen policies here and in other traffic."""
    return trained.run(HIGHWAY, CONTENDERS, settings, report, means, evaluations(settings))


def evaluations(settings: Settings) -> tuple[Evaluation, ...]:
    """The frozen policies in traffic that they were not trained in; each is one more program to compile."""
    shifts = {} if settings.quick else SHIFTS
    return tuple(Evaluation(name, settings.episodes, env_settings=changes) for name, changes in shifts.items())


def findings(records: Records) -> list[Finding]:
    """Judge the claims, of the frozen policies and of the training."""
    frozen, during = "frozen policies", "episodes of the training"
    found = [
        judging.best(PAPER[0], records, VALUE, COMPOSITE, RIVALS, frozen),
        judging.best(PAPER[0], records, TRAINING_VALUE, COMPOSITE, RIVALS, during),
        judging.best(PAPER[1], records, TAIL, COMPOSITE, RIVALS, frozen),
        judging.best(PAPER[1], records, TRAINING_TAIL, COMPOSITE, RIVALS, during),
        judging.best(PAPER[2], records, CRASHES, COMPOSITE, RIVALS, f"{records.settings.steps} steps of training"),
    ]
    found += [judging.steadiest(PAPER[3], records, metric, COMPOSITE, RIVALS, metric.title) for metric in MAIN]
    printed = AGENTS[-1].printed
    return found + [judging.reproduced(PAPER[4], records, metric, COMPOSITE, printed[metric.name]) for metric in MAIN]


MAIN = (VALUE, TAIL, CRASHES)
ALL = (*MAIN, TRAINING_VALUE, TRAINING_TAIL, *TAILS)


def render(records: Records, out: Path) -> list[Path]:
    """Write the figures, the numbers and the page."""
    setup = (
        "Every agent learns with the paper's constants on a road with five lanes and ten other vehicles; all have the "
        "same seeds. Crashes are episodes ended by a crash of the ego during the whole training, exploration included. "
        f"Value and CVaR .25 are of discounted returns of the frozen policy in {records.settings.episodes} episodes, "
        "per run. Shown are the mean over the runs ± its standard error and the 95 % bootstrap interval. The last "
        "three rows learn nothing."
    )
    page = Page(
        NAME,
        records.settings,
        setup,
        overview(records, CONTENDERS, MAIN),
        findings(records),
        words(records),
        sections(records),
        about(records),
    )
    with figures.figure(11, 10) as drawing:
        _draw_diagnostics(records, drawing)
        files = figures.save(drawing, out / f"{NAME}-diagnostics")
    with figures.figure(13, 5.2) as drawing:
        for metric, axes in zip(MAIN, drawing.subplots(1, len(MAIN), sharey=True), strict=True):
            draw_dots(axes, records, CONTENDERS, metric)
        return write(page, drawing, records, numbers(records, CONTENDERS, ALL), ALL, out) + files


def words(records: Records) -> str:
    """What the table says, in one paragraph."""
    value, crashes = summaries(records, VALUE), summaries(records, CRASHES)
    top = max((agent.label for agent in AGENTS), key=lambda label: value[label].mean)
    least = min((agent.label for agent in AGENTS), key=lambda label: crashes[label].mean)
    gain = value[top].mean - value[BRAKE].mean
    return (
        f"The highest value of a trained agent is {value[top].mean:.2f} ({top}), {abs(gain):.2f} "
        f"{'above' if gain > 0 else 'below'} a driver who always brakes ({value[BRAKE].mean:.2f}). The fewest crashes "
        f"in training has {least} ({crashes[least].mean:.0f}); a random driver has {crashes['random'].mean:.0f} in as "
        f"many steps. Composite and additive risk differ by {crashes[COMPOSITE].mean - crashes[ADDITIVE].mean:+.0f} "
        f"crashes, composite and risk-neutral by {crashes[COMPOSITE].mean - crashes[NEUTRAL].mean:+.0f}."
    )


def sections(records: Records) -> list[Section]:
    """The tables a careful reader asks for."""
    return [
        Section(
            "Composite against the others",
            "Differences are composite minus the other, run by run with the same seed.",
            comparisons(records, MAIN, COMPOSITE, RIVALS),
        ),
        Section("Over the training", "", overview(records, CONTENDERS, (TRAINING_VALUE, TRAINING_TAIL))),
        Section("The tail of the frozen policies", "", overview(records, CONTENDERS, TAILS)),
        *(
            Section(
                f"Frozen policies in other traffic: {shift.name}",
                f"Trained as above, evaluated with {_listed(shift.env_settings)}.",
                overview(records, CONTENDERS, shifted(shift.name)),
            )
            for shift in evaluations(records.settings)
        ),
        *twenty(records, CONTENDERS, MAIN),
        Section(
            "Diagnostics",
            "Penalties are what the members' disagreement (epistemic) and the spread of the returns (aleatory) take "
            "from the value of the action chosen, at the first and the last tenth of the training. `clipped` is the "
            "share of target mass beyond the ends of the support. The last two columns are shares of decisions of the "
            "frozen policy in which additive or risk-neutral choice would have been another.",
            diagnostics(records),
            f"{NAME}-diagnostics",
        ),
    ]


def _listed(changes: Options) -> str:
    return ", ".join(f"{key} = {value}" for key, value in changes.items())


def shifted(name: str) -> tuple[Metric, ...]:
    """The metrics of the frozen policies under a shift."""
    return (
        Metric("value", "value", "high", evaluated("mean", name)),
        Metric("tail", "CVaR .25", "high", evaluated("cvar_25", name)),
        Metric("ends", "crashes per 1000 episodes", "low", evaluated("terminations_per_1000", name), 1),
    )


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


def _draw_diagnostics(records: Records, drawing: Figure) -> None:
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
