"""The mean of the worst part of numbers, as the library's CVaR has it, in NumPy for arrays of any size."""

import numpy as np


def tail_mean(values: np.ndarray, alpha: float) -> np.ndarray:
    """CVaR over the last axis: the mean of the lowest share `alpha`, the number at its edge counted in part.

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
