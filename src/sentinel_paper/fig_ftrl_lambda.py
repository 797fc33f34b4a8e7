"""Figure 5: the FTRL parameter lambda on CartPole; the caption says risk-neutral, the text CVaR o CVaR: both."""

import math
from pathlib import Path

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding, by_name
from sentinel_paper.curves import draw_bands
from sentinel_paper.metrics import FALLS, TAIL, VALUE, comparisons, summaries
from sentinel_paper.output import Section
from sentinel_paper.settings import CARTPOLE, NEUTRAL_RISK, PRESETS
from sentinel_paper.trained import Contender, Execution, GridReport, Records, Settings
from sentinel_paper.trained_page import publish_grid
from sentinel_rl import plotting

NAME = "fig-ftrl-lambda"
LAMBDAS = {"0.01": 0.01, "0.1": 0.1, "1": 1.0, "ln 100": math.log(100)}
RISKS = {"CVaR o CVaR": "cvar:0.25", "risk-neutral": NEUTRAL_RISK}


def label(risk: str, lam: str) -> str:
    """What a curve is called."""
    return f"{risk}, λ = {lam}"


CONTENDERS = tuple(
    Contender(label(risk, lam), "sentinel", {"epistemic": measure, "aleatory": measure, "lam": value})
    for risk, measure in RISKS.items()
    for lam, value in LAMBDAS.items()
)
METRICS = (FALLS, VALUE, TAIL)
SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "one-has-fewest-falls",
        "λ = 1 has fewer falls than the large λ = 4.6 and the small ones, 0.01 and 0.1.",
        "section 6, figure 5",
    ),
    Claim(
        "one-has-least-variance",
        "For λ = 1 the variance of the falls is significantly less than for other values.",
        "section 6, figure 5",
    ),
)


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train SENTINEL-4 with every lambda and both risks."""
    return trained.run(CARTPOLE, CONTENDERS, settings, report, execution)


def findings(records: Records) -> list[Finding]:
    """Judge both claims for both risks."""
    return [
        judge(PAPER[name], records, FALLS, label(risk, "1"), _rivals(risk), f"{risk}, preset {records.settings.preset}")
        for risk in RISKS
        for name, judge in (("one-has-fewest-falls", judging.best), ("one-has-least-variance", judging.steadiest))
    ]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        "SENTINEL-4 with four values of λ: λ = 0 averages the members, λ = ∞ selects one of them. The paper's caption "
        "says risk-neutral, its text CVaR .25 o CVaR .25: both are shown. Every agent learns with "
        f"{PRESETS[records.settings.preset].learning}. Falls are episodes ended by the pole or the "
        "cart during all steps of the training."
    )
    compared = [
        Section(f"λ = 1 against the others, {risk}", "", comparisons(records, (FALLS,), label(risk, "1"), rest))
        for risk, rest in ((risk, _rivals(risk)) for risk in RISKS)
    ]
    with plotting.figure(12, 5) as drawing:
        for axes, risk in zip(drawing.subplots(1, 2, sharey=True), RISKS, strict=True):
            draw_bands(axes, records, "terminations_curve", [label(risk, lam) for lam in LAMBDAS])
            axes.set(title=f"falls, {risk}")
            axes.legend()
        return publish_grid(
            *(NAME, records, CONTENDERS, METRICS, drawing, out),
            setup=setup,
            findings=findings(records),
            words=_words(records),
            sections=compared,
        )


def _rivals(risk: str) -> tuple[str, ...]:
    return tuple(label(risk, lam) for lam in LAMBDAS if lam != "1")


def _words(records: Records) -> str:
    falls = summaries(records, FALLS)
    told = []
    for risk in RISKS:
        means = [falls[label(risk, lam)].mean for lam in LAMBDAS]
        told.append(f"{risk}: from {min(means):.0f} to {max(means):.0f} falls over all λ")
    return (
        f"{'; '.join(told)}. λ only matters where members disagree: when they agree, their weights are equal for every "
        "λ."
    )
