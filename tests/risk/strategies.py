"""What Hypothesis draws: scenarios with ties and impossible outcomes, beliefs, and parameters of every measure."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sentinel_rl.risk import (
    CVaR,
    DualPower,
    Entropic,
    EVaR,
    MeanSemideviation,
    MeanStd,
    MeanVariance,
    MinMaxVar,
    ProportionalHazard,
    Wang,
)

SCENARIOS = 5
MEMBERS = 3

# Whole numbers, so that ties are common, or any.
_numbers = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e3, 1e3, allow_subnormal=False))
_alpha = st.one_of(st.sampled_from([0.2, 0.25, 0.5, 1.0]), st.floats(1e-3, 1.0))


def returns(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Returns on common scenarios."""
    return arrays(np.float64, shape or SCENARIOS, elements=_numbers)


def masses(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Probability vectors along the last axis, often with zeros."""
    counts = arrays(np.float64, shape or SCENARIOS, elements=st.integers(0, 8).map(float))
    return counts.filter(lambda w: (w.sum(-1) > 0).all()).map(lambda w: w / w.sum(-1, keepdims=True))


# One of each class with any parameter of its range. The classes and their order never change: nothing is compiled anew.
distortions = st.tuples(
    st.builds(CVaR, _alpha),
    st.builds(Wang, st.floats(1e-3, 0.5)),
    st.builds(ProportionalHazard, st.floats(0.05, 1.0)),
    st.builds(DualPower, st.floats(1.0, 20.0)),
    st.builds(MinMaxVar, st.floats(0.0, 5.0)),
)
coherent = st.tuples(
    distortions, st.builds(EVaR, _alpha), st.builds(MeanSemideviation, st.floats(0.0, 1.0), st.floats(1.0, 4.0))
).map(lambda parts: [*parts[0], *parts[1:]])
ANY_COHERENT = [
    *(CVaR(0.3), Wang(0.2), ProportionalHazard(0.5), DualPower(2.0), MinMaxVar(1.0)),
    EVaR(0.4),
    MeanSemideviation(),
]
incoherent_averse = st.tuples(
    st.builds(Entropic, st.floats(0.0, 3.0)),
    st.builds(MeanStd, st.floats(0.0, 3.0)),
    st.builds(MeanVariance, st.floats(0.0, 3.0)),
).map(list)
