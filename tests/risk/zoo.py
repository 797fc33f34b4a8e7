"""Every measure of the library with usual parameters, and one compiled function that evaluates a list of them."""

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import (
    CPW,
    BestCase,
    CVaR,
    DualPower,
    Entropic,
    EVaR,
    Expectation,
    MeanSemideviation,
    MeanStd,
    MeanVariance,
    MinMaxVar,
    ProportionalHazard,
    RiskMeasure,
    VaR,
    Wang,
    WorstCase,
)

# The table of READING: coherent, and which axioms the others lack.
COHERENT = [
    *(Expectation(), CVaR(0.25), Wang(0.1), Wang(0.5), ProportionalHazard(0.5), DualPower(3.0), MinMaxVar(0.5)),
    *(EVaR(0.3), MeanSemideviation(1.0, 2.0), WorstCase()),
]
INCOHERENT = {
    Wang(0.8): {"superadditive"},
    CPW(0.71): {"superadditive"},
    VaR(0.25): {"superadditive"},
    BestCase(): {"superadditive"},
    Entropic(0.5): {"positively_homogeneous", "superadditive"},
    Entropic(-0.5): {"positively_homogeneous", "superadditive"},
    MeanStd(1.0): {"monotone"},
    MeanVariance(0.5): {"monotone", "positively_homogeneous", "superadditive"},
}
MEASURES = [*COHERENT, *INCOHERENT]
AVERSE = [*COHERENT, Entropic(0.5), MeanStd(1.0), MeanVariance(0.5)]


def name(measure: RiskMeasure) -> str:
    """The id of a parametrised test."""
    return str(measure)


@jax.jit
def _risks(measures, samples, weights):
    law = CategoricalReturn.from_samples(samples, jnp.broadcast_to(weights, samples.shape))
    return jnp.stack([measure(law) for measure in measures])


def risks(measures: list[RiskMeasure], samples, weights) -> np.ndarray:
    """Values ``[measure, ...]`` of samples ``[..., n]`` with weights ``[n]`` in float64; parameters are data."""
    samples, weights = np.asarray(samples, np.float64), np.asarray(weights, np.float64)
    with jax.enable_x64(True):
        return np.asarray(_risks(measures, samples, weights.reshape((1,) * (samples.ndim - 1) + (-1,))))
