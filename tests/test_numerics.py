"""The guards: exact against SciPy where the plain formula is not, finite at the edges, and blind to no NaN."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from sentinel_rl import _numerics as numerics

COMPILE_QUICKLY = True

EDGES = np.array([0.0, 1e-300, 1e-17, 1e-3, 0.25, 0.5, 0.75, 0.999])


@pytest.mark.parametrize("size", [1, 16, 51, 257])
def test_cumulative_sums_from_both_ends(size, precision):
    """Short, middle and long laws are summed by different programs."""
    probs = np.random.default_rng(size).dirichlet(np.full(size, 0.3), 3)
    cdf, survival = jax.jit(numerics.cumulative)(jnp.asarray(probs, precision))
    atol = 1e-15 if precision == "float64" else 6e-7
    np.testing.assert_allclose(cdf, np.cumsum(probs, -1), rtol=0, atol=atol * 10)
    np.testing.assert_allclose(survival[:, :-1], np.cumsum(probs[:, ::-1], -1)[:, -2::-1], rtol=0, atol=atol * 10)
    np.testing.assert_array_equal(survival[:, -1], 0)


def test_cumulative_stays_in_the_unit_interval():
    """A float32 sum of 1000 equal probabilities exceeds one, and 1 - F has no digit of a small last probability."""
    cumulative = jax.jit(numerics.cumulative)
    cdf, survival = cumulative(np.full(1000, 0.001, np.float32))
    assert 0 <= cdf.min() <= cdf.max() <= 1
    assert 0 <= survival.min() <= survival.max() <= 1
    tiny_last = cumulative(np.array([0.5, 0.5, 1e-20], np.float32))[1]
    np.testing.assert_allclose(tiny_last, [0.5, 1e-20, 0], rtol=1e-6)


def test_logarithms_of_both_tails(x64):
    u, s = np.concatenate([EDGES, 1 - EDGES]), np.concatenate([1 - EDGES, EDGES])
    with np.errstate(divide="ignore"):
        exact = np.concatenate([np.log(EDGES), np.log1p(-EDGES)])
    positive = np.isfinite(exact)
    found, mirrored = np.asarray(jax.jit(numerics.log_cdf)(u, s)), np.asarray(jax.jit(numerics.log_survival)(s, u))
    np.testing.assert_allclose(found[positive], exact[positive], rtol=1e-15)
    np.testing.assert_array_equal(mirrored, found)
    assert np.isfinite(found).all()


def test_normal_quantile_of_both_tails(x64):
    inner = EDGES[1:]
    quantile = jax.jit(numerics.normal_quantile)
    lower, upper = quantile(inner, 1 - inner), quantile(1 - inner, inner)
    np.testing.assert_allclose(lower, special.ndtri(inner), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(upper, -special.ndtri(inner), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(numerics.normal_cdf(lower), inner, rtol=1e-11)


def test_normal_quantile_is_finite_at_the_ends(precision):
    slope = jax.jit(jax.value_and_grad(lambda u: numerics.normal_quantile(u, 1 - u)))
    assert np.isfinite([*slope(0.0), *slope(1.0)]).all()


def test_roots_and_powers_with_their_slopes_at_zero():
    values = [jax.value_and_grad(f)(0.0) for f in (numerics.safe_sqrt, lambda x: numerics.safe_power(x, 0.5))]
    assert values == [(0.0, 0.0)] * 2
    assert jax.value_and_grad(numerics.safe_sqrt)(4.0) == (2.0, 0.25)
    assert jax.value_and_grad(numerics.safe_power)(2.0, 3.0) == (8.0, 12.0)
    assert jax.grad(numerics.safe_power, argnums=1)(jnp.float32(0), 3.0) == 0.0


def test_log_mean_exp(x64):
    x = jnp.array([[1000.0, -jnp.inf, -1000.0], [1001.0, -jnp.inf, -jnp.inf]])
    expected = special.logsumexp(x, axis=0) - np.log(2)
    np.testing.assert_allclose(jax.jit(partial(numerics.log_mean_exp, axis=0))(x), expected, rtol=1e-15)
    slopes = jax.jit(jax.grad(lambda y: numerics.log_mean_exp(y, axis=0)[1]))(x)
    np.testing.assert_array_equal(slopes, 0)


def test_zero_times_infinity_is_zero_among_competitors():
    gap = jnp.array([0.0, 2.0, jnp.inf])
    np.testing.assert_array_equal(numerics.ties_at_zero(0.0, gap), [0, 0, 0])
    np.testing.assert_array_equal(numerics.ties_at_zero(3.0, gap), [0, 6, np.inf])
    np.testing.assert_array_equal(numerics.ties_at_zero(jnp.inf, gap), [0, np.inf, np.inf])


NAN = jnp.array([0.3, jnp.nan, 0.2])


@pytest.mark.parametrize(
    "guard",
    [
        lambda x: numerics.cumulative(x)[0],
        lambda x: numerics.cumulative(x)[1][:1],
        lambda x: numerics.log_cdf(x, 1 - x),
        lambda x: numerics.normal_quantile(x, 1 - x),
        lambda x: numerics.normal_cdf(x),
        numerics.safe_sqrt,
        lambda x: numerics.safe_power(x, 2.0),
        lambda x: numerics.safe_power(jnp.full(3, 2.0), x),
        lambda x: numerics.log_mean_exp(x, axis=0),
        lambda x: numerics.ties_at_zero(0.0, x),
        lambda x: numerics.ties_at_zero(x[1], jnp.zeros(1)),
    ],
)
def test_a_nan_that_goes_in_comes_out(guard):
    assert np.isnan(jax.jit(guard)(NAN)).any()
