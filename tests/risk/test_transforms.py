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

COMPILE_QUICKLY = True

RNG = np.random.default_rng(5)
ATOMS = np.sort(RNG.normal(size=7))
PROBS = RNG.dirichlet(np.full(7, 0.7), (2, 3))


def call(measures, atoms, probs):
    law = CategoricalReturn(atoms, probs)
    return jnp.stack([measure(law) for measure in measures])


def test_leading_axes_are_laws_of_their_own():
    """A batch in float64 is what vmap makes of single laws in float32, for every measure."""
    mapped = jax.vmap(jax.vmap(call, (None, None, 0), 1), (None, None, 0), 1)
    single = jax.jit(mapped)(MEASURES, ATOMS.astype(np.float32), PROBS.astype(np.float32))
    with jax.enable_x64(True):
        batch = jax.jit(call)(MEASURES, ATOMS, PROBS)
    assert batch.shape == single.shape == (len(MEASURES), 2, 3)
    assert (batch.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(single, batch, rtol=0, atol=5e-6)


ROWS = [
    [
        *(CVaR(alpha), VaR(alpha), EVaR(alpha), Wang(level), ProportionalHazard(kappa), DualPower(k), MinMaxVar(x)),
        *(CPW(kappa), Entropic(beta), MeanStd(c), MeanVariance(c), MeanSemideviation(c / 2, 1 + c)),
    ]
    for alpha, level, kappa, k, x, beta, c in [
        (0.1, 0.1, 0.3, 1.0, 0.0, -1.0, 0.0),
        (0.6, 0.5, 0.5, 2.0, 0.5, 0.0, 1.0),
        (1.0, 0.9, 1.0, 4.0, 2.0, 2.0, 2.0),
    ]
]


def test_vmap_over_parameters():
    """Three measures of each class as one measure with three parameters."""
    stacks = jax.tree.map(lambda *leaves: jnp.array(leaves), *ROWS)
    mapped = jax.jit(jax.vmap(call, in_axes=(0, None, None)))(stacks, ATOMS, PROBS[0, 0])
    expected = [risks(row, ATOMS, PROBS[0, 0]) for row in ROWS]
    np.testing.assert_allclose(mapped, expected, rtol=0, atol=5e-6)


def test_vmap_over_parameters_of_plain_samples():
    """The samples may be NumPy's; inside a transformation the call is JAX's, in JAX's precision."""
    levels = CVaR(jnp.array([0.25, 0.5, 1.0]))
    mapped = jax.jit(jax.vmap(lambda measure: measure.of(np.array([3.0, 1.0, 4.0, 2.0]))))(levels)
    np.testing.assert_allclose(mapped, [1.0, 1.5, 2.5])
    nested = jax.jit(jax.vmap(lambda outer: Composite(outer, CVaR(0.5)).of([[1.0, 2.0], [5.0, 6.0]])))
    np.testing.assert_allclose(nested(levels), [1.0, 1.0, 3.0])


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
    belief, levels = Belief(CategoricalReturn(ATOMS, PROBS)), jnp.array([0.3, 1.0])
    found = jax.jit(jax.vmap(assess, in_axes=(None, 0, None)))(belief, CVaR(levels), CVaR(0.5))
    assert found.composite.shape == (2, 3)
    np.testing.assert_allclose(found.composite[1], found.additive[1], rtol=1e-5)
    expected = jax.jit(Composite(CVaR(0.3), CVaR(0.5)))(belief)
    np.testing.assert_allclose(found.composite[0], expected, rtol=0, atol=1e-5)
