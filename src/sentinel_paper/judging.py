"""Verdicts on claims about trained agents, by intervals over runs.

A difference between two agents is significant when the 95 % bootstrap interval of the paired difference excludes zero
and Wilcoxon's signed-rank test, corrected after Holm for the number of comparisons of the claim, has p < .05: both. A
claim that one agent is better than others holds when it is significantly better than every one of them, and does not
hold when some other is significantly better. Everything else is undecided, and so is everything with very few runs.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import bootstrap

from sentinel_paper.claims import Claim, Finding, Verdict
from sentinel_paper.metrics import Metric, against, summaries, values
from sentinel_paper.trained import Records
from sentinel_rl.study import Comparison, compare, holm

# With fewer pairs no signed-rank test can reach a level of 5 %.
ENOUGH = 6
LEVEL = 0.05


def best(claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], setting: str) -> Finding:
    """Whether our agent is better than all others."""
    found = against(records, metric, ours, others)
    gains = {label: _gain(one, metric) for label, one in found.items()}
    better = [label for label, (low, _) in gains.items() if low > 0 and found[label].p_holm < LEVEL]
    worse = [label for label, (_, high) in gains.items() if high < 0 and found[label].p_holm < LEVEL]
    groups = {
        "better than": better,
        "worse than": worse,
        "not significantly different from": [label for label in others if label not in {*better, *worse}],
    }
    told = {label: f"{label} ({_compared(one, metric.digits)})" for label, one in found.items()}
    parts = [f"{side} {', '.join(told[label] for label in labels)}" for side, labels in groups.items() if labels]
    hardest = min(gains, key=lambda label: (gains[label][0], label))
    mean = summaries(records, metric)[ours].mean
    return _finding(
        claim,
        setting,
        _verdict(records, len(better) == len(others), bool(worse)),
        records,
        f"{ours} has {mean:.{metric.digits}f} {metric.title} over {_pairs(found)} runs: {'; '.join(parts)}. "
        f"Differences are {ours} minus the other, paired by seed; {metric.better} is better.",
        f"{metric.title} {_compared(found[hardest], metric.digits)} against {hardest}",
    )


def steadiest(
    claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], setting: str
) -> Finding:
    """Whether the standard deviation of a metric over runs is smallest for our agent.

    That another one is steadier is decided by intervals that are corrected for the number of others (Bonferroni).
    """
    found = values(records, metric)
    told = {label: spread_interval(found[ours], found[label]) for label in others}
    strict = {label: spread_interval(found[ours], found[label], LEVEL / len(others)) for label in others}
    smaller = [label for label, (_, high) in told.items() if high < 0]
    larger = [label for label, (low, _) in strict.items() if low > 0]
    spreads = {label: float(np.nanstd(found[label], ddof=1)) for label in (ours, *others)}
    apart = {label: _told(spreads[ours] - spreads[label], *told[label], 2) for label in others}
    marks = dict.fromkeys(smaller, ", larger") | dict.fromkeys(larger, ", smaller")
    listed = ", ".join(f"{label} {spreads[label]:.2f} ({apart[label]}{marks.get(label, '')})" for label in others)
    hardest = max(told, key=lambda label: (told[label][1], label))
    return _finding(
        claim,
        setting,
        _verdict(records, len(smaller) == len(others), bool(larger)),
        records,
        f"the standard deviation of {metric.title} over {records.settings.runs} runs is {spreads[ours]:.2f} for "
        f"{ours}; {listed}. In brackets the difference with its 95 % bootstrap interval; that another agent has a "
        f"smaller one is decided by intervals that are corrected for {len(others)} comparisons.",
        f"sd of {metric.title} {apart[hardest]} against {hardest}",
    )


def reproduced(claim: Claim, records: Records, metric: Metric, label: str, paper: tuple[float, float]) -> Finding:
    """Whether a printed mean is within two standard errors, ours and the paper's together, of ours."""
    found = summaries(records, metric)[label]
    both = float(np.hypot(found.sem, paper[1]))
    distance = (found.mean - paper[0]) / both if both > 0 else np.inf
    same = records.settings.steps == records.task.steps
    ours = f"{found.mean:.{metric.digits}f} [{found.low:.{metric.digits}f}, {found.high:.{metric.digits}f}]"
    printed = f"{paper[0]:g} ± {paper[1]:g}"
    return _finding(
        claim,
        f"{label}, {metric.title}",
        _verdict(records, same and abs(distance) <= 2, same and abs(distance) > 2),
        records,
        f"we find {ours}, standard error {found.sem:.{metric.digits}f}, over {found.n} runs, the paper prints "
        f"{printed} over 20: {abs(distance):.1f} standard errors of the difference apart."
        + ("" if same else f" Those are of {records.task.steps} steps, ours of {records.settings.steps}."),
        f"{metric.title} {ours}, printed {printed}",
    )


