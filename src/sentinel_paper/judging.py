"""Verdicts on claims about trained agents, by intervals over runs.

A claim that one agent is better than others holds when the 95 % interval of the paired difference is on its side for
every one of them. It does not hold when some other agent is better, by its interval and by a test that is corrected
for the number of comparisons. Everything else is undecided, and so is everything with very few runs.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import bootstrap

from sentinel_paper.claims import Claim, Finding, Verdict
from sentinel_paper.metrics import Metric, against, summaries, values
from sentinel_paper.trained import Records

# With fewer pairs no signed-rank test can reach a level of 5 %.
ENOUGH = 6
LEVEL = 0.05


def best(claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], setting: str) -> Finding:
    """Whether our agent is better than all others."""
    sign = 1 if metric.better == "high" else -1
    found = against(records, metric, ours, others)
    told = {label: sorted((sign * one.low, sign * one.high)) for label, one in found.items()}
    better = [label for label, (low, _) in told.items() if low > 0]
    worse = [label for label, (_, high) in told.items() if high < 0 and found[label].p_holm < LEVEL]
    verdict = _verdict(records, len(better) == len(others), bool(worse))
    mean = summaries(records, metric)[ours].mean
    groups = {
        "better than": better,
        "worse than": worse,
        "not to be told from": [label for label in others if label not in {*better, *worse}],
    }
    told_of = {label: _told(one.difference, one.low, one.high, metric.digits) for label, one in found.items()}
    parts = [
        f"{side} {', '.join(f'{label} ({told_of[label]})' for label in labels)}"
        for side, labels in groups.items()
        if labels
    ]
    return _finding(
        claim, setting, verdict, records, f"{ours} has {mean:.{metric.digits}f} {metric.title}: {'; '.join(parts)}."
    )


def steadiest(
    claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], setting: str
) -> Finding:
    """Whether the standard deviation of a metric over runs is smallest for our agent."""
    found = values(records, metric)
    told = {label: spread_interval(found[ours], found[label]) for label in others}
    smaller = [label for label, (_, high) in told.items() if high < 0]
    larger = [label for label, (low, _) in told.items() if low > 0]
    verdict = _verdict(records, len(smaller) == len(others), bool(larger))
    spreads = ", ".join(
        f"{label} {np.nanstd(found[label], ddof=1):.2f}"
        + (" (larger)" if label in smaller else " (smaller)" if label in larger else "")
        for label in others
    )
    own = float(np.nanstd(found[ours], ddof=1))
    return _finding(
        claim,
        setting,
        verdict,
        records,
        f"the standard deviation over runs of {metric.title} is {own:.2f} for {ours}; {spreads}. In brackets: told "
        "apart by a 95 % interval.",
    )


def reproduced(claim: Claim, records: Records, metric: Metric, label: str, paper: tuple[float, float]) -> Finding:
    """Whether a printed mean is within two standard errors, ours and the paper's together, of ours."""
    found = summaries(records, metric)[label]
    together = float(np.hypot(found.sem, paper[1]))
    distance = (found.mean - paper[0]) / together if together > 0 else np.inf
    same = records.settings.steps == records.task.steps
    verdict = _verdict(records, same and abs(distance) <= 2, same and abs(distance) > 2)
    return _finding(
        claim,
        f"{label}, {metric.title}",
        verdict,
        records,
        f"we find {found.mean:.{metric.digits}f} ± {found.sem:.{metric.digits}f}, the paper prints {paper[0]:g} ± "
        f"{paper[1]:g}: {abs(distance):.1f} standard errors apart."
        + ("" if same else f" Those are of {records.task.steps} steps, ours of {records.settings.steps}."),
    )


def ordered(claim: Claim, records: Records, metric: Metric, labels: Sequence[str], setting: str) -> Finding:
    """Whether a metric gets better from each label to the next."""
    sign = 1 if metric.better == "high" else -1
    changes = [against(records, metric, after, [before])[before] for before, after in pairwise(labels)]
    gains = [sorted((sign * change.low, sign * change.high)) for change in changes]
    verdict = _verdict(records, all(low > 0 for low, _ in gains), any(high < 0 for _, high in gains))
    found = summaries(records, metric)
    told = ", ".join(f"{label}: {found[label].mean:.{metric.digits}f}" for label in labels)
    by = ", ".join(f"[{low:.{metric.digits}f}, {high:.{metric.digits}f}]" for low, high in gains)
    return _finding(claim, setting, verdict, records, f"{told}; it gets better from each to the next by {by}.")


def alike(
    claim: Claim, records: Records, metric: Metric, ours: str, others: Sequence[str], share: float, setting: str
) -> Finding:
    """Whether all others are within a share of ours: a claim that agents perform comparably."""
    mean = summaries(records, metric)[ours].mean
    allowed = share * abs(mean)
    told = against(records, metric, ours, others)
    near = all(-allowed <= one.low and one.high <= allowed for one in told.values())
    far = any(one.low > allowed or one.high < -allowed for one in told.values())
    differences = ", ".join(f"{label} by {_told(one.difference, one.low, one.high, 0)}" for label, one in told.items())
    return _finding(
        claim,
        setting,
        _verdict(records, near, far),
        records,
        f"{ours} has {mean:.0f} {metric.title}; it differs from {differences}. Comparable is taken as within "
        f"{100 * share:.0f} %, ± {allowed:.0f}.",
    )


def spread_interval(ours: np.ndarray, theirs: np.ndarray, resamples: int = 4_000) -> tuple[float, float]:
    """95 % bootstrap interval of the difference of standard deviations over runs, paired; NaN are left out.

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
        n_resamples=resamples,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def _finding(claim: Claim, setting: str, verdict: Verdict, records: Records, reason: str) -> Finding:
    few = f" {records.settings.runs} runs are too few to decide anything." if records.settings.runs < ENOUGH else ""
    return Finding(claim, setting, verdict, reason + few)


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
