"""Lower quantiles against a NumPy loop and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import VaR
from tests.risk.strategies import masses, returns


@jax.jit
def both(samples, weights, u):
    law = CategoricalReturn.from_samples(samples, weights)
    return law.quantile(u), VaR(u)(law)


def by_loop(x, p, u):
    """``inf {z : F(z) >= u}``, forgiving the rounding of the sum."""
    total = 0.0
    for i in np.argsort(x):
        total += p[i]
        if p[i] > 0 and total >= u - 1e-12:
            return x[i]
    raise AssertionError


# Levels on the steps of the distribution function, where a rounding error would take the wrong atom, and between.
LEVELS = st.one_of(st.fractions(0, 1, max_denominator=40).filter(lambda u: u > 0).map(float), st.floats(1e-3, 1.0))


@given(returns(), masses(), LEVELS)
def test_against_a_loop(x, p, u):
    with jax.enable_x64(True):
        quantile, var = map(float, both(x, p, u))
    assert quantile == by_loop(x, p, u)
    assert var == pytest.approx(quantile, abs=1e-12 * (1 + np.abs(x).max()))


@given(masses(), LEVELS)
def test_whole_numbers_against_scipy_in_float32(p, u):
    law = stats.rv_discrete(values=(np.arange(5), p))
    expected = law.ppf(u - 1e-9)  # SciPy forgives no rounding on a step
    assert both(np.arange(5, dtype=np.float32), p.astype(np.float32), np.float32(u)) == (expected, expected)


def test_a_die_by_hand():
    law = CategoricalReturn([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.full(6, 1 / 6))
    levels = jnp.array([0.01, 1 / 6, 0.17, 0.5, 0.51, 1.0])
    np.testing.assert_array_equal(jax.vmap(law.quantile)(levels), [1, 1, 2, 3, 4, 6])


def test_the_top_quantile_is_the_best_possible_outcome():
    law = CategoricalReturn([1.0, 2.0, 3.0], [0.5, 0.5, 0.0])
    assert law.quantile(1.0) == 2.0


def test_every_law_of_a_batch():
    law = CategoricalReturn([0.0, 1.0], [[0.3, 0.7], [0.8, 0.2]])
    np.testing.assert_array_equal(law.quantile(0.5), [1, 0])


def test_a_nan_stays():
    nan = jax.jit(lambda p: CategoricalReturn([0.0, 1.0], p).quantile(0.5))(jnp.array([0.3, jnp.nan]))
    assert np.isnan(nan)


@pytest.mark.parametrize("u", [0.0, -0.1, 1.1, np.nan])
def test_bad_levels(u):
    law = CategoricalReturn([0.0, 1.0], [0.3, 0.7])
    with pytest.raises(ValueError, match=rf"quantile level u = {u} is not allowed: it must be in \(0, 1\]"):
        law.quantile(u)
    with pytest.raises(ValueError, match=r"quantile takes one level u, got shape \(2,\): use jax.vmap\(law.quantile\)"):
        law.quantile([0.1, 0.2])
