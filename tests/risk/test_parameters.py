"""What the parameters do: the ends of their ranges, and the order between them."""

import jax
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

COMPILE_QUICKLY = True


def tolerance(x):
    return 1e-9 * (1 + np.abs(x).max())


def family(*, alpha=0.3, level=0.3, kappa=0.5, k=2.0, x_=0.5, eta=0.7, beta=0.5, c=1.0, p_=2.0):
    """One of each class: always the same list, so that it is compiled once."""
    return [
        *(Expectation(), WorstCase(), BestCase(), CVaR(alpha), EVaR(alpha), VaR(alpha), Wang(level)),
        *(ProportionalHazard(kappa), DualPower(k), MinMaxVar(x_), CPW(eta), Entropic(beta)),
        *(MeanStd(c), MeanVariance(c), MeanSemideviation(min(c, 1.0), p_)),
    ]


def values(x, p, **parameters):
    """Values by class, in float64."""
    measures = family(**parameters)
    return dict(zip(map(type, measures), risks(measures, x, p), strict=True))


@given(returns(), masses())
def test_one_end_is_the_mean(x, p):
    found = values(x, p, alpha=1.0, level=0.5, kappa=1.0, k=1.0, x_=0.0, eta=1.0, beta=0.0, c=0.0, p_=3.0)
    assert found[Expectation] == pytest.approx(p @ x, abs=tolerance(x))
    for cls in found.keys() - {WorstCase, BestCase, VaR}:
        assert found[cls] == pytest.approx(found[Expectation], abs=tolerance(x)), cls


@pytest.mark.parametrize("alpha", [0.01, 1e-12, 1e-320])
@given(returns(), masses())
def test_the_other_end_is_the_worst_case(alpha, x, p):
    """Probabilities are at least 1/40 where they are positive, so alpha lies below every one of them."""
    found = values(x, p, alpha=alpha, level=1e-300, kappa=1e-13, k=1e6, x_=1e6, beta=1e12)
    assert found[WorstCase] == x[p > 0].min()
    for cls in (CVaR, EVaR, VaR, Wang, ProportionalHazard, DualPower, MinMaxVar, Entropic):
        assert found[cls] == pytest.approx(found[WorstCase], abs=tolerance(x)), cls


@given(returns(), masses())
def test_seeking_ends_are_the_best_case(x, p):
    found = values(x, p, alpha=1.0, level=1 - 1e-16, beta=-1e12)
    assert found[BestCase] == x[p > 0].max()
    for cls in (VaR, Wang, Entropic):
        assert found[cls] == pytest.approx(found[BestCase], abs=tolerance(x)), cls


def ordered(low, high):
    return st.tuples(st.floats(low, high), st.floats(low, high)).map(sorted)


LESS_AVERSE = {"alpha": ordered(1e-3, 1.0), "level": ordered(1e-3, 0.999), "kappa": ordered(0.05, 1.0)}
MORE_AVERSE = {"k": ordered(1.0, 20.0), "x_": ordered(0.0, 5.0), "beta": ordered(-3.0, 3.0), "c": ordered(0.0, 3.0)}


@given(st.fixed_dictionaries(LESS_AVERSE), st.fixed_dictionaries(MORE_AVERSE), ordered(1.0, 4.0), returns(), masses())
def test_the_order_of_parameters_is_the_order_of_values(less, more, order, x, p):
    """Larger alpha and kappa are less averse; larger k, x, beta, c are more so, and so is the p of semideviation."""
    averse = values(x, p, **{n: v[0] for n, v in less.items()}, **{n: v[1] for n, v in more.items()})
    bold = values(x, p, **{n: v[1] for n, v in less.items()}, **{n: v[0] for n, v in more.items()})
    for cls in averse:
        assert averse[cls] <= bold[cls] + tolerance(x) * (1 + np.abs(x).max() * (cls is MeanVariance)), cls
    low, high = (values(x, p, p_=v)[MeanSemideviation] for v in order)
    assert high <= low + tolerance(x)


@given(st.floats(1e-3, 1.0), returns(), masses())
def test_evar_below_cvar_below_var(alpha, x, p):
    """EVaR is the tightest Chernoff bound on the two others (Ahmadi-Javid 2012)."""
    found = values(x, p, alpha=alpha)
    assert found[EVaR] <= found[CVaR] + tolerance(x)
    assert found[CVaR] <= found[VaR] + tolerance(x)


def test_tiny_levels_survive_float32():
    """An alpha below the smallest float32 is not zero: nothing is divided by it."""
    measures = [CVaR(1e-60), EVaR(1e-60), VaR(1e-60), Wang(1e-60), Wang(1 - 1e-12)]
    samples, weights = np.float32([0, 1, 2]), np.float32([0, 1, 1])
    found = jax.jit(lambda v, w: [measure.of(v, w) for measure in measures])(samples, weights)
    assert found == [1.0, 1.0, 1.0, 1.0, 2.0]


def test_dual_power_is_the_mean_of_the_worst_of_k_draws():
    """Two throws of a coin with 0 and 1: the worse is 1 in one of four cases."""
    assert DualPower(2.0).of([0.0, 1.0]) == pytest.approx(0.25)
    assert DualPower(3.0).of([0.0, 1.0]) == pytest.approx(0.125)
