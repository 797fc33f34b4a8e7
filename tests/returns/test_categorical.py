"""Laws on finitely many atoms: moments, distribution function, samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sentinel_rl.returns import CategoricalReturn, Support
from tests.risk.strategies import SCENARIOS, masses, returns

DICE = CategoricalReturn([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.full(6, 1 / 6))


@jax.jit
def describe(samples, weights):
    law = CategoricalReturn.from_samples(samples, weights)
    return law.atoms, law.probs, law.mean(), law.variance(), law.std(), law.cdf(), law.survival()


def test_a_die_by_hand():
    assert float(DICE.mean()) == pytest.approx(3.5)
    assert float(DICE.variance()) == pytest.approx(35 / 12)
    assert float(DICE.std()) == pytest.approx(np.sqrt(35 / 12))
    np.testing.assert_allclose(DICE.cdf(), np.arange(1, 7) / 6, rtol=1e-6)
    np.testing.assert_allclose(DICE.survival(), np.arange(5, -1, -1) / 6, rtol=1e-6, atol=0)


@given(returns(), masses())
def test_moments_against_scipy(x, p):
    with jax.enable_x64(True):
        atoms, probs, mean, variance, std, cdf, survival = map(np.asarray, describe(x, p))
    law = stats.rv_discrete(values=(np.arange(SCENARIOS), p))  # over the scenarios
    scale = 1 + np.abs(x).max()
    assert mean == pytest.approx(law.expect(lambda i: x[i.astype(int)]), abs=1e-12 * scale)
    assert variance == pytest.approx(np.cov(x, aweights=p, ddof=0), abs=1e-12 * scale**2)
    assert std**2 == pytest.approx(variance, rel=1e-12)
    assert (np.diff(atoms) >= 0).all()
    for z in x[p > 0]:
        assert cdf[atoms <= z][-1] == pytest.approx(p[x <= z].sum(), abs=1e-12)
    np.testing.assert_allclose(cdf + survival, 1, atol=1e-12)
    np.testing.assert_allclose(probs.sum(), 1, atol=1e-12)


def test_samples_are_sorted_with_their_weights():
    law = CategoricalReturn.from_samples([3.0, 1.0, 2.0], [6.0, 1.0, 3.0])
    np.testing.assert_array_equal(law.atoms, [1, 2, 3])
    np.testing.assert_allclose(law.probs, [0.1, 0.3, 0.6], rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 5, 8, 9, 17])
def test_sorting_is_stable_for_every_length(size):
    """Few samples and many are sorted by different programs; equal ones keep their order."""
    rng = np.random.default_rng(size)
    values, weights = rng.integers(-2, 3, (4, size)).astype(np.float32), rng.uniform(1, 2, (4, size)).astype(np.float32)
    order = np.argsort(values, axis=-1, kind="stable")
    law = jax.jit(CategoricalReturn.from_samples)(values, weights)
    expected = np.take_along_axis(weights, order, -1) / weights.sum(-1, keepdims=True)
    np.testing.assert_array_equal(law.atoms, np.take_along_axis(values, order, -1))
    np.testing.assert_allclose(law.probs, expected, rtol=1e-6)


def test_impossible_samples_are_moved_inside():
    """1e30 with weight zero is no outcome, and would cost every digit of a sum."""
    law = CategoricalReturn.from_samples([1e30, 1.0, 2.0], [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(law.atoms, [1, 2, 2])
    assert float(law.mean()) == 1.5


def test_weights_may_be_tiny_or_huge():
    for scale in (1e-37, 1e37):
        law = CategoricalReturn.from_samples([1.0, 2.0], np.float32([3, 1]) * np.float32(scale))
        np.testing.assert_allclose(law.probs, [0.75, 0.25], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_samples_along_any_axis(axis):
    values = np.arange(6.0).reshape(2, 3)
    law = CategoricalReturn.from_samples(values, axis=axis)
    np.testing.assert_allclose(law.mean(), values.mean(axis), rtol=1e-6)


def test_atoms_are_shared_or_own():
    probs = np.full((4, 2, 3), 1 / 3)
    shared = CategoricalReturn([0.0, 1.0, 2.0], probs)
    assert shared.atoms.shape == (3,)
    assert shared.values.shape == (4, 2, 3)
    per_action = CategoricalReturn(np.arange(6.0).reshape(2, 3), probs)
    np.testing.assert_allclose(per_action.mean(), np.tile([1.0, 4.0], (4, 1)), rtol=1e-6)


@given(arrays(np.float32, (7, 51), elements=st.floats(-60, 60, width=32)))
def test_softmax_laws_are_accepted_in_float32(logits):
    """What a C51 network gives, however extreme: no sum is off by more than the tolerance."""
    law = CategoricalReturn(np.linspace(0, 10, 51), jax.nn.softmax(jnp.asarray(logits)))
    assert law.probs.dtype == jnp.float32
    assert (law.cdf() <= 1).all()
    assert ((law.mean() >= -1e-5) & (law.mean() <= 10 + 1e-5)).all()


def test_support_is_a_uniform_grid():
    grid = Support(-1.0, 3.0, 5)
    assert grid.step == 1.0
    np.testing.assert_array_equal(grid.atoms, [-1, 0, 1, 2, 3])
    assert Support(0.0, 40.0).atoms.shape == (51,)
    assert Support(0, 1, 2) == Support(0.0, 1.0, 2)


def test_support_is_as_exact_as_its_dtype(precision):
    atoms = Support(0.0, 0.7, 8).atoms
    assert atoms.dtype == precision
    np.testing.assert_array_equal(atoms, np.linspace(0.0, 0.7, 8).astype(precision))


@pytest.mark.parametrize("of", [lambda law: law.mean(), lambda law: law.std(), lambda law: law.cdf()[0]])
def test_gradients_at_a_point_mass_are_finite(of):
    def value(atoms, probs):
        return of(CategoricalReturn(atoms, probs))

    for probs in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        for slope in jax.jit(jax.grad(value, argnums=(0, 1)))(jnp.arange(3.0), jnp.array(probs)):
            assert np.isfinite(slope).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_samples_without_weights_are_samples_of_equal_weight(axis: int):
    samples = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    plain = CategoricalReturn.from_samples(samples, axis=axis)
    weighted = CategoricalReturn.from_samples(samples, np.ones(samples.shape[axis], np.float32), axis)
    np.testing.assert_array_equal(plain.atoms, weighted.atoms)
    np.testing.assert_allclose(plain.probs, weighted.probs, rtol=1e-6)


def test_one_nan_among_many_samples_spoils_them_all():
    samples = jnp.arange(20.0).at[3].set(jnp.nan)
    assert np.all(np.isnan(jax.jit(lambda x: CategoricalReturn.from_samples(x).atoms)(samples)))
