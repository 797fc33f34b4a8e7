"""The experiments of the paper, and the statements of the paper that they decide.

A statement is a sentence of the paper and one line of the report. It cites the claims that decide it by their names,
``experiment/claim``. Not listed are sentences that no experiment can decide: what is novel, what others have done, what
could be investigated, and why value and crashes improve together.
"""

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from sentinel_paper.claims import Claim, Finding

# What is no table or figure of the paper, and counted by no statement of it.
BEYOND = "beyond the paper"
ABSTRACT, THEORY, SECTION, APPENDIX = "abstract", "theorems and examples", "section 6", "appendix"
# The parts of the paper whose statements the headline of report and README counts.
HEADLINE_PARTS = (ABSTRACT, SECTION)


class Recipe(Protocol):
    """What the module of an experiment offers; `sentinel_paper` says what each name means."""

    SETTINGS: Any
    PAPER: Mapping[str, Claim]

    def run(self, settings: Any, report: Callable[..., None], *execution: Any) -> Any:
        """Compute the records; a grid reports its `GridProgress` and is given its `trained.Execution`."""

    def findings(self, records: Any) -> list[Finding]:
        """Judge the claims."""

    def render(self, records: Any, out: Path) -> list[Path]:
        """Write the files."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or a study beyond it.

    Args:
        name: what ``sentinel reproduce`` calls it; its module has the same name with underscores.
        title: what it shows.
        where: its place in the paper.
        grid: whether it is a grid of trained agents: its records are kept, and one of the paper can be run under every
            preset.
    """

    name: str
    title: str
    where: str
    grid: bool = True

    def load(self) -> Recipe:
        """Import the module of the experiment."""
        module = importlib.import_module(f"sentinel_paper.{self.name.replace('-', '_')}")
        return cast(Recipe, module)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A sentence of the paper, counted once.

    Args:
        part: of the paper, which the table is ordered by.
        name: a short slug by which everything cites the statement.
        text: the sentence, shortened.
        where: its place.
        evidence: the claims that decide it, each as ``experiment/claim``.
    """

    part: str
    name: str
    text: str
    where: str
    evidence: tuple[str, ...]

    def claims(self) -> dict[str, list[str]]:
        """The names of the claims that decide it, by experiment.

        Example:
            >>> Statement("part", "both", "Both hold.", "here", ("table/a", "table/b", "figure/c")).claims()
            {'table': ['a', 'b'], 'figure': ['c']}
        """
        found: dict[str, list[str]] = {}
        for reference in self.evidence:
            experiment, claim = reference.split("/")
            found.setdefault(experiment, []).append(claim)
        return found


EXPERIMENTS = (
    Experiment("theorems", "Coherence, and composite against additive risk", "theorems 1, 2 (section 4)", grid=False),
    Experiment("gauss-mix-cvar", "Composite, additive and total risk of a mixture", "figures 2, 8", grid=False),
    Experiment("gaussian-estimators", "Safe or uncertain action under a belief", "figure 9 (C.3)", grid=False),
    Experiment("ftrl-gaussians", "FTRL weights of three Gaussian estimators", "figure 10 (D.2)", grid=False),
    Experiment("table-highway", "Seven agents on the highway: value, tail, crashes", "table 1"),
    Experiment("fig-highway-crashes", "Crashes on the highway over training", "figure 3"),
    Experiment("fig-risk-measures", "Four compositions of risk measures on CartPole", "figure 4"),
    Experiment("fig-ftrl-lambda", "The FTRL parameter lambda on CartPole", "figure 5"),
    Experiment("table-ensemble-size", "Falls and seconds for K = 1, 2, 4, 8", "table 2 (C.1)"),
    Experiment("table-compute", "Seconds per agent on the highway", "table 4 (D.3)"),
    Experiment("fig-toy-laws", "Learned return laws of a known MDP", "figure 6 (C.2)", grid=False),
    Experiment("fig-toy-wasserstein", "Distance of learned from true laws", "figure 7 (C.2)", grid=False),
)
# Studies of this library: commands and report know them, the paper's claims do not.
STUDIES = (Experiment("caution", "Where caution pays: composite against additive against neutral", BEYOND),)

STATEMENTS = (
    Statement(
        ABSTRACT,
        "coherent-quantification",
        "Composite risk is a coherent quantification of risk.",
        "abstract",
        ("theorems/composite-coherent",),
    ),
    Statement(
        ABSTRACT,
        "additive-as-special-case",
        "The additive formulation is a particular case of the composite risk, with the expectation for the epistemic "
        "risk measure.",
        "abstract",
        ("theorems/additive-special-case",),
    ),
    Statement(
        ABSTRACT,
        "most-sensitive",
        "Composite risk is more sensitive to both aleatory and epistemic uncertainty than the individual and additive "
        "formulations.",
        "abstract",
        ("theorems/more-sensitive",),
    ),
    Statement(
        ABSTRACT,
        "better-distribution-estimates",
        "SENTINEL-K estimates the return distribution better.",
        "abstract; C.2",
        ("fig-toy-wasserstein/closer-than-vdqn",),
    ),
    Statement(
        ABSTRACT,
        "higher-risk-sensitive-performance",
        "With composite risk estimates, SENTINEL-K demonstrates higher risk-sensitive performance than "
        "state-of-the-art risk-sensitive and distributional RL algorithms.",
        "abstract",
        ("table-highway/beats-published",),
    ),
    Statement(
        SECTION,
        "higher-value",
        "SENTINEL-4 with composite CVaR achieves a higher value than all others.",
        "section 6, table 1, summary",
        ("table-highway/higher-value",),
    ),
    Statement(
        SECTION,
        "higher-tail",
        "It achieves a higher estimate of aleatory risk (CVaR .25 of the return).",
        "section 6, table 1, summary",
        ("table-highway/higher-tail",),
    ),
    Statement(
        SECTION, "fewer-crashes", "It has fewer crashes.", "section 6, table 1", ("table-highway/fewer-crashes",)
    ),
    Statement(
        SECTION,
        "least-crashes-over-training",
        "It causes the least number of crashes (figure, 1e5 and 1e6 steps).",
        "section 6, figure 3, summary",
        ("fig-highway-crashes/least-crashes",),
    ),
    Statement(
        SECTION,
        "least-variance",
        "The variance of the performance metrics over runs is the least for composite CVaR.",
        "section 6",
        ("table-highway/least-variance",),
    ),
    Statement(
        SECTION,
        "printed-highway-numbers",
        "SENTINEL-4 with composite CVaR: value 27.43 ± 0.13, CVaR .25 24.16 ± 0.54, crashes 341.18 ± 43.86.",
        "table 1",
        ("table-highway/printed-numbers",),
    ),
    Statement(
        SECTION,
        "composed-measures-coherent",
        "The risk measures composed are coherent: CVaR, Wang, and the standard deviation.",
        "section 6, heterogeneous risk measures",
        ("theorems/wang-and-sd-coherent",),
    ),
    Statement(
        SECTION,
        "any-combination",
        "Any combination of coherent risk measures is possible.",
        "section 6, heterogeneous risk measures, summary",
        ("theorems/composite-coherent",),
    ),
    Statement(
        SECTION,
        "comparable-compositions",
        "SENTINEL-4 performs flexibly and comparably for these composite risks.",
        "section 6, figure 4, summary",
        ("fig-risk-measures/comparable",),
    ),
    Statement(
        SECTION,
        "lambda-zero-averages",
        "As λ → 0 we perform standard model averaging.",
        "section 6, FTRL; D.2",
        ("ftrl-gaussians/average-at-zero",),
    ),
    Statement(
        SECTION,
        "lambda-infinity-greedy",
        "As λ → ∞ selection is greedy towards the best average estimator, the most similar to the marginal.",
        "section 6, FTRL; D.2",
        ("ftrl-gaussians/greedy-at-infinity",),
    ),
    Statement(
        SECTION,
        "lambda-one-fewest-falls",
        "FTRL with λ = 1 has fewer falls than λ = 4.6, 0.1 and 0.01: better than averaging and than greedy selection.",
        "section 6, figure 5, summary",
        ("fig-ftrl-lambda/one-has-fewest-falls",),
    ),
    Statement(
        SECTION,
        "lambda-one-least-variance",
        "For λ = 1 the variance of the falls is significantly less than for other values.",
        "section 6, figure 5",
        ("fig-ftrl-lambda/one-has-least-variance",),
    ),
    Statement(
        SECTION,
        "four-members-justified",
        "K = 4 is justified: falls decrease with K, while every estimator costs time.",
        "section 6; C.1, table 2",
        ("table-ensemble-size/better-with-size", "table-ensemble-size/slower-with-size"),
    ),
    Statement(
        SECTION,
        "converges-in-distribution",
        "SENTINEL converges in return distribution.",
        "section 6, summary; C.2, figures 6 and 7",
        ("fig-toy-wasserstein/sentinel-converges", "fig-toy-laws/close-after-5000"),
    ),
    Statement(
        SECTION,
        "multimodal-return",
        "This is shown for a multimodal return distribution.",
        "section 6, summary; C.2",
        ("fig-toy-wasserstein/multimodal",),
    ),
    Statement(
        THEORY,
        "theorem-1",
        "The composite of two coherent measures is coherent.",
        "theorem 1",
        ("theorems/composite-coherent",),
    ),
    Statement(
        THEORY, "theorem-2-i", "F^A(U_A, β) = F^C(U_A, I, β).", "theorem 2 i", ("theorems/additive-special-case",)
    ),
    Statement(
        THEORY,
        "theorem-2-ii",
        "F^C ≥ F^A as losses: additive risk always underestimates the composite effect.",
        "theorem 2 ii, section 4",
        ("theorems/composite-more-cautious",),
    ),
    Statement(
        THEORY,
        "cvar-coherent",
        "CVaR is coherent; variance is not homogeneous, VaR not subadditive.",
        "section 3.1",
        ("theorems/cvar-coherent",),
    ),
    Statement(
        THEORY,
        "additive-underestimates-total",
        "Additive CVaR strictly underestimates the total CVaR of a mixture.",
        "example 1, figures 2 and 8",
        ("gauss-mix-cvar/additive-underestimates",),
    ),
    Statement(
        THEORY,
        "composite-closer-to-total",
        "Composite CVaR is closer to the total than additive, for α up to 0.5.",
        "example 1, figures 2 and 8, section 7",
        ("gauss-mix-cvar/composite-closer",),
    ),
    Statement(
        THEORY,
        "additive-performs-worse",
        "Additive risk leads to worse risk-sensitive performance than composite risk.",
        "section 4, table 1",
        ("table-highway/beats-additive",),
    ),
    Statement(
        APPENDIX,
        "printed-falls",
        "K = 1, 2, 4, 8 fall 5332, 4628, 4358, 3533 times.",
        "table 2 (C.1)",
        ("table-ensemble-size/printed-falls",),
    ),
    Statement(
        APPENDIX,
        "vdqn-does-not-converge",
        "VDQN fails to converge to the true return distribution.",
        "C.2, figure 7",
        ("fig-toy-wasserstein/vdqn-does-not-converge",),
    ),
    Statement(
        APPENDIX,
        "optimal-as-belief-concentrates",
        "As the belief concentrates, composite and additive risk end up with the optimal behaviour; they differ where "
        "uncertainty is high.",
        "C.3, figure 9",
        ("gaussian-estimators/optimal-in-the-limit", "gaussian-estimators/differ-when-uncertain"),
    ),
    Statement(
        APPENDIX,
        "printed-ftrl-weights",
        "The example of FTRL weights: KL(m || f) = [.48, .92, .74], weights [.26, .40, .34].",
        "D.2, figure 10",
        ("ftrl-gaussians/printed-losses", "ftrl-gaussians/printed-weights"),
    ),
    Statement(
        APPENDIX,
        "similar-compute-time",
        "Compute time is similar in most cases.",
        "D.3",
        ("table-compute/similar-time",),
    ),
    Statement(
        APPENDIX,
        "three-times-cdqn-time",
        "SENTINEL-4 takes 3.4 times as long as CDQN.",
        "table 4 (D.3)",
        ("table-compute/printed-ratio",),
    ),
)


def find(name: str) -> Experiment:
    """Return an experiment.

    Raises:
        ValueError: for a name that is unknown; the nearest is suggested.
    """
    known = {experiment.name: experiment for experiment in (*EXPERIMENTS, *STUDIES)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(
        f"unknown experiment {name!r}: {hint}There are {', '.join(known)}, and those of the paper with 'all'"
    )
