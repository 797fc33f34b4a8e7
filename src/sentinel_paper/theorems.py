"""Theorems 1 and 2, and what the paper says of coherence: a search for counterexamples, not a proof.

Coherence is tried by `check_coherence`. For theorem 2 and for the sensitivity of the risks, beliefs are drawn at random
(`random_beliefs`), and what the members disagree about, or chance, is stretched by a tenth.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from sentinel_paper import random_beliefs
from sentinel_paper.claims import Claim, Finding, Verdict, by_name, mostly, share_text, together
from sentinel_paper.output import Page, Row, publish
from sentinel_paper.random_beliefs import Risks
from sentinel_rl import plotting
from sentinel_rl.risk import CoherenceReport, Expectation, RiskMeasure, check_coherence, parse_risk

NAME = "theorems"
RESOLUTION = 1e-9  # relative to the values: smaller differences are rounding
ROUNDING = 1e-12  # what is below it depends on the machine
STRETCH = 1.1
KINDS = {"disagreement": (STRETCH, 1.0), "chance": (1.0, STRETCH)}
OTHERS = {"additive": "additive risk", "epistemic": "epistemic risk alone", "aleatory": "aleatory risk alone"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How many beliefs are drawn, and which measures are composed, the epistemic one first."""

    runs: int = 1_000
    seed: int = 0
    members: int = 4
    atoms: int = 16
    measures: tuple[str, ...] = ("cvar:0.25", "wang:0.1", "mean_semideviation:1,2")
    more_pairs: tuple[tuple[str, str], ...] = (("evar:0.25", "cvar:0.25"),)
    called_coherent: tuple[str, ...] = ("cvar:0.25", "wang:0.1", "mean_std:1")
    called_incoherent: tuple[str, ...] = ("mean_variance:1", "var:0.25")

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise ValueError(f"runs = {self.runs} is not allowed: give at least 2, so that runs can be compared")

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of coherent measures that are composed."""
        return (*((one, other) for one in self.measures for other in self.measures), *self.more_pairs)

    @property
    def with_sd(self) -> tuple[tuple[str, str], ...]:
        """The paper's two compositions with the standard deviation."""
        return (("cvar:0.25", "mean_std:1"), ("mean_std:1", "cvar:0.25"))


@dataclasses.dataclass(frozen=True)
class Records:
    """Searches for counterexamples by measure or pair, and the risks of the beliefs, as drawn and stretched."""

    settings: Settings
    searched: dict[str, CoherenceReport]
    scale: np.ndarray
    drawn: dict[tuple[str, str], Risks]
    neutral: dict[str, Risks]
    stretched: dict[str, Risks]

    def gap(self, pair: tuple[str, str]) -> np.ndarray:
        """Additive minus composite risk of every belief, relative to its values: never below 0 by theorem 2 ii."""
        return np.asarray((self.drawn[pair].additive - self.drawn[pair].composite) / self.scale)

    def more_sensitive(self, kind: str, other: str) -> int:
        """In how many beliefs composite risk moves more than another one when something is stretched."""
        before, after = self.drawn[SENSITIVE], self.stretched[kind]
        moved = {name: np.abs(getattr(after, name) - getattr(before, name)) for name in ("composite", other)}
        return int(np.sum(moved["composite"] - moved[other] > RESOLUTION * self.scale))


SENSITIVE = ("cvar:0.25", "cvar:0.25")
SETTINGS = Settings()
PAPER = by_name(
    Claim("composite-coherent", "The composite of two coherent risk measures is coherent.", "theorem 1"),
    Claim(
        "additive-special-case",
        "Additive risk is composite risk with the expectation as the epistemic measure.",
        "theorem 2 i",
    ),
    Claim("composite-more-cautious", "Composite risk is at least as cautious as additive risk.", "theorem 2 ii"),
    Claim(
        "more-sensitive",
        "Composite risk is more sensitive to both aleatory and epistemic uncertainty than the individual and additive "
        "formulations.",
        "abstract",
    ),
    Claim("cvar-coherent", "CVaR is coherent; variance is not homogeneous, and VaR is not subadditive.", "section 3.1"),
    Claim(
        "wang-and-sd-coherent",
        "The Wang measure and the standard deviation are coherent risk measures.",
        "sections 2, 3.1 and 6",
    ),
)


def run(settings: Settings, report: Callable[[int, int], None]) -> Records:
    """Search for counterexamples, then compute the risks of the beliefs."""
    alone = list(dict.fromkeys((*settings.called_coherent, *settings.called_incoherent)))
    pairs = [*settings.pairs, *settings.with_sd]
    total, searched = len(alone) + len(pairs) + len(settings.pairs) + 1, {}
    for done, name in enumerate((*alone, *(" o ".join(pair) for pair in pairs))):
        report(done, total)
        searched[name] = check_coherence(parse_risk(name), settings.seed)
    beliefs = random_beliefs.draw(settings.runs, settings.members, settings.atoms, settings.seed)
    values = beliefs.values()
    drawn = {}
    for done, pair in enumerate(settings.pairs, start=len(alone) + len(pairs)):
        report(done, total)
        drawn[pair] = random_beliefs.risks(beliefs, _measure(pair[0]), _measure(pair[1]), values)
    neutral = {
        inner: random_beliefs.risks(beliefs, Expectation(), _measure(inner), values) for inner in settings.measures
    }
    outer, inner = (_measure(name) for name in SENSITIVE)
    stretched = {kind: random_beliefs.risks(beliefs, outer, inner, beliefs.values(*by)) for kind, by in KINDS.items()}
    report(total, total)
    return Records(settings, searched, np.abs(values).max(axis=(1, 2)), drawn, neutral, stretched)


