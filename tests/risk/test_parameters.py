"""What the parameters do: the ends of their ranges, and the order between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def tolerance(x):
    return 1e-9 * (1 + np.abs(x).max())


NEUTRAL = [
    *(CVaR(1.0), Wang(0.5), ProportionalHazard(1.0), DualPower(1.0), MinMaxVar(0.0), CPW(1.0), EVaR(1.0)),
    *(Entropic(0.0), MeanStd(0.0), MeanVariance(0.0), MeanSemideviation(0.0, 3.0)),
]


@given(returns(), masses())
def test_one_end_is_the_mean(x, p):
    mean, *values = risks([Expectation(), *NEUTRAL], x, p)
    assert mean == pytest.approx(p @ x, abs=tolerance(x))
    np.testing.assert_allclose(values, mean, rtol=0, atol=tolerance(x))


EXTREME = [
    *(CVaR(1e-12), CVaR(1e-320), Wang(1e-300), ProportionalHazard(1e-13), DualPower(1e6), MinMaxVar(1e6)),
    *(EVaR(0.01), EVaR(1e-320), VaR(1e-6), Entropic(1e12)),
]


@given(returns(), masses())
def test_the_other_end_is_the_worst_case(x, p):
    """Probabilities are at least 1/40 where they are positive, so alpha = 0.01 lies below every one of them."""
    worst, *values = risks([WorstCase(), *EXTREME], x, p)
    assert worst == x[p > 0].min()
    np.testing.assert_allclose(values, worst, rtol=0, atol=tolerance(x))


@given(returns(), masses())
def test_seeking_ends_are_the_best_case(x, p):
    best, *values = risks([BestCase(), VaR(1.0), Entropic(-1e12), Wang(1 - 1e-16)], x, p)
    assert best == x[p > 0].max()
    np.testing.assert_allclose(values, best, rtol=0, atol=tolerance(x))


def ordered(low, high):
    return st.tuples(st.floats(low, high), st.floats(low, high)).map(sorted)


@given(
    ordered(1e-3, 1.0),
    ordered(1e-3, 0.999),
    ordered(0.05, 1.0),
    ordered(1.0, 20.0),
    ordered(0.0, 5.0),
    ordered(-3.0, 3.0),
    ordered(0.0, 1.0),
    ordered(1.0, 4.0),
    returns(),
    masses(),
)
def test_more_averse_parameters_give_lower_values(alpha, level, kappa, k, x_, beta, c, order, x, p):
    """Larger alpha and kappa are less averse; larger k, x, beta, c and p are more so."""

    def measures(i):
        less = [CVaR(alpha[i]), EVaR(alpha[i]), VaR(alpha[i]), Wang(level[i]), ProportionalHazard(kappa[i])]
        j = 1 - i
        more = [DualPower(k[j]), MinMaxVar(x_[j]), Entropic(beta[j]), MeanStd(c[j]), MeanVariance(c[j])]
        return [*less, *more, MeanSemideviation(c[j], 2.0), MeanSemideviation(1.0, order[j])]

    assert (risks(measures(0), x, p) <= risks(measures(1), x, p) + tolerance(x)).all()


@given(st.floats(1e-3, 1.0), returns(), masses())
def test_evar_below_cvar_below_var(alpha, x, p):
    """EVaR is the tightest Chernoff bound on the two others (Ahmadi-Javid 2012)."""
    evar, cvar, var = risks([EVaR(alpha), CVaR(alpha), VaR(alpha)], x, p)
    assert evar <= cvar + tolerance(x)
    assert cvar <= var + tolerance(x)


def test_tiny_levels_survive_float32():
    """An alpha below the smallest float32 is not zero: nothing is divided by it."""
    values, weights = np.float32([0, 1, 2]), np.float32([0, 1, 1])
    for measure in (CVaR(1e-60), EVaR(1e-60), VaR(1e-60), Wang(1e-60)):
        assert measure.of(values, weights) == 1.0
    assert Wang(1 - 1e-12).of(values, weights) == 2.0


def test_dual_power_is_the_mean_of_the_worst_of_k_draws():
    """Two throws of a coin with 0 and 1: the worse is 1 in one of four cases."""
    assert DualPower(2.0).of([0.0, 1.0]) == pytest.approx(0.25)
    assert DualPower(3.0).of([0.0, 1.0]) == pytest.approx(0.125)
