"""Independent computations of every measure: plain NumPy on the textbook formula, SciPy, and closed forms."""

from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

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
    VaR,
    Wang,
    WorstCase,
)
from tests.risk.strategies import masses, returns
from tests.risk.zoo import risks

COMPILE_QUICKLY = True

# The table of distortions, written once more and without any care for rounding.
G = {
    Expectation(): lambda u: u,
    CVaR(0.3): lambda u: np.minimum(u / 0.3, 1),
    VaR(0.3): lambda u: (u >= 0.3).astype(float),
    Wang(0.1): lambda u: stats.norm.cdf(stats.norm.ppf(u) - stats.norm.ppf(0.1)),
    Wang(0.9): lambda u: stats.norm.cdf(stats.norm.ppf(u) - stats.norm.ppf(0.9)),
    ProportionalHazard(0.4): lambda u: u**0.4,
    DualPower(2.5): lambda u: 1 - (1 - u) ** 2.5,
    MinMaxVar(0.7): lambda u: 1 - (1 - u ** (1 / 1.7)) ** 1.7,
    CPW(0.71): lambda u: u**0.71 / (u**0.71 + (1 - u) ** 0.71) ** (1 / 0.71),
}


def distorted_mean(g, x, p):
    """``sum_j z_j (g(F_j) - g(F_{j-1}))``, the first form of the definition."""
    order = np.argsort(x)
    edges = g(np.clip(np.concatenate([[0.0], np.cumsum(p[order])]), 0, 1))
    return float(x[order] @ np.diff(edges))


@given(returns(), masses())
def test_distortions_against_the_textbook(x, p):
    # The step of VaR must not depend on the last digit of a sum: 0.3 is avoided by a hair.
    p = (p + 1e-7) / (p + 1e-7).sum()
    values = risks(list(G), x, p)
    expected = [distorted_mean(g, x, p) for g in G.values()]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9 * (1 + np.abs(x).max()))


@pytest.mark.parametrize("size", [2, 8, 9, 17, 65, 257])
def test_every_length_has_the_textbooks_value_and_slope(size, x64):
    """Short, middle and long laws are summed by different programs; the slope by an atom is ``g(F_j) - g(F_{j-1})``."""
    rng = np.random.default_rng(size)
    x, p = np.sort(rng.normal(size=size)), rng.dirichlet(np.ones(size))
    measures = [Expectation(), CVaR(0.3), DualPower(2.5)]

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0, 0))  # under vmap, as an agent does it
    def found(measures, atoms, probs):
        return [jax.value_and_grad(lambda z: m(CategoricalReturn(z, probs)))(atoms) for m in measures]  # noqa: B023

    for measure, (value, slope) in zip(measures, found(measures, x[None], p[None]), strict=True):
        steps = np.diff(G[measure](np.clip(np.concatenate([[0.0], np.cumsum(p)]), 0, 1)))
        assert float(value[0]) == pytest.approx(steps @ x, abs=1e-12)
        np.testing.assert_allclose(slope[0], steps, rtol=0, atol=1e-12)


OTHERS = {
    WorstCase(): lambda x, p: x[p > 0].min(),
    BestCase(): lambda x, p: x[p > 0].max(),
    Entropic(0.01): lambda x, p: -special.logsumexp(-0.01 * x, b=p) / 0.01,
    Entropic(2.0): lambda x, p: -special.logsumexp(-2.0 * x, b=p) / 2.0,
    Entropic(-2.0): lambda x, p: special.logsumexp(2.0 * x, b=p) / 2.0,
    MeanStd(1.5): lambda x, p: p @ x - 1.5 * np.sqrt(np.cov(x, aweights=p, ddof=0)),
    MeanVariance(0.2): lambda x, p: p @ x - 0.2 * np.cov(x, aweights=p, ddof=0),
    MeanSemideviation(0.8, 1.0): lambda x, p: p @ x - 0.8 * (p @ np.maximum(p @ x - x, 0)),
    MeanSemideviation(0.8, 3.0): lambda x, p: p @ x - 0.8 * np.cbrt(p @ np.maximum(p @ x - x, 0) ** 3),
}


@given(returns(), masses())
def test_others_against_numpy_and_scipy(x, p):
    values = risks(list(OTHERS), x, p)
    expected = [f(x, p) for f in OTHERS.values()]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-7 * (1 + np.abs(x).max()))


@given(st.floats(0.05, 0.95), returns(), masses())
def test_cvar_is_the_best_threshold(alpha, x, p):
    """Rockafellar and Uryasev: the largest ``q - E (q - Z)_+ / alpha``, attained at an atom."""
    best = max(q - p @ np.maximum(q - x, 0) / alpha for q in x)
    assert risks([CVaR(alpha)], x, p)[0] == pytest.approx(best, abs=1e-9 * (1 + np.abs(x).max()))


@given(st.floats(0.05, 0.95), returns(), masses())
def test_evar_is_the_best_exponential_bound(alpha, x, p):
    """The supremum over t, by SciPy; a search from below can only miss some of it."""
    span = np.ptp(x[p > 0]) or 1.0

    def loss(log_t):
        t = np.exp(log_t) / span
        return (special.logsumexp(-t * x, b=p) - np.log(alpha)) / t

    found = -optimize.minimize_scalar(loss, bounds=(-10, 12), method="bounded", options={"xatol": 1e-9}).fun
    value = risks([EVaR(alpha)], x, p)[0]
    assert found <= value + 1e-7 * (1 + np.abs(x).max())
    assert value == pytest.approx(max(found, x[p > 0].min()), abs=1e-4 * span)


GRID = np.linspace(-9.0, 9.0, 20001)
MEAN, SD = 0.5, 1.2


@pytest.fixture(scope="module")
def gaussian():
    """A Gaussian of mean 0.5 and standard deviation 1.2 on a grid of step 9e-4: each cell's mass at its middle."""
    edges = np.concatenate([[-np.inf], (GRID[1:] + GRID[:-1]) / 2, [np.inf]])
    return np.diff(stats.norm.cdf(edges, MEAN, SD))


@pytest.mark.parametrize("alpha", [0.01, 0.25, 0.5, 0.9])
def test_gaussian_closed_forms(alpha, gaussian):
    q = stats.norm.ppf(alpha)
    expected = {
        CVaR(alpha): MEAN - SD * stats.norm.pdf(q) / alpha,
        Wang(alpha): MEAN + SD * q,
        EVaR(alpha): MEAN - SD * np.sqrt(-2 * np.log(alpha)),
        Entropic(alpha): MEAN - alpha * SD**2 / 2,
        MeanStd(alpha): MEAN - alpha * SD,
        VaR(alpha): MEAN + SD * q,
    }
    *values, var = risks(list(expected), GRID, gaussian)
    *closed_forms, quantile = expected.values()
    np.testing.assert_allclose(values, closed_forms, rtol=0, atol=1e-6)
    assert abs(var - quantile) <= GRID[1] - GRID[0]


def test_a_law_on_one_atom_has_that_value():
    np.testing.assert_allclose(risks([*G, *OTHERS, EVaR(0.2)], [3.5], [1.0]), 3.5, rtol=1e-15)