def _measure(text: str) -> RiskMeasure:
    measure = parse_risk(text)
    assert isinstance(measure, RiskMeasure), text
    return measure


def findings(records: Records) -> list[Finding]:
    """Judge the theorems, then the sentences."""
    return [
        _composites(records),
        _special_case(records),
        _cautious(records),
        *(_sensitive(records, others) for others in (("additive",), ("epistemic", "aleatory"))),
        _background(records),
        *(_called_coherent(records, name) for name in records.settings.called_coherent if not name.startswith("cvar")),
    ]


def _composites(records: Records) -> Finding:
    found = [records.searched[f"{outer} o {inner}"] for outer, inner in records.settings.pairs]
    cases = sum(one.tried * len(one.counterexamples) for one in found)
    refuted = sum(not one for one in found)
    broken = [name for name in (f"{o} o {i}" for o, i in records.settings.with_sd) if not records.searched[name]]
    return Finding(
        PAPER["composite-coherent"],
        f"{len(found)} compositions of CVaR, Wang, semideviation and EVaR",
        Verdict.of(refuted == 0),
        f"{refuted} of {len(found)} compositions were refuted in {cases} cases of the four axioms. A search can "
        "refute, not prove; the proof is the paper's, and does not need a distortion. It needs coherent parts: "
        f"{' and '.join(broken)}, two of the paper's own compositions, are not monotone.",
        f"{refuted} counterexamples in {cases} cases",
    )


def _special_case(records: Records) -> Finding:
    gaps = [np.abs(one.composite - one.additive) / records.scale for one in records.neutral.values()]
    largest = float(np.max(gaps))
    told = f"below {ROUNDING:g}" if largest < ROUNDING else f"{largest:.1e}"
    return Finding(
        PAPER["additive-special-case"],
        f"{records.settings.runs} random beliefs, {len(gaps)} aleatory measures",
        Verdict.of(largest < RESOLUTION),
        f"the largest difference of any belief is {told} of the largest return; additive risk is computed as "
        "the weighted sum of the members' risks, composite risk by the general formula.",
        f"largest relative difference {told}",
    )


def _cautious(records: Records) -> Finding:
    gaps = np.stack([records.gap(pair) for pair in records.settings.pairs])
    above, strict = int(np.sum((gaps < -RESOLUTION).any(axis=0))), float(np.mean(gaps > RESOLUTION))
    share = f"{share_text(above, records.settings.runs)} of the beliefs"
    return Finding(
        PAPER["composite-more-cautious"],
        f"{records.settings.runs} random beliefs, {len(gaps)} pairs of measures",
        Verdict.of(above == 0),
        f"for some pair composite risk lies above additive risk in {share}; strictly below it in {strict:.1%} of all "
        f"{gaps.size} cases; the smallest gap is {gaps.min():.1e} of the largest return. In rewards, caution is a "
        "smaller value: the paper prints the inequality for losses, the other way round.",
        f"violated in {share}",
    )


def _sensitive(records: Records, others: tuple[str, ...]) -> Finding:
    """Composite risk must move more in most beliefs, for both kinds of uncertainty and all others."""
    counts = {(kind, other): records.more_sensitive(kind, other) for other in others for kind in KINDS}
    runs = records.settings.runs
    told = [
        f"when {kind} grows by a tenth, composite risk moves more than {OTHERS[other]} in {share_text(count, runs)}"
        for (kind, other), count in counts.items()
    ]
    least = min(counts, key=lambda key: counts[key])
    verdict = together(mostly([count], runs) for count in counts.values())
    named = " and ".join(OTHERS[other] for other in others)
    return Finding(
        PAPER["more-sensitive"],
        f"than {named}, in most of {runs} random beliefs",
        verdict,
        f"{'; '.join(told)} of the beliefs. It would hold in the strict sense, in every belief, only where that is all "
        "of them.",
        f"least often for {least[0]} against {OTHERS[least[1]]}: {share_text(counts[least], runs)} of beliefs",
    )


def _background(records: Records) -> Finding:
    cvar, variance, var = (records.searched[name] for name in ("cvar:0.25", *records.settings.called_incoherent))
    right = bool(cvar) and not variance.holds("positively_homogeneous") and not var.holds("superadditive")
    return Finding(
        PAPER["cvar-coherent"],
        "CVaR .25, mean minus variance, VaR .25",
        Verdict.of(right),
        f"no counterexample to the coherence of CVaR in {cvar.tried} cases an axiom; of the others, for example: "
        f"{_example(variance, 'positively_homogeneous')}; {_example(var, 'superadditive')}.",
        "counterexamples found for both, none for CVaR" if right else "not as said",
    )


