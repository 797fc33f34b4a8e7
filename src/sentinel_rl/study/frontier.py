"""Risk against gain: the points of several policies with intervals, which of them are dominated, and which differ.

Every quantity is the mean over episodes of a *score*: the tail, too, is the mean of ``q + min(r - q, 0) / alpha`` with
the quantile q of the returns r. Policies play the same episodes, so that the scores of two of them are paired.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from sentinel_rl.errors import UsageError
from sentinel_rl.study.statistics import CONFIDENCE, bootstrap_interval
from sentinel_rl.training.metrics import TAIL, Episodes

# The power with which a difference of the size that was found should be seen, for the number of episodes.
POWER = 0.8
_MANY = 10_000_000


class Played(NamedTuple):
    """The episodes of a policy, of one run or of several.

    Args:
        label: what tables and figures call it.
        episodes: arrays ``[runs, episodes]``.
        speed: mean speed of each episode, where the environment tells it.
    """

    label: str
    episodes: Episodes
    speed: Float[np.ndarray, "runs episodes"] | None = None


@dataclasses.dataclass(frozen=True)
class Axis:
    """A quantity of a policy.

    Args:
        name: on the command line and in files.
        title: on a figure.
        low_is_good: whether less is better.
        scores: by episode, their mean being the quantity.
        factor: for display.
    """

    name: str
    title: str
    low_is_good: bool
    scores: Callable[[Played], np.ndarray]
    factor: float = 1.0


def tail_scores(returns: np.ndarray, alpha: float = TAIL) -> np.ndarray:
    """Numbers whose mean is the CVaR of the returns, one for each: ``q + min(r - q, 0) / alpha``.

    Example:
        >>> float(tail_scores(np.array([[1.0, 2.0, 3.0, 10.0]]), 0.5).mean())
        1.5
    """
    quantile = np.quantile(returns, alpha, axis=-1, keepdims=True, method="inverted_cdf")
    return np.asarray(quantile + np.minimum(returns - quantile, 0.0) / alpha)


def _speeds(played: Played) -> np.ndarray:
    if played.speed is None:
        raise UsageError("the environment does not tell a speed: choose the return or the value as gain")
    return played.speed


AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("crash", "terminated episodes (%)", True, lambda p: np.asarray(p.episodes.terminated, float), 100.0),
        Axis(
            "tail",
            f"mean of the worst {TAIL:.0%} of discounted returns",
            False,
            lambda p: tail_scores(np.asarray(p.episodes.discounted, float)),
        ),
        Axis("return", "mean return", False, lambda p: np.asarray(p.episodes.reward, float)),
        Axis("value", "mean discounted return", False, lambda p: np.asarray(p.episodes.discounted, float)),
        Axis("speed", "mean speed (m/s)", False, _speeds),
    )
}
RISKS, GAINS = ("crash", "tail"), ("return", "value", "speed")


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """Two policies side by side.

    Args:
        first: label of the one.
        second: label of the other.
        difference: of the second from the first.
        low: lower end of its 95 % interval.
        high: upper end.
        needed: episodes per policy (runs, where there are several) to see a difference of this size with a power of
            80 %; None where there is no difference at all.
        unit: what `needed` counts.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    needed: int | None
    unit: str

    @property
    def is_separated(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def estimate(played: Played, axis: str) -> Estimate:
    """A quantity of a policy: the interval is over runs where there are several, and else over episodes.

    Over episodes the interval of a rate is that of Clopper and Pearson, and of a mean Student's; over runs it is
    bootstrapped.

    Example:
        >>> ended = np.array([[True] + [False] * 99])
        >>> one = Played("", Episodes(np.ones((1, 100)), np.ones((1, 100)), np.ones((1, 100), int), ended))
        >>> [round(float(end), 4) for end in estimate(one, "crash")]
        [0.01, 0.0003, 0.0545]
    """
    scores = _scores(played, axis)
    value = float(scores.mean())
    if len(scores) > 1:
        return Estimate(value, *bootstrap_interval(scores.mean(axis=1)))
    if axis == "crash":
        found = stats.binomtest(int(scores.sum()), scores.size).proportion_ci(CONFIDENCE)
        return Estimate(value, float(found.low), float(found.high))
    if scores.size < 2:
        return Estimate(value, math.nan, math.nan)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, scores.size - 1) * stats.sem(scores[0]))
    return Estimate(value, value - half, value + half)


def dominated(points: Sequence[tuple[float, float]], low_is_good: tuple[bool, bool]) -> list[bool]:
    """Which points another one beats: at least as good in both quantities, and better in one.

    Example:
        >>> dominated([(1.0, 5.0), (2.0, 5.0), (0.5, 6.0)], (True, False))
        [True, True, False]
    """
    signs = np.where(low_is_good, -1.0, 1.0)
    good = np.asarray(points, float) * signs
    return [bool(np.any(np.all(good >= point, axis=1) & np.any(good > point, axis=1))) for point in good]


def difference(first: Played, second: Played, axis: str) -> Difference:
    """Compare two policies, pair by pair of the same episodes, or of the same runs where there are several."""
    ours, theirs = _scores(first, axis), _scores(second, axis)
    unit = "runs" if max(len(ours), len(theirs)) > 1 else "episodes"
    if unit == "runs":
        ours, theirs = ours.mean(axis=1), theirs.mean(axis=1)
    if ours.size == theirs.size:
        gaps = (theirs - ours).ravel()
        mean, spread, count = float(gaps.mean()), float(gaps.std(ddof=1)) if gaps.size > 1 else math.nan, gaps.size
    else:
        mean, count = float(theirs.mean() - ours.mean()), min(ours.size, theirs.size)
        parts = [each.var(ddof=1) / each.size if each.size > 1 else math.nan for each in (ours, theirs)]
        spread = math.sqrt(sum(parts) * count)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, max(count - 1, 1))) * spread / math.sqrt(count)
    wanted = float(stats.norm.ppf((1 + CONFIDENCE) / 2) + stats.norm.ppf(POWER))
    exact = (wanted * spread / mean) ** 2 if mean else math.inf
    needed = min(math.ceil(exact), _MANY) if math.isfinite(exact) else None
    return Difference(first.label, second.label, mean, mean - half, mean + half, needed, unit)


def _scores(played: Played, axis: str) -> np.ndarray:
    if axis not in AXES:
        raise UsageError(f"unknown quantity {axis!r}: choose one of {', '.join(AXES)}")
    return np.atleast_2d(AXES[axis].scores(played))