def ordered(claim: Claim, records: Records, metric: Metric, labels: Sequence[str], setting: str) -> Finding:
    """Whether a metric gets better from each label to the next."""
    steps = {
        f"{before} to {after}": against(records, metric, after, [before])[before] for before, after in pairwise(labels)
    }
    p_values = holm(np.array([one.p_value for one in steps.values()]))
    steps = {name: one._replace(p_holm=float(p)) for (name, one), p in zip(steps.items(), p_values, strict=True)}
    gains = {name: _gain(one, metric) for name, one in steps.items()}
    better = [name for name, (low, _) in gains.items() if low > 0 and steps[name].p_holm < LEVEL]
    worse = [name for name, (_, high) in gains.items() if high < 0 and steps[name].p_holm < LEVEL]
    found = summaries(records, metric)
    means = ", ".join(f"{label}: {found[label].mean:.{metric.digits}f}" for label in labels)
    changes = ", ".join(f"{name} {_compared(one, metric.digits)}" for name, one in steps.items())
    hardest = min(gains, key=lambda name: gains[name][0])
    return _finding(
        claim,
        setting,
        _verdict(records, len(better) == len(steps), bool(worse)),
        records,
        f"{means} {metric.title} over {_pairs(steps)} runs. Changes, paired by seed: {changes}.",
        f"{metric.title} {_compared(steps[hardest], metric.digits)} from {hardest}",
    )


def alike(
    claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], share: float, setting: str
) -> Finding:
    """Whether all others are within a share of ours: a claim that agents perform comparably.

    It is tested against the margin, not against no difference: that nothing was found would not show likeness.
    """
    mean = summaries(records, metric)[ours].mean
    allowed = share * abs(mean)
    told = against(records, metric, ours, others)
    near = all(-allowed <= one.low and one.high <= allowed for one in told.values())
    beyond = _beyond(values(records, metric), ours, told, allowed)
    far = [label for label, p in beyond.items() if p < LEVEL]
    differences = ", ".join(f"{label} by {_told(one.difference, one.low, one.high, 0)}" for label, one in told.items())
    hardest = max(told, key=lambda label: (max(abs(told[label].low), abs(told[label].high)), label))
    widest = _told(told[hardest].difference, told[hardest].low, told[hardest].high, 0)
    return _finding(
        claim,
        setting,
        _verdict(records, near, bool(far)),
        records,
        f"{ours} has {mean:.0f} {metric.title} over {_pairs(told)} runs; it differs from {differences}, paired by "
        f"seed. Comparable is taken as within {100 * share:.0f} %, ± {allowed:.0f}: "
        + (f"beyond that {', '.join(f'{label} (p = {beyond[label]:.2g}, Holm)' for label in far)}." if far else "")
        + ("" if far else "all intervals are within." if near else "not all intervals are within, and none is beyond."),
        f"{metric.title} {widest} against {hardest}, margin ± {allowed:.0f}",
    )


def _beyond(
    found: Mapping[str, np.ndarray], ours: str, told: Mapping[str, Comparison], margin: float
) -> dict[str, float]:
    """Holm-corrected p-values of differences that lie beyond the margin by their intervals; 1 for the others."""
    moved = {label: found[label] + np.copysign(margin, one.difference) for label, one in told.items()}
    tested = compare(found[ours], moved)
    outside = {label: one.low > margin or one.high < -margin for label, one in told.items()}
    return {label: tested[label].p_holm if outside[label] else 1.0 for label in told}


def spread_interval(
    ours: np.ndarray, theirs: np.ndarray, level: float = LEVEL, resamples: int = 4_000
) -> tuple[float, float]:
    """Bootstrap interval of the difference of standard deviations over runs, paired; NaN are left out.

    Example:
        >>> print(*spread_interval(np.arange(10.0), np.arange(10.0) - 1))
        0.0 0.0
    """
    known = np.isfinite(ours) & np.isfinite(theirs)
    found = bootstrap(
        (ours[known], theirs[known]),
        lambda x, y, axis: np.std(x, axis=axis, ddof=1) - np.std(y, axis=axis, ddof=1),
        paired=True,
        vectorized=True,
        confidence_level=1 - level,
        n_resamples=resamples,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def _gain(one: Comparison, metric: Metric) -> tuple[float, float]:
    """The interval of a difference with the good side up."""
    return (one.low, one.high) if metric.better == "high" else (-one.high, -one.low)


def _pairs(found: Mapping[str, Comparison]) -> str:
    """How many runs could be compared."""
    counts = sorted({one.n for one in found.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _compared(one: Comparison, digits: int) -> str:
    return f"{_told(one.difference, one.low, one.high, digits)}, p = {one.p_holm:.2g}"


def _finding(claim: Claim, setting: str, verdict: Verdict, records: Records, reason: str, effect: str) -> Finding:
    few = f" {records.settings.runs} runs are too few to decide anything." if records.settings.runs < ENOUGH else ""
    return Finding(claim, setting, verdict, reason + few, effect)


def _told(middle: float, low: float, high: float, digits: int) -> str:
    return f"{middle:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def _verdict(records: Records, holds: bool, fails: bool) -> Verdict:
    return decide(records.settings.runs, holds, fails)


def decide(runs: int, holds: bool, fails: bool) -> Verdict:
    """The verdict where both may be open; very few runs decide nothing.

    Example:
        >>> print(decide(20, True, False), decide(20, False, False), decide(3, True, False), sep=", ")
        holds, undecided, undecided
    """
    if runs < ENOUGH:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.UNDECIDED
