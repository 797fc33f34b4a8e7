"""Table 1: seven agents on the highway, and drivers that learn nothing."""

from pathlib import Path

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding, by_name
from sentinel_paper.highway_agents import (
    ADDITIVE,
    AGENTS,
    BRAKE,
    CEILING,
    COMPOSITE,
    CONTENDERS,
    NEUTRAL,
    REFERENCE_WORDS,
    RIVALS,
    evaluations,
)
from sentinel_paper.highway_diagnostics import DIAGNOSTICS, diagnostics, draw_diagnostics
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
    overview,
    summaries,
)
from sentinel_paper.output import Section
from sentinel_paper.settings import HIGHWAY, PRESETS, Options
from sentinel_paper.trained import Execution, GridReport, Records, Settings
from sentinel_paper.trained_page import draw_dots, publish_grid
from sentinel_rl import plotting

NAME = "table-highway"
SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "higher-value",
        "SENTINEL-4 with composite CVaR achieves a higher value than all competing algorithms.",
        "abstract, section 6",
    ),
    Claim(
        "higher-tail",
        "It achieves a higher estimate of the aleatory risk (CVaR .25 of the return).",
        "abstract, section 6",
    ),
    Claim("fewer-crashes", "It has fewer crashes.", "abstract, section 6"),
    Claim(
        "least-variance",
        "The variance of the performance metrics over runs is the least for composite CVaR.",
        "section 6",
    ),
    Claim("printed-numbers", "SENTINEL-4 with composite CVaR: value 27.43, CVaR .25 24.16, 341.18 crashes.", "table 1"),
    Claim(
        "beats-published",
        "With composite risk SENTINEL-K has higher risk-sensitive performance than state-of-the-art risk-sensitive and "
        "distributional algorithms.",
        "abstract",
    ),
    Claim(
        "beats-additive",
        "Additive risk leads to worse risk-sensitive performance than composite risk.",
        "section 4, table 1",
    ),
)
# Those that others have published: without SENTINEL's own variants.
PUBLISHED = tuple(label for label in RIVALS if not label.startswith("SENTINEL"))


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train all agents, and evaluate their frozen policies here and in other traffic."""
    return trained.run(HIGHWAY, CONTENDERS, settings, report, execution, evaluations(settings))


def findings(records: Records) -> list[Finding]:
    """Judge the claims, of the frozen policies and of the training."""
    frozen, during = "frozen policies", "episodes of the training"
    found = [
        judging.best(PAPER["higher-value"], records, VALUE, COMPOSITE, RIVALS, frozen),
        judging.best(PAPER["higher-value"], records, TRAINING_VALUE, COMPOSITE, RIVALS, during),
        judging.best(PAPER["higher-tail"], records, TAIL, COMPOSITE, RIVALS, frozen),
        judging.best(PAPER["higher-tail"], records, TRAINING_TAIL, COMPOSITE, RIVALS, during),
        judging.best(
            PAPER["fewer-crashes"], records, CRASHES, COMPOSITE, RIVALS, f"{records.settings.steps} steps of training"
        ),
    ]
    found += [
        judging.steadiest(PAPER["least-variance"], records, metric, COMPOSITE, RIVALS, metric.title) for metric in MAIN
    ]
    printed = AGENTS[-1].printed
    found += [
        judging.reproduced(PAPER["printed-numbers"], records, metric, COMPOSITE, printed[metric.name])
        for metric in MAIN
    ]
    for claim, rivals in ((PAPER["beats-published"], PUBLISHED), (PAPER["beats-additive"], (ADDITIVE,))):
        found += [judging.best(claim, records, metric, COMPOSITE, rivals, metric.title) for metric in (TAIL, CRASHES)]
    return found


MAIN = (VALUE, TAIL, CRASHES)
ALL = (*MAIN, TRAINING_VALUE, TRAINING_TAIL, *TAILS)


def render(records: Records, out: Path) -> list[Path]:
    """Write the figures, the numbers and the page."""
    setup = (
        f"Every agent learns with {PRESETS[records.settings.preset].learning}, on a road with five lanes and ten other "
        "vehicles; all have the same seeds. Crashes are episodes ended by a crash of the ego during the whole "
        "training, exploration included. "
        f"Value and CVaR .25 are of discounted returns of the frozen policy in {records.settings.episodes} episodes, "
        "per run, with the discount .99. Shown are the mean over the runs ± its standard error and the 95 % bootstrap "
        f"interval. {REFERENCE_WORDS}"
    )
    with plotting.figure(11, 10) as drawing:
        draw_diagnostics(records, drawing)
        files = plotting.save(drawing, out / f"{NAME}-diagnostics")
    with plotting.figure(13, 5.2) as drawing:
        for metric, axes in zip(MAIN, drawing.subplots(1, len(MAIN), sharey=True), strict=True):
            draw_dots(axes, records, CONTENDERS, metric, ceiling=CEILING)
        measured = (*ALL, *(metric for shift in evaluations(records.settings) for metric in shifted(shift.name)))
        return files + publish_grid(
            *(NAME, records, CONTENDERS, MAIN, drawing, out),
            setup=setup,
            findings=findings(records),
            words=words(records),
            sections=sections(records),
            statistics=measured,
            single_runs=(*measured, *DIAGNOSTICS),
        )


def words(records: Records) -> str:
    """What the table says, in one paragraph."""
    value, crashes = summaries(records, VALUE), summaries(records, CRASHES)
    top = max((agent.label for agent in AGENTS), key=lambda label: value[label].mean)
    least = min((agent.label for agent in AGENTS), key=lambda label: crashes[label].mean)
    gain = value[top].mean - value[BRAKE].mean
    return (
        f"The highest value of a trained agent is {value[top].mean:.2f} ({top}), {abs(gain):.2f} "
        f"{'above' if gain > 0 else 'below'} a driver who always brakes ({value[BRAKE].mean:.2f}) and "
        f"{value[CEILING].mean - value[top].mean:.2f} below the {CEILING} ({value[CEILING].mean:.2f}). The fewest "
        f"crashes in training has {least} ({crashes[least].mean:.0f}); a random driver has "
        f"{crashes['random'].mean:.0f} in as many steps. Composite and additive risk differ by "
        f"{crashes[COMPOSITE].mean - crashes[ADDITIVE].mean:+.0f} crashes, composite and risk-neutral by "
        f"{crashes[COMPOSITE].mean - crashes[NEUTRAL].mean:+.0f}."
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
        Metric(f"value, {name}", "value", "high", evaluated("value", name)),
        Metric(f"tail, {name}", "CVaR .25", "high", evaluated("tail", name)),
        Metric(
            f"ends_per_1000, {name}", "crashes per 1000 episodes", "low", evaluated("terminations_per_1000", name), 1
        ),
    )
