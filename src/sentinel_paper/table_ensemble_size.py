"""Table 2: falls and seconds of risk-neutral SENTINEL-K on CartPole for K = 1, 2, 4, 8; tuned also on the highway."""

import dataclasses
from pathlib import Path

import numpy as np

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_paper.curves import draw_bands
from sentinel_paper.highway_agents import CEILING, REFERENCE_WORDS, REFERENCES, evaluations
from sentinel_paper.metrics import (
    CRASHES,
    FALLS,
    TAIL,
    TRAINING_VALUE,
    VALUE,
    comparisons,
    overview,
    runs,
    summaries,
)
from sentinel_paper.output import Row, Section, csv_text
from sentinel_paper.settings import CARTPOLE, HIGHWAY, NEUTRAL_RISK, PRESETS
from sentinel_paper.trained import Contender, Execution, GridReport, Settings
from sentinel_paper.trained_page import MEASURED_ONCE, draw_dots, publish_grid, seconds
from sentinel_rl import plotting
from sentinel_rl.storage.atomic import write_file

NAME = "table-ensemble-size"
NEUTRAL = {"epistemic": NEUTRAL_RISK, "aleatory": NEUTRAL_RISK}
# As printed: falls and seconds of one run, means and standard errors over 20 runs.
PRINTED = {
    1: ((5332.4, 404.86), (469.8, 14.2)),
    2: ((4627.8, 386.2), (1886.3, 130.6)),
    4: ((4357.9, 334.4), (4285.6, 204.5)),
    8: ((3532.8, 207.5), (16528.2, 1479.9)),
}
SIZES = tuple(
    Contender(f"K = {size}", "sentinel", {"k": size, **NEUTRAL}, {"falls": falls, "seconds": took})
    for size, (falls, took) in PRINTED.items()
)
# A member of SENTINEL sees a part of the data, CDQN sees all: K = 1 is not CDQN.
OTHERS = (Contender("CDQN", "cdqn"), Contender("random", "random"))
CONTENDERS = (*SIZES, *OTHERS)
LABELS = tuple(size.label for size in SIZES)
METRICS = (FALLS, VALUE, TAIL, TRAINING_VALUE)
# With the paper's constants no size learns to drive: the highway is asked only where agents do.
ON_HIGHWAY = ("tuned",)
DRIVERS = (
    *(dataclasses.replace(contender, printed={}) for contender in (*SIZES, OTHERS[0])),
    *REFERENCES,
)
HIGHWAY_METRICS = (CRASHES, VALUE, TAIL)
HIGHWAY_FILES = f"{NAME}-highway"
SETTINGS = Settings()
PAPER = by_name(
    Claim("printed-falls", "K = 1, 2, 4, 8 fall 5332.4, 4627.8, 4357.9, 3532.8 times.", "table 2 (C.1)"),
    Claim(
        "better-with-size",
        "There is a monotonic increase in performance with the size of the ensemble.",
        "appendix C.1",
    ),
    Claim(
        "slower-with-size",
        "With each added estimator there is a sizeable increase in computation time per experiment.",
        "appendix C.1",
    ),
)


