"""Divergence and distance against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.returns.distance import kl_divergence, mean_wasserstein1, wasserstein1
from tests.risk.strategies import masses, returns

divergence, distance = jax.jit(kl_divergence), jax.jit(wasserstein1)


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


@given(masses(), masses())
def test_kl_against_scipy(p, q):
    with jax.enable_x64(True):
        found = float(divergence(log(p), log(q)))
    assert found == pytest.approx(stats.entropy(p, q), rel=1e-9, abs=1e-12)


@given(returns(), masses(), masses())
def test_wasserstein_against_scipy(x, p, q):
    atoms = np.sort(x)
    with jax.enable_x64(True):
        found = float(distance(atoms, p, q))
    assert found == pytest.approx(stats.wasserstein_distance(atoms, atoms, p, q), rel=1e-9, abs=1e-9)


def test_by_hand():
    half, sure = jnp.log(jnp.array([0.5, 0.5])), jnp.array([0.0, -jnp.inf])
    assert float(kl_divergence(sure, half)) == pytest.approx(np.log(2))
    assert float(kl_divergence(half, sure)) == np.inf
    atoms = jnp.array([0.0, 1.0, 3.0])
    assert float(wasserstein1(atoms, jnp.array([1.0, 0, 0]), jnp.array([0, 0, 1.0]))) == 3.0


def test_a_batch_on_one_grid():
    p, q = np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.array([[0, 0, 1.0], [0, 0, 1.0]])
    np.testing.assert_allclose(wasserstein1(jnp.array([0.0, 1.0, 3.0]), jnp.asarray(p), jnp.asarray(q)), [3, 2])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_nan_stays(place):
    clean = jnp.array([0.5, 0.5, 0.0])
    broken = clean.at[place].set(jnp.nan)
    for p, q in ((clean, broken), (broken, clean)):
        assert np.isnan(divergence(jnp.log(p), jnp.log(q)))
        assert np.isnan(distance(jnp.arange(3.0), p, q))


def test_gradients_are_finite_with_zeros_on_either_side():
    p, q = jnp.array([0.0, 0.5, 0.5]), jnp.array([0.5, 0.5, 0.0])
    for slope in jax.jit(jax.grad(kl_divergence, argnums=(0, 1)))(jnp.log(p), jnp.log(q)):
        assert np.isfinite(slope).all()


def test_mean_distance_between_laws_on_atoms_of_their_own_against_scipy():
    rng = np.random.default_rng(0)
    values, probs = rng.normal(size=(4, 3, 7)), rng.dirichlet(np.ones(7), size=(4, 3))
    values[1, 0] = values[0, 0]  # atoms that are shared
    expected = [
        np.mean(
            [
                stats.wasserstein_distance(values[i, a], values[j, a], probs[i, a], probs[j, a])
                for i in range(4)
                for j in range(i)
            ]
        )
        for a in range(3)
    ]
    found = mean_wasserstein1(CategoricalReturn(np.sort(values), np.take_along_axis(probs, np.argsort(values), -1)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_mean_distance_on_one_grid_and_of_one_law():
    laws = CategoricalReturn([0.0, 1.0, 3.0], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert float(mean_wasserstein1(laws)) == 3.0
    assert float(mean_wasserstein1(CategoricalReturn([0.0, 1.0], [[0.5, 0.5]]))) == 0.0
