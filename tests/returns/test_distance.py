"""Divergence and distance against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from sentinel_rl.returns.distance import kl_divergence, wasserstein1
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
