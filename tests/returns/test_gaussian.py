"""Gaussian mixtures against SciPy, by hand, and by what must hold."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads
from scipy import integrate, stats

from sentinel_rl.returns import GaussianMixture
from tests.paper.reference import FIGURES, fixed_mixture

PARTS = (np.array([-1.0, 0.5, 4.0]), np.array([0.3, 2.0, 1.0]), np.array([0.2, 0.5, 0.3]))
POINTS = np.array([-3.0, -1.0, 0.0, 2.5, 7.0])
LEVELS = np.array([0.001, 0.05, 0.25, 0.5, 0.9, 0.999])


@functools.partial(jax.jit, static_argnames="method")
def call(method, parts, *arguments):
    """A method of the mixture with these means, standard deviations and weights."""
    return getattr(GaussianMixture(*parts), method)(*arguments)


@jax.jit
def cdf_of_quantile(parts, u):
    law = GaussianMixture(*parts)
    return law.cdf(law.quantile(u))


def density(x):
    """The density of the mixture by SciPy."""
    return stats.norm.pdf(np.asarray(x)[..., None], *PARTS[:2]) @ PARTS[2]


@st.composite
def mixtures(draw):
    """Means, standard deviations and weights of four components of different widths, some without weight."""
    numbers = st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4)
    means, logs, masses = (np.array(draw(numbers)) for _ in range(3))
    masses = np.maximum(masses, 0) + np.eye(4)[0] * 0.1
    return 10 * means, np.exp(2 * logs), masses / masses.sum()


def test_density_and_cdf_agree_with_scipy(x64):
    np.testing.assert_allclose(call("pdf", PARTS, POINTS), density(POINTS), rtol=1e-12)
    np.testing.assert_allclose(call("log_pdf", PARTS, POINTS), np.log(density(POINTS)), rtol=1e-12)
    cdf = stats.norm.cdf(POINTS[:, None], *PARTS[:2]) @ PARTS[2]
    np.testing.assert_allclose(call("cdf", PARTS, POINTS), cdf, rtol=1e-12)


def test_moments_agree_with_quadrature(x64):
    mean = integrate.quad(lambda x: x * density(x), -40, 40, epsabs=1e-10)[0]
    variance = integrate.quad(lambda x: (x - mean) ** 2 * density(x), -40, 40, epsabs=1e-10)[0]
    found = [call(method, PARTS) for method in ("mean", "variance", "std")]
    np.testing.assert_allclose(found, [mean, variance, variance**0.5], rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.01, 0.25, 0.8])
def test_tail_mean_agrees_with_quadrature(x64, alpha):
    q = float(call("quantile", PARTS, alpha))
    tail = integrate.quad(lambda x: x * density(x), -40, q, epsabs=1e-11, limit=200)[0]
    np.testing.assert_allclose(call("tail_mean", PARTS, alpha), tail / alpha, rtol=1e-8)


def test_one_component_is_the_closed_form(precision):
    mean, std, z = np.array([0.0, 3.0]), np.array([1.0, 0.5]), stats.norm.ppf(LEVELS)[:, None]
    parts = (mean[:, None], std[:, None], np.ones((2, 1)))
    rtol, atol = (1e-5, 1e-6) if precision == "float32" else (1e-12, 1e-15)
    tail = mean - std * stats.norm.pdf(z) / LEVELS[:, None]
    np.testing.assert_allclose(call("tail_mean", parts, LEVELS[:, None]), tail, rtol=rtol, atol=atol)
    np.testing.assert_allclose(call("quantile", parts, LEVELS[:, None]), mean + std * z, rtol=rtol, atol=atol)


def test_a_plain_gaussian_is_one_component():
    law = GaussianMixture.gaussian(np.array([0.0, 3.0]), 1.0)
    assert law.means.shape == law.stds.shape == law.weights.shape == (2, 1)
    np.testing.assert_array_equal(law.weights, 1)


def test_worst_half_of_a_standard_normal_by_hand(x64):
    half = call("tail_mean", (np.zeros(1), np.ones(1), np.ones(1)), 0.5)
    assert float(half) == pytest.approx(-np.sqrt(2 / np.pi), abs=1e-15)


def test_reference_instance(x64):
    instance = FIGURES["fixed_mixture_instance"]
    found = call("tail_mean", fixed_mixture(), np.array(instance["alphas"]))
    np.testing.assert_allclose(found, instance["total"], rtol=0, atol=1e-11)


@given(mixtures(), st.floats(1e-3, 0.999))
def test_quantile_inverts_the_cdf(parts, u):
    assert float(cdf_of_quantile(parts, u)) == pytest.approx(u, abs=1e-5)


@given(mixtures(), st.floats(1e-3, 1.0), st.floats(1e-3, 1.0))
def test_a_worse_tail_has_a_lower_mean(parts, first, second):
    low, high = sorted([first, second])
    slack = 1e-5 * np.max(np.abs(parts[0]) + parts[1]) / low
    assert call("tail_mean", parts, low) <= call("tail_mean", parts, high) + slack
    assert call("tail_mean", parts, high) <= call("tail_mean", parts, 1.0) + slack


@given(mixtures(), st.floats(-5, 5), st.floats(0.1, 5), st.floats(0.05, 1.0))
def test_tail_mean_moves_and_scales_with_the_return(parts, shift, scale, alpha):
    means, stds, weights = parts
    moved = float(call("tail_mean", (scale * means + shift, scale * stds, weights), alpha))
    assert moved == pytest.approx(scale * float(call("tail_mean", parts, alpha)) + shift, rel=1e-4, abs=1e-3)


def test_the_whole_tail_is_the_mean(precision):
    assert float(call("tail_mean", PARTS, 1.0)) == float(call("mean", PARTS))


def test_gradients_are_those_of_finite_differences(x64):
    for method in ("tail_mean", "quantile"):
        check_grads(functools.partial(call, method), (PARTS, 0.25), order=1, modes=["rev"])


@pytest.mark.parametrize("alpha", [1e-3, 0.25, 1.0])
def test_gradients_are_finite_where_a_component_has_no_weight(alpha):
    parts = (*PARTS[:2], np.array([1.0, 0.0, 0.0]))
    gradients = jax.grad(functools.partial(call, "tail_mean"), argnums=(0, 1))(parts, alpha)
    assert all(np.isfinite(gradient).all() for gradient in jax.tree.leaves(gradients))


def test_between_far_components_the_quantile_stays_in_the_bracket(precision):
    parts = (np.array([-1e4, 1e4]), np.array([1e-2, 1e-2]), np.array([0.5, 0.5]))
    assert abs(float(call("quantile", parts, 0.5))) <= 1e4
    assert np.isfinite(jax.grad(lambda u: call("quantile", parts, u))(0.5))
    assert float(call("tail_mean", parts, 0.5)) == pytest.approx(-1e4, rel=1e-5)


def test_leading_axes_broadcast_and_vmap_agrees(x64):
    batch = (np.stack([PARTS[0], PARTS[0] + 1]), *PARTS[1:])
    found = call("tail_mean", batch, LEVELS[:, None])
    mapped = jax.vmap(lambda alpha: call("tail_mean", batch, alpha))(jnp.asarray(LEVELS))
    np.testing.assert_allclose(found, mapped, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], found[:, 0] + 1, rtol=1e-12)


def test_equal_weights_by_default():
    np.testing.assert_array_equal(GaussianMixture([0.0, 1.0], [1.0, 1.0]).weights, [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0]), "stds = .* must be positive"),
        (([0.0], [-1.0]), "stds = .* must be positive"),
        (([np.nan], [1.0]), "means = .* must be finite"),
        (([0.0, 1.0], [1.0, 1.0], [0.5, 0.6]), "weights sums to 1.1"),
        (([0.0, 1.0], [1.0, 1.0], [1.5, -0.5]), "must not be negative"),
        (([0.0, 1.0], [1.0, 1.0, 1.0]), "do not match"),
        ((0.0, 1.0), r"use GaussianMixture.gaussian\(mean, std\)"),
        (([], []), "means = .* must be finite"),
    ],
)
def test_bad_laws_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(*arguments)


@pytest.mark.parametrize("level", [0.0, -0.1, 1.5, np.nan])
def test_bad_levels_are_refused(level):
    law = GaussianMixture(*PARTS)
    with pytest.raises(ValueError, match="must be in"):
        law.quantile(level)
    with pytest.raises(ValueError, match="must be in"):
        law.tail_mean(level)


def test_a_nan_stays_a_nan_inside_jit():
    parts = (np.array([np.nan]), np.ones(1), np.ones(1))
    assert np.isnan(call("tail_mean", parts, 0.25))
    assert np.isnan(call("quantile", parts, 0.25))
