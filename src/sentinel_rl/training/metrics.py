"""What is measured of finished episodes: one table of metrics for evaluations, studies, statistics and the paper."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int

from sentinel_rl.errors import UsageError

Better = Literal["high", "low"]
TAIL = 0.25


class Episodes(NamedTuple):
    """Finished episodes; the last axis counts them, axes before it are runs or evaluations.

    Args:
        reward: undiscounted return.
        discounted: return, discounted as the task judges it.
        length: number of steps.
        terminated: whether the episode ended by a fall, a crash or the like, and not by the time limit.
    """

    reward: Float[ArrayLike, "..."]
    discounted: Float[ArrayLike, "..."]
    length: Int[ArrayLike, "..."]
    terminated: Bool[ArrayLike, "..."]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number of a policy, from its episodes.

    Args:
        name: what files call it.
        of: takes `Episodes` whose arrays are ``[..., E]`` and returns ``[...]``.
        better: which side is good.
        unit: what it counts.
        title: what tables call it; the name where it is empty.
    """

    name: str
    of: Callable[[Episodes], np.ndarray]
    better: Better = "high"
    unit: str = "return"
    title: str = ""


def tail_mean(values: np.ndarray, alpha: float) -> np.ndarray:
    """CVaR over the last axis: the mean of the lowest share `alpha`, the number at its edge counted in part.

    It is the library's CVaR of equally likely values, in NumPy for arrays of any size.

    Example:
        >>> float(tail_mean(np.array([4.0, 1.0, 3.0, 2.0]), 0.375))  # all of 1, half of 2
        1.3333333333333333
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    size = ordered.shape[-1]
    share = np.clip(alpha * size - np.arange(size), 0.0, 1.0)
    return np.asarray(ordered @ share / (alpha * size))


def _tail(alpha: float) -> Callable[[Episodes], np.ndarray]:
    return lambda episodes: tail_mean(np.asarray(episodes.discounted), alpha)


def _mean(field: str, factor: float = 1.0) -> Callable[[Episodes], np.ndarray]:
    return lambda episodes: factor * np.asarray(getattr(episodes, field), np.float64).mean(axis=-1)


_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("return", _mean("reward"), title="mean return"),
        Metric("value", _mean("discounted"), unit="discounted return", title="discounted"),
        Metric("tail", _tail(TAIL), unit="discounted return", title=f"worst {TAIL:.0%}"),
        Metric("cvar_05", _tail(0.05), unit="discounted return", title="worst 5%"),
        Metric("cvar_10", _tail(0.10), unit="discounted return", title="worst 10%"),
        Metric(
            "worst",
            lambda episodes: np.asarray(episodes.discounted, np.float64).min(axis=-1),
            unit="discounted return",
            title="worst episode",
        ),
        Metric("length", _mean("length"), unit="steps", title="mean length"),
        Metric(
            "terminations_per_1000",
            _mean("terminated", 1_000.0),
            better="low",
            unit="episodes",
            title="terminations per 1000",
        ),
    )
}


def register_metric(metric: Metric) -> None:
    """Add a metric to the table; from then on every evaluation reports it.

    Raises:
        UsageError: for a name that is taken by another metric.

    Example:
        >>> register_metric(Metric("shortest", lambda e: np.min(e.length, axis=-1), unit="steps"))
        >>> "shortest" in metric_names()
        True
    """
    if metric.name in _BUILT_IN:
        raise UsageError(f"the metric {metric.name!r} belongs to the library: choose another name")
    _METRICS[metric.name] = metric


_BUILT_IN = frozenset(_METRICS)


def metric_names() -> list[str]:
    """The names of all metrics."""
    return list(_METRICS)


def find_metric(name: str) -> Metric:
    """The metric of a name.

    Raises:
        UsageError: for an unknown one.
    """
    if name not in _METRICS:
        raise UsageError(f"unknown metric {name!r}: known are {', '.join(_METRICS)}")
    return _METRICS[name]


def measure(episodes: Episodes, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Metrics of episodes ``[..., E]`` by name, each ``[...]``; all that are known where no names are given.

    Example:
        >>> played = Episodes(np.array([1.0, 3.0]), np.array([1.0, 3.0]), np.array([5, 7]), np.array([True, False]))
        >>> {name: float(value) for name, value in measure(played, ["return", "terminations_per_1000"]).items()}
        {'return': 2.0, 'terminations_per_1000': 500.0}
    """
    return {name: np.asarray(find_metric(name).of(episodes)) for name in (names or metric_names())}


def pooled(parts: Sequence[Episodes]) -> Episodes:
    """The episodes of several evaluations as one."""
    return Episodes(*(np.concatenate(fields, axis=-1) for fields in zip(*parts, strict=True)))