def _called_coherent(records: Records, name: str) -> Finding:
    found = records.searched[name]
    broken = [axiom for axiom, example in found.counterexamples.items() if example is not None]
    told = f"it is not {broken[0]}: {_example(found, broken[0])}" if broken else "no axiom was refuted"
    return Finding(
        PAPER["wang-and-sd-coherent"],
        {"mean_std:1": "mean minus standard deviation"}.get(name, name),
        Verdict.of(bool(found)),
        f"{told}. Tried on {found.tried} cases an axiom.",
        f"not {' or '.join(broken)}" if broken else f"0 counterexamples in {found.tried} cases an axiom",
    )


def _example(found: CoherenceReport, axiom: str) -> str:
    return str(found.counterexamples[axiom] or "none found")


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    settings = records.settings
    setup = (
        f"Coherence (monotone, translation invariant, homogeneous, superadditive in rewards) is tried on bets and "
        f"random returns. Then {settings.runs} beliefs are drawn: {settings.members} members with random weights and "
        f"{settings.atoms} atoms each, disagreement and chance of three scales each. What is computed can refute a "
        "theorem, not prove it. Shares have Wilson's 95 % interval."
    )
    page = Page(NAME, settings, setup, _rows(records), findings(records), _words(records))
    with plotting.figure(11, 4.6) as drawing:
        left, right = drawing.subplots(1, 2)
        _draw_gaps(records, left)
        _draw_shares(records, right)
        return publish(page, drawing, _numbers(records), out)


def _numbers(records: Records) -> list[Row]:
    return [
        {"epistemic": pair[0], "aleatory": pair[1], "beliefs": records.settings.runs}
        | {"cases": records.searched[" o ".join(pair)].tried, "refuted": int(not records.searched[" o ".join(pair)])}
        | {"smallest_gap": float(gap.min()), "mean_gap": float(gap.mean()), "largest_gap": float(gap.max())}
        for pair in records.settings.pairs
        for gap in [records.gap(pair)]
    ]


def _rows(records: Records) -> list[Row]:
    """The table of the page: every search, and where beliefs were drawn the gap of theorem 2."""
    gaps = {" o ".join(pair): records.gap(pair) for pair in records.settings.pairs}
    return [
        {"measure": name, "cases an axiom": str(found.tried)}
        | {"refuted axioms": ", ".join(a for a, e in found.counterexamples.items() if e is not None) or "none"}
        | {"additive minus composite": f"{gaps[name].min():.1e} to {gaps[name].max():.2f}" if name in gaps else ""}
        for name, found in records.searched.items()
    ]


def _words(records: Records) -> str:
    runs = records.settings.runs
    epistemic = records.more_sensitive("disagreement", "epistemic")
    return (
        "Both theorems hold in every case tried. The last column is relative to the largest return of a belief. The "
        "standard deviation is not coherent: a certain return of 0 has the value 0, while a random return that is "
        "never below 0 can have a value below 0. Nor does it follow from theorem 2 that composite risk is the most "
        f"sensitive of all: when members disagree more, it moves more than epistemic risk alone in only {epistemic} of "
        f"{runs} beliefs, because the aleatory measure can hide a difference of the means."
    )


def _draw_gaps(records: Records, axes: Axes) -> None:
    """Additive minus composite risk for every pair, all beliefs."""
    names = [" o ".join(pair) for pair in records.settings.pairs]
    axes.boxplot([records.gap(pair) for pair in records.settings.pairs], orientation="horizontal", whis=(0, 100))
    axes.set_yticks(range(1, len(names) + 1), names, fontsize=8)
    axes.axvline(0, color=plotting.BLACK, linewidth=1)
    axes.set(title="theorem 2: additive minus composite", xlabel="of the largest return")


def _draw_shares(records: Records, axes: Axes) -> None:
    """In how many beliefs composite risk is the more sensitive one."""
    places = np.arange(len(OTHERS))
    for shift, (kind, colour) in enumerate(zip(KINDS, (plotting.COMPOSITE, plotting.ORANGE), strict=True)):
        shares = [100 * records.more_sensitive(kind, other) / records.settings.runs for other in OTHERS]
        axes.bar(places + 0.4 * (shift - 0.5), shares, 0.38, color=colour, label=f"{kind} grows by a tenth")
    axes.axhline(50, color=plotting.BLACK, linewidth=1, linestyle="--")
    axes.set_xticks(places, [name.replace(" ", "\n", 1) for name in OTHERS.values()], fontsize=9)
    axes.set(title="composite risk moves more than", ylabel="% of beliefs", ylim=(0, 125), yticks=range(0, 101, 25))
    axes.legend(fontsize=9, loc="upper right")