@dataclasses.dataclass(frozen=True)
class Records:
    """The records on CartPole, and those on the highway where there are any."""

    cartpole: trained.Records
    highway: trained.Records | None

    @property
    def settings(self) -> Settings:
        """Those of both."""
        return self.cartpole.settings


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train all sizes; on the highway with the evaluations of the main table, some of whose cells these are."""
    cartpole = trained.run(CARTPOLE, CONTENDERS, settings, report, execution, apart=True)
    if settings.preset not in ON_HIGHWAY:
        return Records(cartpole, None)
    return Records(cartpole, trained.run(HIGHWAY, DRIVERS, settings, report, execution, evaluations(settings)))


def findings(found: Records) -> list[Finding]:
    """Judge the printed numbers, the order, and the seconds, by the falls on CartPole that the paper has."""
    records = found.cartpole
    falls = [
        judging.reproduced(PAPER["printed-falls"], records, FALLS, size.label, size.printed["falls"]) for size in SIZES
    ]
    took = [seconds(records.found[label]) for label in LABELS]
    ratio, printed = took[-1] / took[0], PRINTED[8][1][0] / PRINTED[1][1][0]
    return [
        *falls,
        judging.ordered(PAPER["better-with-size"], records, FALLS, LABELS, f"preset {records.settings.preset}"),
        Finding(
            PAPER["slower-with-size"],
            f"all {records.settings.runs} runs at once",
            Verdict.of(bool(np.all(np.diff(took) > 0)) and ratio > 2),
            f"{', '.join(f'{label}: {one:.2f} s' for label, one in zip(LABELS, took, strict=True))}. K = 8 takes "
            f"{ratio:.1f} times as long as K = 1; in the paper {printed:.0f} times. Sizeable is taken as twice.",
            f"K = 8 takes {ratio:.1f} times as long as K = 1; {MEASURED_ONCE}",
        ),
    ]


def render(found: Records, out: Path) -> list[Path]:
    """Write the figures, the numbers and the page."""
    records, highway = found.cartpole, found.highway
    setup = (
        f"SENTINEL-K, risk-neutral; every agent learns with {PRESETS[records.settings.preset].learning}. Falls are "
        "episodes ended by the pole or the cart during all steps of the training. Value is the mean discounted return "
        "of the frozen policy, at most 86.6. Shown are the mean over the runs ± its standard error and the 95 % "
        "bootstrap interval. CDQN is one member that sees all data; random learns nothing."
    )
    sections = [Section("K = 4 against the others", "", comparisons(records, METRICS, "K = 4", _rivals()))]
    files = []
    if highway is not None:
        sections += _highway_sections(highway)
        with plotting.figure(13, 4.8) as drawing:
            for metric, axes in zip(
                HIGHWAY_METRICS, drawing.subplots(1, len(HIGHWAY_METRICS), sharey=True), strict=True
            ):
                draw_dots(axes, highway, DRIVERS, metric, ceiling=CEILING)
            files += plotting.save(drawing, out / HIGHWAY_FILES)
        files.append(write_file(out / f"{HIGHWAY_FILES}-runs.csv", csv_text(runs(highway, HIGHWAY_METRICS))))
    with plotting.figure(12, 5) as drawing:
        left, right = drawing.subplots(1, 2)
        draw_dots(left, records, CONTENDERS, FALLS)
        draw_bands(right, records, "terminations_curve", tuple(records.found))
        right.set(title="falls over training", ylabel="falls")
        right.legend()
        return files + publish_grid(
            *(NAME, records, CONTENDERS, METRICS, drawing, out),
            setup=setup,
            findings=findings(found),
            words=_words(records),
            sections=sections,
            columns=_seconds(records),
            more=[] if highway is None else [highway],
        )


def _highway_sections(records: trained.Records) -> list[Section]:
    """Whether more members pay on the highway, which the paper does not ask."""
    told = [
        judging.ordered(PAPER["better-with-size"], records, metric, LABELS, metric.title) for metric in HIGHWAY_METRICS
    ]
    words = " ".join(
        f"That {one.setting} get better with every doubling of K: {one.verdict}. {one.reason}" for one in told
    )
    return [
        Section(
            "On the highway",
            f"The same risk-neutral agents on the highway, which the paper does not show and no verdict above counts. "
            f"{words} {REFERENCE_WORDS}",
            overview(records, DRIVERS, HIGHWAY_METRICS),
            HIGHWAY_FILES,
        ),
        Section(
            "K = 4 against the others, on the highway",
            "",
            comparisons(records, HIGHWAY_METRICS, "K = 4", [label for label in (*LABELS, "CDQN") if label != "K = 4"]),
        ),
    ]


def _rivals() -> tuple[str, ...]:
    return tuple(contender.label for contender in CONTENDERS if contender.label != "K = 4")


def _seconds(records: trained.Records) -> list[Row]:
    """Seconds of training per run, and the paper's."""
    rows: list[Row] = []
    for contender in CONTENDERS:
        took = seconds(records.found[contender.label])
        paper = contender.printed.get("seconds")
        rows.append(
            {"s per run": f"{took / records.settings.runs:.2f}", "paper: s per run": f"{paper[0]:.0f}" if paper else ""}
        )
    return rows


def _words(records: trained.Records) -> str:
    falls = summaries(records, FALLS)
    least, most = min(LABELS, key=lambda label: falls[label].mean), max(LABELS, key=lambda label: falls[label].mean)
    ratios = [size.printed["falls"][0] / falls[size.label].mean for size in SIZES]
    tuned = not PRESETS[records.settings.preset].constants
    reading = {
        "tuned": "All agents learn with the library's default learner, which makes an update every second step.",
        "literal": "Target networks are trained by gradients of their own and never copied, as line 12 of the "
        "algorithm reads: the targets that the agents learn from hardly move with what they have learned.",
        "sound": "Target networks are copies of the online ones, as in every DQN, and epsilon declines over a quarter "
        "of the steps; the preset `literal` trains them by gradients of their own, as line 12 of the algorithm reads.",
    }.get(records.settings.preset, "")
    return (
        f"{least} falls least ({falls[least].mean:.0f}), {most} most ({falls[most].mean:.0f}); a random policy falls "
        f"{falls['random'].mean:.0f} times in as many steps. {reading} The paper's falls are {min(ratios):.1f} to "
        f"{max(ratios):.1f} times ours. K = 1 sees {'three quarters' if tuned else 'a third'} of the data, CDQN "
        f"sees all of it and falls {falls['CDQN'].mean:.0f} times: part of the effect of K is one of more data."
    )
