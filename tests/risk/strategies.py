"""What Hypothesis draws: scenarios with ties and impossible outcomes, beliefs, and parameters of every measure."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

SCENARIOS = 5
MEMBERS = 3

_numbers = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e3, 1e3))
_levels = st.floats(1e-3, 0.999)


def returns(shape: int | tuple[int, ...] = SCENARIOS) -> st.SearchStrategy[np.ndarray]:
    """Returns on common scenarios; whole numbers, so that ties are common, or any."""
    return arrays(np.float64, shape, elements=_numbers)


def weights(shape: int | tuple[int, ...] = SCENARIOS) -> st.SearchStrategy[np.ndarray]:
    """Probability vectors along the last axis, often with zeros."""
    positive = arrays(np.float64, shape, elements=st.integers(0, 8).map(float))
    return positive.filter(lambda w: (w.sum(-1) > 0).all()).map(lambda w: w / w.sum(-1, keepdims=True))


levels = _levels
