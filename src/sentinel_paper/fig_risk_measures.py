"""Figure 4: SENTINEL-4 with four compositions of risk measures on CartPole; the left measure is the epistemic one."""

from pathlib import Path

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding, by_name
from sentinel_paper.curves import draw_bands
from sentinel_paper.metrics import FALLS, TAIL, VALUE, comparisons, summaries
from sentinel_paper.output import Section
from sentinel_paper.settings import CARTPOLE, NEUTRAL_RISK, PRESETS
from sentinel_paper.trained import Contender, Execution, GridReport, Records, Settings
from sentinel_paper.trained_page import draw_dots, publish_grid
from sentinel_rl import plotting

NAME = "fig-risk-measures"
OURS = "CVaR o CVaR"
_MEASURES = {
    OURS: ("cvar:0.25", "cvar:0.25"),
    "Wang o Wang": ("wang:0.1", "wang:0.1"),
    "CVaR o sd": ("cvar:0.25", "mean_std:1"),
    "sd o CVaR": ("mean_std:1", "cvar:0.25"),
}
CONTENDERS = (
    *(
        Contender(label, "sentinel", {"epistemic": outer, "aleatory": inner})
        for label, (outer, inner) in _MEASURES.items()
    ),
    Contender("risk-neutral", "sentinel", {"epistemic": NEUTRAL_RISK, "aleatory": NEUTRAL_RISK}),
)
METRICS = (FALLS, VALUE, TAIL)
COMPARABLE = 0.2
SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "comparable", "SENTINEL-4 performs flexibly and comparably for these composite risks.", "section 6, figure 4"
    ),
)


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train SENTINEL-4 with every pair of measures."""
    return trained.run(CARTPOLE, CONTENDERS, settings, report, execution)


def findings(records: Records) -> list[Finding]:
    """Judge whether the falls are alike."""
    others = [label for label in _MEASURES if label != OURS]
    setting = f"falls, preset {records.settings.preset}"
    return [judging.alike(PAPER["comparable"], records, FALLS, OURS, others, COMPARABLE, setting)]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        "SENTINEL-4 with the paper's four pairs of risk measures: CVaR .25 o CVaR .25, Wang .10 o Wang .10, CVaR .25 o "
        "sd 1, sd 1 o CVaR .25, the epistemic measure first, and a risk-neutral agent beside them. Every agent learns "
        f"with {PRESETS[records.settings.preset].learning}. Falls are episodes "
        "ended by the pole or the cart during all steps of the training. sd is the mean minus the standard deviation: "
        "it is not monotone and so, unlike the paper says, not coherent."
    )
    falls = summaries(records, FALLS)
    least, most = (pick(falls, key=lambda label: falls[label].mean) for pick in (min, max))
    words = (
        f"{least} falls least ({falls[least].mean:.0f}), {most} most ({falls[most].mean:.0f}). The paper prints a "
        "figure without numbers for this experiment: only its words can be judged."
    )
    rivals = [label for label in records.found if label != OURS]
    with plotting.figure(12, 5) as drawing:
        left, right = drawing.subplots(1, 2)
        draw_bands(left, records, "terminations_curve", tuple(records.found))
        left.set(title="falls over training", ylabel="falls")
        left.legend()
        draw_dots(right, records, CONTENDERS, FALLS)
        return publish_grid(
            *(NAME, records, CONTENDERS, METRICS, drawing, out),
            setup=setup,
            findings=findings(records),
            words=words,
            sections=[Section(f"{OURS} against the others", "", comparisons(records, METRICS, OURS, rivals))],
        )
