"""Statistics over runs: a run is one observation, however many episodes it has."""

import warnings
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from sentinel_rl.errors import UsageError
from sentinel_rl.training.metrics import tail_mean

Side = Literal["low", "high"]

CONFIDENCE = 0.95
_RESAMPLES = 9_999


class Summary(NamedTuple):
    """A number over runs.

    Args:
        n: runs that have it.
        mean: over them.
        sem: standard error of the mean, ``sd / sqrt(n)`` with ``n - 1`` degrees of freedom.
        low: lower end of the 95 % bootstrap interval of the mean.
        high: its upper end.
        iqm: interquartile mean: the mean of the middle half, the runs at its edges counted in part.
        worst_quarter: the mean over the worst quarter of the runs, the one at its edge counted in part.
    """

    n: int
    mean: float
    sem: float
    low: float
    high: float
    iqm: float
    worst_quarter: float


class Comparison(NamedTuple):
    """Ours against another's, run by run with the same seeds.

    Args:
        n: pairs.
        difference: mean of ours minus theirs.
        low: lower end of its 95 % bootstrap interval, over pairs.
        high: its upper end.
        probability_of_improvement: share of the pairs in which ours is better, ties counted half.
        p_value: two-sided, of Wilcoxon's signed-rank test.
        p_holm: corrected after Holm for the number of comparisons.
    """

    n: int
    difference: float
    low: float
    high: float
    probability_of_improvement: float
    p_value: float
    p_holm: float


def summarise(values: np.ndarray, worse: Side = "low", seed: int = 0) -> Summary:
    """Sum up one number per run; runs without one (NaN) are left out and not counted.

    Args:
        values: one per run.
        worse: which side is bad: ``"low"`` for returns, ``"high"`` for crashes.
        seed: of the bootstrap.

    Example:
        >>> told = summarise(np.array([1.0, 2.0, 3.0, 4.0]))
        >>> told.n, told.mean, told.iqm, told.worst_quarter
        (4, 2.5, 2.5, 1.0)
    """
    known = _one_per_run(values)
    known = known[~np.isnan(known)]
    if known.size == 0:
        return Summary(0, *[float("nan")] * 6)
    low, high = bootstrap_interval(known, seed)
    sign = 1.0 if worse == "low" else -1.0
    return Summary(
        n=known.size,
        mean=float(np.mean(known)),
        sem=float(stats.sem(known)) if known.size > 1 else float("nan"),
        low=low,
        high=high,
        iqm=interquartile_mean(known),
        worst_quarter=float(sign * tail_mean(sign * known, 0.25)),
    )


def bootstrap_interval(values: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean: BCa, or percentiles where the data are too few or too equal for it.

    NaN for a single number; for equal numbers both ends are that number.
    """
    if values.size < 2:
        return float("nan"), float("nan")
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():  # what SciPy warns of shows in the result: an end that is not finite
            warnings.simplefilter("ignore")
            found = stats.bootstrap(
                (values,),
                np.mean,
                confidence_level=CONFIDENCE,
                n_resamples=_RESAMPLES,
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        if np.isfinite([found.low, found.high]).all():
            return float(found.low), float(found.high)
    raise UsageError("an interval needs finite numbers")


def interquartile_mean(values: np.ndarray) -> float:
    """The mean of the middle half: of the quantiles from 1/4 to 3/4, each number having an equal share of them.

    Where a quarter is no whole number of runs, those at the edges count in part, so that no data are ignored by
    rounding (a trimmed mean drops whole ones).

    >>> interquartile_mean(np.array([1.0, 2.0, 3.0, 100.0]))
    2.5
    """
    ordered, size = np.sort(values), values.size
    edges = np.clip(np.arange(size + 1) / size, 0.25, 0.75)
    return float(np.diff(edges) @ ordered / 0.5)


def compare(
    ours: np.ndarray, others: Mapping[str, np.ndarray], better: Side = "high", seed: int = 0
) -> dict[str, Comparison]:
    """Compare with others, paired by run: place i of every array is the same seed.

    Pairs in which a run has no number (NaN) are left out.

    Args:
        ours: one number per run.
        others: theirs, by name.
        better: which side is good.
        seed: of the bootstrap.

    Example:
        >>> told = compare(np.array([3.0, 5.0, 4.0]), {"B": np.array([1.0, 2.0, 4.0])})["B"]
        >>> round(told.difference, 3), round(told.probability_of_improvement, 3)
        (1.667, 0.833)
    """
    own = _one_per_run(ours)
    told = {name: _paired(own, _one_per_run(theirs), better, seed) for name, theirs in others.items()}
    corrected = holm(np.array([each.p_value for each in told.values()]))
    return {name: each._replace(p_holm=float(p)) for (name, each), p in zip(told.items(), corrected, strict=True)}


def _paired(ours: np.ndarray, theirs: np.ndarray, better: Side, seed: int) -> Comparison:
    if ours.shape != theirs.shape:
        raise UsageError(f"pairs need as many runs on both sides, got {ours.size} and {theirs.size}")
    gap = ours - theirs
    gap = gap[~np.isnan(gap)]
    if gap.size == 0:
        return Comparison(0, *[float("nan")] * 6)
    low, high = bootstrap_interval(gap, seed)
    wins = np.sign(gap) * (1 if better == "high" else -1)
    p_value = 1.0 if not gap.any() else float(stats.wilcoxon(gap).pvalue)
    return Comparison(gap.size, float(np.mean(gap)), low, high, float(np.mean(0.5 + 0.5 * wins)), p_value, float("nan"))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Correct m p-values (Holm 1979): the i-th smallest times ``m - i + 1``, never falling, at most 1.

    NaN, where there was nothing to test, is not counted.

    >>> [round(float(p), 2) for p in holm(np.array([0.04, 0.01, 0.03]))]
    [0.06, 0.03, 0.06]
    """
    corrected = np.full(p_values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0) if order.size else []
    return corrected


def _one_per_run(values: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1:
        raise UsageError(f"statistics over runs need one number per run, got an array of shape {numbers.shape}")
    return numbers
