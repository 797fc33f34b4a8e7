"""Input checks at the Python border.

A check runs when the values are known. Inside ``jit``, ``vmap`` or ``grad`` they are not, and only
shapes are checked there: a bad value then flows through the formula (a NaN stays a NaN).
"""

import math
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array

from sentinel_rl._numerics import PROBABILITY_TOLERANCE


def known(*arrays: object) -> bool:
    """Tell whether all values are concrete, so that they may be looked at."""
    return not any(isinstance(array, jax.core.Tracer) for array in arrays)


def is_whole(value: object, low: int = 0, high: int | None = None) -> bool:
    """Tell whether a value is one whole number in a range; true and false are none.

    >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True), is_whole(3, low=4)
    (True, True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return low <= int(value) and (high is None or int(value) <= high)


def is_number(value: object, low: float = -math.inf, high: float = math.inf) -> bool:
    """Tell whether a value is one real number in a range, infinity included; NaN is in none.

    >>> is_number(0.5), is_number(np.float32(2)), is_number(math.nan), is_number("0.5"), is_number(1j), is_number([1])
    (True, True, False, False, False, False)
    """
    kinds = (int, float, np.integer, np.floating, np.ndarray, jax.Array)
    if isinstance(value, bool) or not isinstance(value, kinds) or np.ndim(value) != 0:
        return False
    try:
        return low <= float(value) <= high
    except (OverflowError, TypeError, ValueError):
        return False


def shown(value: object, longest: int = 80) -> str:
    """A value in a message: not longer than a line."""
    told = repr(value)
    return told if len(told) <= longest else f"{told[: longest - 3]}..."


def parameter(name: str, value: object, allowed: Callable[[np.ndarray], np.ndarray], says: str) -> None:
    """Raise `ValueError` unless every value of a parameter is finite and allowed.

    Args:
        name: what the user calls it, for example ``"CVaR alpha"``.
        value: a number, or an array of them to be vmapped over.
        allowed: elementwise test.
        says: the allowed range in words, and what to use instead.
    """
    if not known(value):
        return
    try:
        # NumPy would read "0.5" and None as numbers, but no formula does.
        numbers = np.asarray(value).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}: it must be {says}") from None
    if numbers.size == 0 or not (np.isfinite(numbers) & allowed(numbers)).all():
        raise ValueError(f"{name} = {value} is not allowed: it must be {says}")


def probabilities(name: str, probs: Array, axis: int) -> None:
    """Raise `ValueError` unless the array holds probability vectors along an axis."""
    if probs.size == 0:
        raise ValueError(f"{name} is empty (shape {probs.shape}): give at least one probability")
    if not known(probs):
        return
    values = np.asarray(probs, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds {_first(values, ~np.isfinite(values))}: probabilities must be finite")
    if (values < 0).any():
        raise ValueError(f"{name} holds {_first(values, values < 0)}: probabilities must not be negative")
    worst = np.ravel(values.sum(axis))[np.argmax(np.abs(values.sum(axis) - 1))]
    if abs(worst - 1) > PROBABILITY_TOLERANCE:
        raise ValueError(
            f"{name} sums to {worst:.6g} along axis {axis}: it must sum to 1 within {PROBABILITY_TOLERANCE:g}. "
            f"Divide by the sum, or use CategoricalReturn.from_samples, which normalises"
        )


def ascending(name: str, atoms: Array) -> None:
    """Raise `ValueError` unless atoms are finite and ascend along the last axis."""
    if atoms.size == 0:
        raise ValueError(f"{name} is empty (shape {atoms.shape}): give at least one atom")
    if not known(atoms):
        return
    values = np.asarray(atoms)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds {_first(values, ~np.isfinite(values))}: atoms must be finite")
    descends = values[..., 1:] < values[..., :-1]
    if descends.any():
        steps = np.diff(values.astype(np.float64), axis=-1)
        raise ValueError(
            f"{name} do not ascend (a step of {_first(steps, descends)}): sort them with their probabilities, "
            f"or use CategoricalReturn.from_samples, which sorts"
        )


def samples(values: Array, weights: Array, axis: int) -> None:
    """Raise `ValueError` unless values are finite samples and weights can be normalised along the axis."""
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"values of shape {values.shape} hold no samples: give an array with at least one")
    if not -values.ndim <= axis < values.ndim:
        raise ValueError(f"axis {axis} does not exist in values of shape {values.shape}")
    if weights.ndim and weights.shape not in (values.shape, (values.shape[axis],)):
        raise ValueError(
            f"weights of shape {weights.shape} do not match values of shape {values.shape}: "
            f"give the same shape, or one weight per sample ({values.shape[axis]},)"
        )
    if not known(values, weights):
        return
    numbers = np.asarray(values)
    if not np.isfinite(numbers).all():
        raise ValueError(f"values hold {_first(numbers, ~np.isfinite(numbers))}: samples must be finite")
    if weights.ndim:
        masses("weights", weights, axis if weights.ndim > 1 else -1)


def masses(name: str, weights: Array, axis: int) -> None:
    """Raise `ValueError` unless weights can be normalised along the axis."""
    if not known(weights):
        return
    numbers = np.asarray(weights)
    bad = ~np.isfinite(numbers) | (numbers < 0)
    if bad.any():
        raise ValueError(f"{name} hold {_first(numbers, bad)}: weights must be finite and not negative")
    if not (numbers.sum(axis) > 0).all():
        raise ValueError(f"{name} are all zero along axis {axis}: at least one must be positive")


def _first(values: np.ndarray, where: np.ndarray) -> str:
    """Describe the first offending entry and its place."""
    place = tuple(int(i) for i in np.argwhere(where)[0])
    return f"{values[place]:.6g} at index {place}"


def on_or_none(chosen: bool | None) -> bool | None:
    """True, or None for an option that is off: an identity leaves out None, so runs without it keep their names."""
    return chosen or None
