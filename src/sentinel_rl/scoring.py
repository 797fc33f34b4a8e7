"""How good predicted laws and scores are, judged by what happened: PIT, CRPS, tails, AUROC and risk-coverage curves.

Nothing here knows agents or environments. A prediction is a `CategoricalReturn` ``[..., n]``, what happened is one
number for each of its laws ``[...]``. Numbers of one episode depend on each other: intervals draw whole groups.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy import stats

from sentinel_rl.errors import UsageError
from sentinel_rl.returns import CategoricalReturn

Reading = Literal["cells", "steps"]
_RESAMPLES = 1_000


def cell_edges(values: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... m"]:
    """The ends of the cells that ascending atoms stand for: the middles between neighbours, ``n + 1`` numbers.

    Nothing lies beyond the first and the last atom: a network's targets are clipped there.

    Example:
        >>> cell_edges(np.array([0.0, 1.0, 3.0])).tolist()
        [0.0, 0.5, 2.0, 3.0]
    """
    middles = (values[..., 1:] + values[..., :-1]) / 2
    return np.concatenate([values[..., :1], middles, values[..., -1:]], axis=-1)


def cdf_at(
    law: CategoricalReturn, outcome: ArrayLike, reading: Reading = "cells"
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """``F(y-)`` and ``F(y)`` of every law at its outcome; they differ where the law has a mass on the outcome.

    Args:
        law: laws ``[..., n]``.
        outcome: what happened, ``[...]`` or what broadcasts to it.
        reading: ``"cells"``: an atom stands for all returns that are nearer to it than to other atoms, evenly, as the
            atoms of a network do. ``"steps"``: nothing but the atoms can happen.
    """
    if reading not in get_args(Reading):
        raise UsageError(f"unknown reading {reading!r} of a law: choose one of {', '.join(get_args(Reading))}")
    values, probs = np.asarray(law.values, np.float64), np.asarray(law.probs, np.float64)
    y = _outcomes(outcome, values.shape[:-1])[..., None]
    if reading == "steps":
        below, upto = (probs * (values < y)).sum(-1), np.minimum((probs * (values <= y)).sum(-1), 1.0)
        return np.asarray(below), np.asarray(upto)
    edges = cell_edges(values)
    levels = np.concatenate([np.zeros((*probs.shape[:-1], 1)), np.asarray(law.cdf(), np.float64)], axis=-1)
    return _on_line(edges, levels, y, edges < y), _on_line(edges, levels, y, edges <= y)


def _on_line(edges: np.ndarray, levels: np.ndarray, y: np.ndarray, passed: np.ndarray) -> np.ndarray:
    """The height at `y` of a line through the edges, where `passed` says which of them lie before it."""
    count = passed.sum(-1, keepdims=True)
    before, after = np.clip(count - 1, 0, None), np.clip(count, None, edges.shape[-1] - 1)
    left, right = (np.take_along_axis(edges, place, -1) for place in (before, after))
    low, high = (np.take_along_axis(levels, place, -1) for place in (before, after))
    width = right - left
    share = np.divide(y - left, width, out=np.zeros_like(width), where=width > 0)
    height = np.where(count == 0, 0.0, np.where(count == edges.shape[-1], 1.0, low + share * (high - low)))
    return np.asarray(height[..., 0])


def pit(
    law: CategoricalReturn, outcome: ArrayLike, reading: Reading = "cells", seed: int = 0
) -> Float[np.ndarray, "..."]:
    """The probability integral transform ``F(y)``: evenly distributed on [0, 1] where outcomes follow their laws.

    On a mass it is drawn evenly from ``F(y-)`` to ``F(y)`` (the randomised PIT).

    Example:
        >>> law = CategoricalReturn([0.0, 1.0, 2.0], [[0.25, 0.5, 0.25]])
        >>> pit(law, [1.0]).tolist()  # half of the cell of the atom 1 lies below 1
        [0.5]
    """
    below, upto = cdf_at(law, outcome, reading)
    return np.asarray(below + np.random.default_rng(seed).uniform(size=below.shape) * (upto - below))


def crps(law: CategoricalReturn, outcome: ArrayLike) -> Float[np.ndarray, "..."]:
    """The continuous ranked probability score ``E|X - y| - E|X - X'| / 2`` of every law; lower is better.

    It has the unit of the return, and for a law that is one number it is the absolute error.

    Example:
        >>> crps(CategoricalReturn([0.0, 1.0], [[0.5, 0.5], [0.0, 1.0]]), [0.0, 0.0]).tolist()
        [0.25, 1.0]
    """
    values, probs = np.asarray(law.values, np.float64), np.asarray(law.probs, np.float64)
    y = _outcomes(outcome, values.shape[:-1])[..., None]
    cdf = np.asarray(law.cdf(), np.float64)[..., :-1]
    spread = (cdf * (1 - cdf) * np.diff(values, axis=-1)).sum(-1)
    return np.asarray((probs * np.abs(values - y)).sum(-1) - spread)


class Share(NamedTuple):
    """How often something happened, with its 95 % interval over groups."""

    share: float
    low: float
    high: float


def share_below(levels: Float[np.ndarray, " T"], level: float, groups: ArrayLike | None = None, seed: int = 0) -> Share:
    """How often outcomes fell below the predicted quantile of a level: a calibrated law gives the level itself.

    Args:
        levels: PIT values.
        level: of the quantile, such as 0.1.
        groups: the episode of every value; whole episodes are drawn for the interval. Each value its own when None.
        seed: of the bootstrap.
    """
    if not 0 < level < 1:
        raise UsageError(f"the level of a quantile lies between 0 and 1, got {level}")
    return mean_over_groups(np.asarray(levels) < level, groups, seed)


def mean_over_groups(values: ArrayLike, groups: ArrayLike | None = None, seed: int = 0) -> Share:
    """A mean with its 95 % bootstrap interval, for which whole groups are drawn."""
    numbers = _some("values", values)
    labels = np.arange(numbers.size) if groups is None else np.asarray(groups)
    if labels.shape != numbers.shape:
        raise UsageError(f"every value belongs to one group, got {numbers.size} values and {labels.size} labels")
    _, place = np.unique(labels, return_inverse=True)
    sums, sizes = np.bincount(place, numbers), np.bincount(place).astype(float)
    drawn = np.random.default_rng(seed).multinomial(sums.size, np.full(sums.size, 1 / sums.size), _RESAMPLES)
    low, high = np.quantile((drawn @ sums) / (drawn @ sizes), [0.025, 0.975])
    return Share(float(numbers.mean()), float(low), float(high))


def calibration_error(levels: Float[np.ndarray, " T"], places: int = 99) -> float:
    """The mean distance of ``share_below(levels, u)`` from ``u`` over evenly spaced levels; 0 is calibrated, 0.5 worst.

    Example:
        >>> round(calibration_error(np.linspace(0.0, 1.0, 1001)), 3)
        0.0
    """
    ordered = np.sort(_some("levels", levels))
    expected = np.arange(1, places + 1) / (places + 1)
    shares = np.searchsorted(ordered, expected, side="left") / ordered.size
    return float(np.mean(np.abs(shares - expected)))


def auroc(scores: ArrayLike, positive: ArrayLike) -> float:
    """The chance that a positive case has a higher score than a negative one, ties counted half.

    1 separates the two, 0.5 is what any constant gives.

    Raises:
        UsageError: where there are not both kinds of cases.

    Example:
        >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
        0.75
    """
    numbers, kind = _some("scores", scores), _labels(positive, np.shape(scores))
    many, few = int(kind.sum()), int((~kind).sum())
    if not many or not few:
        raise UsageError(f"AUROC compares two kinds of cases, got {many} positive and {few} negative ones")
    ranks = stats.rankdata(numbers)
    return float((ranks[kind].sum() - many * (many + 1) / 2) / (many * few))


class RiskCoverage(NamedTuple):
    """The mean loss of the cases that are kept, by the share that is kept.

    Args:
        coverage: share of the cases that are kept, those of the lowest scores first.
        risk: mean loss of these.
        area: mean of the risk over all coverages.
        at_random: the same where cases are kept at random: the mean loss.
        best: the same where the loss itself decides: no score does better.
    """

    coverage: Float[np.ndarray, " T"]
    risk: Float[np.ndarray, " T"]
    area: float
    at_random: float
    best: float


def risk_coverage(scores: ArrayLike, losses: ArrayLike) -> RiskCoverage:
    """The risk-coverage curve of a score; cases of equal scores count as if they were kept in random order.

    Example:
        >>> told = risk_coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0])
        >>> told.risk.tolist(), told.at_random
        ([0.0, 0.0, 0.0, 0.25], 0.25)
    """
    numbers, costs = _some("scores", scores), _some("losses", losses)
    if numbers.shape != costs.shape:
        raise UsageError(f"every score has one loss, got {numbers.size} scores and {costs.size} losses")
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    even = (np.bincount(place, costs) / counts)[place]
    kept = np.arange(1, numbers.size + 1)
    risk = np.cumsum(even[np.argsort(numbers, kind="stable")]) / kept
    best = np.cumsum(np.sort(costs)) / kept
    return RiskCoverage(kept / numbers.size, risk, float(risk.mean()), float(costs.mean()), float(best.mean()))


def threshold_at(scores: ArrayLike, coverage: float) -> float:
    """The lowest of the scores that at least a share `coverage` of them does not exceed.

    Example:
        >>> threshold_at([0.3, 0.1, 0.2, 0.9], 0.75)
        0.3
    """
    if not 0 < coverage <= 1:
        raise UsageError(f"a coverage lies between 0 and 1, got {coverage}")
    ordered = np.sort(_some("scores", scores))
    return float(ordered[max(int(np.ceil(coverage * ordered.size)), 1) - 1])


def _outcomes(outcome: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    y = np.asarray(outcome, np.float64)
    if not np.isfinite(y).all():
        raise UsageError("an outcome is not a finite number: leave out what is not known")
    try:
        return np.broadcast_to(y, shape)
    except ValueError:
        raise UsageError(f"outcomes of shape {y.shape} do not fit laws of shape {shape}: give one for each") from None


def _some(name: str, values: ArrayLike) -> Float[np.ndarray, " T"]:
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise UsageError(f"{name} must be a list of finite numbers, got an array of shape {numbers.shape}")
    return numbers


def _labels(positive: ArrayLike, shape: tuple[int, ...]) -> Bool[np.ndarray, " T"]:
    kind = np.asarray(positive)
    if kind.dtype != bool or kind.shape != shape:
        raise UsageError(f"positive must hold one truth value for each score, got {kind.dtype} of shape {kind.shape}")
    return kind
