"""Every claim of the paper's abstract, of its section 6, its theorems and its appendix, and where each is judged.

A statement is the paper's; the findings of one or more claims of the experiments are the evidence. Not listed are
sentences that no experiment can decide: what is novel, what others have done, what could be investigated, and why value
and crashes improve together.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sentinel_paper.claims import Verdict, together

NOT_RUN = "not run"
ABSTRACT, THEORY, SECTION, APPENDIX = "abstract", "theorems and examples", "section 6", "appendix"


@dataclasses.dataclass(frozen=True)
class Statement:
    """A sentence of the paper.

    Args:
        part: of the paper, which the table is ordered by.
        text: the sentence, shortened.
        where: its place.
        evidence: the claims that decide it, by experiment: their places in its ``PAPER``.
    """

    part: str
    text: str
    where: str
    evidence: Mapping[str, tuple[int, ...]]


STATEMENTS = (
    Statement(ABSTRACT, "Composite risk is a coherent quantification of risk.", "abstract", {"theorems": (0,)}),
    Statement(
        ABSTRACT,
        "The additive formulation is a particular case of the composite risk, with the expectation for the epistemic "
        "risk measure.",
        "abstract",
        {"theorems": (1,)},
    ),
    Statement(
        ABSTRACT,
        "Composite risk is more sensitive to both aleatory and epistemic uncertainty than the individual and additive "
        "formulations.",
        "abstract",
        {"theorems": (3,)},
    ),
    Statement(
        ABSTRACT,
        "SENTINEL-K estimates the return distribution better.",
        "abstract; C.2",
        {"fig-toy-wasserstein": (2,)},
    ),
    Statement(
        ABSTRACT,
        "With composite risk estimates, SENTINEL-K demonstrates higher risk-sensitive performance than "
        "state-of-the-art risk-sensitive and distributional RL algorithms.",
        "abstract",
        {"table-highway": (5,)},
    ),
    Statement(
        SECTION,
        "SENTINEL-4 with composite CVaR achieves a higher value than all others.",
        "section 6, table 1, summary",
        {"table-highway": (0,)},
    ),
    Statement(
        SECTION,
        "It achieves a higher estimate of aleatory risk (CVaR .25 of the return).",
        "section 6, table 1, summary",
        {"table-highway": (1,)},
    ),
    Statement(SECTION, "It has fewer crashes.", "section 6, table 1", {"table-highway": (2,)}),
    Statement(
        SECTION,
        "It causes the least number of crashes (figure, 1e5 and 1e6 steps).",
        "section 6, figure 3, summary",
        {"fig-highway-crashes": (0,)},
    ),
    Statement(
        SECTION,
        "The variance of the performance metrics over runs is the least for composite CVaR.",
        "section 6",
        {"table-highway": (3,)},
    ),
    Statement(
        SECTION,
        "SENTINEL-4 with composite CVaR: value 27.43 ± 0.13, CVaR .25 24.16 ± 0.54, crashes 341.18 ± 43.86.",
        "table 1",
        {"table-highway": (4,)},
    ),
    Statement(
        SECTION,
        "The risk measures composed are coherent: CVaR, Wang, and the standard deviation.",
        "section 6, heterogeneous risk measures",
        {"theorems": (5,)},
    ),
    Statement(
        SECTION,
        "Any combination of coherent risk measures is possible.",
        "section 6, heterogeneous risk measures, summary",
        {"theorems": (0,)},
    ),
    Statement(
        SECTION,
        "SENTINEL-4 performs flexibly and comparably for these composite risks.",
        "section 6, figure 4, summary",
        {"fig-risk-measures": (0,)},
    ),
    Statement(
        SECTION, "As λ → 0 we perform standard model averaging.", "section 6, FTRL; D.2", {"ftrl-gaussians": (2,)}
    ),
    Statement(
        SECTION,
        "As λ → ∞ selection is greedy towards the best average estimator, the most similar to the marginal.",
        "section 6, FTRL; D.2",
        {"ftrl-gaussians": (3,)},
    ),
    Statement(
        SECTION,
        "FTRL with λ = 1 has fewer falls than λ = 4.6, 0.1 and 0.01: better than averaging and than greedy selection.",
        "section 6, figure 5, summary",
        {"fig-ftrl-lambda": (0,)},
    ),
    Statement(
        SECTION,
        "For λ = 1 the variance of the falls is significantly less than for other values.",
        "section 6, figure 5",
        {"fig-ftrl-lambda": (1,)},
    ),
    Statement(
        SECTION,
        "K = 4 is justified: falls decrease with K, while every estimator costs time.",
        "section 6; C.1, table 2",
        {"table-ensemble-size": (1, 2)},
    ),
    Statement(
        SECTION,
        "SENTINEL converges in return distribution.",
        "section 6, summary; C.2, figures 6 and 7",
        {"fig-toy-wasserstein": (0,), "fig-toy-laws": (0,)},
    ),
    Statement(
        SECTION,
        "This is shown for a multimodal return distribution.",
        "section 6, summary; C.2",
        {"fig-toy-wasserstein": (3,)},
    ),
    Statement(THEORY, "The composite of two coherent measures is coherent.", "theorem 1", {"theorems": (0,)}),
    Statement(THEORY, "F^A(U_A, β) = F^C(U_A, I, β).", "theorem 2 i", {"theorems": (1,)}),
    Statement(
        THEORY,
        "F^C ≥ F^A as losses: additive risk always underestimates the composite effect.",
        "theorem 2 ii, section 4",
        {"theorems": (2,)},
    ),
    Statement(
        THEORY,
        "CVaR is coherent; variance is not homogeneous, VaR not subadditive.",
        "section 3.1",
        {"theorems": (4,)},
    ),
    Statement(
        THEORY,
        "Additive CVaR strictly underestimates the total CVaR of a mixture.",
        "example 1, figures 2 and 8",
        {"gauss-mix-cvar": (0,)},
    ),
    Statement(
        THEORY,
        "Composite CVaR is closer to the total than additive, for α up to 0.5.",
        "example 1, figures 2 and 8, section 7",
        {"gauss-mix-cvar": (1,)},
    ),
    Statement(
        THEORY,
        "Additive risk leads to worse risk-sensitive performance than composite risk.",
        "section 4, table 1",
        {"table-highway": (6,)},
    ),
    Statement(
        APPENDIX, "K = 1, 2, 4, 8 fall 5332, 4628, 4358, 3533 times.", "table 2 (C.1)", {"table-ensemble-size": (0,)}
    ),
    Statement(
        APPENDIX,
        "VDQN fails to converge to the true return distribution.",
        "C.2, figure 7",
        {"fig-toy-wasserstein": (1,)},
    ),
    Statement(
        APPENDIX,
        "As the belief concentrates, composite and additive risk end up with the optimal behaviour; they differ where "
        "uncertainty is high.",
        "C.3, figure 9",
        {"gaussian-estimators": (0, 1)},
    ),
    Statement(
        APPENDIX,
        "The example of FTRL weights: KL(m || f) = [.48, .92, .74], weights [.26, .40, .34].",
        "D.2, figure 10",
        {"ftrl-gaussians": (0, 1)},
    ),
    Statement(APPENDIX, "Compute time is similar in most cases.", "D.3", {"table-compute": (0,)}),
    Statement(APPENDIX, "SENTINEL-4 takes 3.4 times as long as CDQN.", "table 4 (D.3)", {"table-compute": (1,)}),
)


@dataclasses.dataclass(frozen=True)
class Line:
    """What one page has to say about a statement; without a page, that its experiment has not been run.

    `effects` are by the settings in which the statement is judged.
    """

    statement: Statement
    experiment: str
    verdict: str
    effects: Sequence[tuple[str, str]] = ()
    page: Mapping[str, Any] | None = None


def lines(pages: Sequence[Mapping[str, Any]], claims: Mapping[str, Sequence[str]]) -> list[Line]:
    """Every statement, once for every page that judges it, in the order of `STATEMENTS`.

    Args:
        pages: of all experiments that there are.
        claims: the texts of the claims of every experiment, in the order of its ``PAPER``.
    """
    found: list[Line] = []
    for statement in STATEMENTS:
        for experiment, places in statement.evidence.items():
            texts = {claims[experiment][place] for place in places}
            told = [_line(statement, page, texts) for page in pages if page["name"] == experiment]
            found += told or [Line(statement, experiment, NOT_RUN)]
    return found


def _line(statement: Statement, page: Mapping[str, Any], texts: set[str]) -> Line:
    findings = [finding for finding in page["findings"] if finding["claim"] in texts]
    if not findings:
        return Line(statement, page["name"], NOT_RUN, (), page)
    verdict = together(Verdict(finding["verdict"]) for finding in findings)
    effects = [(finding["setting"], finding.get("effect") or finding["reason"]) for finding in findings]
    return Line(statement, page["name"], str(verdict), effects, page)
