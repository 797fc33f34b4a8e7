"""jit, vmap over data and over parameters, and both precisions, for every measure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.belief import Belief, ftrl_weights
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import (
    CPW,
    Composite,
    CVaR,
    DualPower,
    Entropic,
    EVaR,
    MeanSemideviation,
    MeanStd,
    MeanVariance,
    MinMaxVar,
    ProportionalHazard,
    VaR,
    Wang,
    assess,
)
from tests.risk.zoo import MEASURES, risks

RNG = np.random.default_rng(5)
ATOMS = np.sort(RNG.normal(size=7))
PROBS = RNG.dirichlet(np.full(7, 0.7), (2, 3))


def call(measures, atoms, probs):
    law = CategoricalReturn(atoms, probs)
    return jnp.stack([measure(law) for measure in measures])


one_by_one = jax.vmap(jax.vmap(call, (None, None, 0), 1), (None, None, 0), 1)


def test_leading_axes_are_laws_of_their_own(precision):
    """A batch is what vmap makes of single laws, and what the samples give; for every measure."""
    atoms, probs = ATOMS.astype(precision), PROBS.astype(precision)
    batch = jax.jit(call)(MEASURES, atoms, probs)
    assert batch.shape == (len(MEASURES), 2, 3)
    assert batch.dtype == precision
    bound = 1e-13 if precision == "float64" else 2e-6
    np.testing.assert_allclose(jax.jit(one_by_one)(MEASURES, atoms, probs), batch, rtol=0, atol=bound)
    expected = np.stack([risks(MEASURES, ATOMS, p) for p in PROBS.reshape(6, -1)], axis=-1)
    np.testing.assert_allclose(batch.reshape(-1, 6), expected, rtol=0, atol=bound * 3)


def stacked(cls, *columns):
    return cls(*(jnp.array(column) for column in columns))


@pytest.mark.parametrize(
    ("cls", "columns"),
    [
        (CVaR, [[0.1, 0.6, 1.0]]),
        (Wang, [[0.1, 0.5, 0.9]]),
        (ProportionalHazard, [[0.3, 0.5, 1.0]]),
        (DualPower, [[1.0, 2.0, 4.0]]),
        (MinMaxVar, [[0.0, 0.5, 2.0]]),
        (CPW, [[0.5, 0.7, 1.0]]),
        (VaR, [[0.1, 0.5, 1.0]]),
        (EVaR, [[0.1, 0.5, 1.0]]),
        (Entropic, [[-1.0, 0.0, 2.0]]),
        (MeanStd, [[0.0, 1.0, 2.0]]),
        (MeanVariance, [[0.0, 1.0, 2.0]]),
        (MeanSemideviation, [[0.0, 0.5, 1.0], [1.0, 2.0, 3.0]]),
    ],
)
def test_vmap_over_parameters(cls, columns):
    law = CategoricalReturn(ATOMS, PROBS[0, 0])
    mapped = jax.jit(jax.vmap(lambda measure: measure(law)))(stacked(cls, *columns))
    expected = [risks([cls(*row)], ATOMS, PROBS[0, 0])[0] for row in zip(*columns, strict=True)]
    np.testing.assert_allclose(mapped, expected, rtol=0, atol=2e-6)


def test_vmap_over_parameters_of_plain_samples():
    """The samples may be NumPy's; inside a transformation the call is JAX's, in JAX's precision."""
    mapped = jax.vmap(lambda measure: measure.of(np.array([3.0, 1.0, 4.0, 2.0])))(stacked(CVaR, [0.25, 0.5, 1.0]))
    np.testing.assert_allclose(mapped, [1.0, 1.5, 2.5])
    nested = jax.vmap(lambda outer: Composite(outer, CVaR(0.5)).of([[1.0, 2.0], [5.0, 6.0]]))
    mapped = nested(stacked(CVaR, [0.5, 1.0]))
    np.testing.assert_allclose(mapped, [1.0, 3.0])


def test_several_parameters_need_vmap():
    message = r"CVaR holds parameters of shape \(2,\): one measure has scalar parameters. Map over them: jax.vmap"
    with pytest.raises(ValueError, match=message):
        CVaR(np.array([0.1, 0.2])).of([1.0, 2.0])


def test_a_decision_compiles_and_maps_over_states():
    """Logits [states, K, A, n] to one value per action, as an agent does it; states are independent."""
    logits = jnp.asarray(RNG.normal(size=(4, 3, 2, 7)), jnp.float32)
    composite = Composite(CVaR(0.3), Wang(0.2))

    def decide(logits, lam):
        log_probs = jax.nn.log_softmax(logits)
        belief = Belief(CategoricalReturn(ATOMS, jnp.exp(log_probs)), ftrl_weights(log_probs, lam))
        return composite(belief)

    values = jax.jit(jax.vmap(decide, in_axes=(0, None)))(logits, 0.5)
    assert values.shape == (4, 2)
    np.testing.assert_allclose(jax.jit(decide)(logits[1], 0.5), values[1], rtol=1e-5)


def test_an_assessment_passes_through_jit_and_vmap():
    belief = Belief(CategoricalReturn(ATOMS, PROBS))
    plain = assess(belief, CVaR(0.3), CVaR(0.5))
    compiled = jax.jit(assess)(belief, CVaR(0.3), CVaR(0.5))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    over_levels = jax.jit(jax.vmap(assess, in_axes=(None, 0, None)))(belief, stacked(CVaR, [0.3, 1.0]), CVaR(0.5))
    assert over_levels.composite.shape == (2, 3)
    np.testing.assert_allclose(over_levels.composite[1], plain.additive, rtol=1e-5)
