"""Parameters outside their range are refused, with what was given, what is allowed and what to use instead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import (
    CPW,
    Additive,
    Composite,
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
)

NOT_FINITE = [np.nan, np.inf, -np.inf]
RANGES = [
    (CVaR, "CVaR alpha", [0.0, -0.1, 1.1, 25.0], r"in \(0, 1\] \(1: mean; for the limit 0: WorstCase\)"),
    (VaR, "VaR alpha", [0.0, -0.1, 1.1], r"in \(0, 1\] \(for the limit 0: WorstCase\)"),
    (EVaR, "EVaR alpha", [0.0, -0.1, 1.1], r"in \(0, 1\] \(1: mean; for the limit 0: WorstCase\)"),
    (Wang, "Wang alpha", [0.0, 1.0, -0.1], r"in \(0, 1\): < 0.5 averse, 0.5 neutral, > 0.5 seeking"),
    (ProportionalHazard, "ProportionalHazard kappa", [0.0, 1.1], r"in \(0, 1\] \(1: mean\)"),
    (DualPower, "DualPower k", [0.99, -2.0], r"at least 1 \(1: mean\)"),
    (MinMaxVar, "MinMaxVar x", [-0.1], r"at least 0 \(0: mean\)"),
    (CPW, "CPW eta", [0.0, 1.1], r"in \(0, 1\] \(1: mean\)"),
    (Entropic, "Entropic beta", [], r"a finite number \(0: mean, negative: seeking\)"),
    (MeanStd, "MeanStd c", [-0.1], r"at least 0 \(0: mean\)"),
    (MeanVariance, "MeanVariance c", [-0.1], r"at least 0 \(0: mean\)"),
    (MeanSemideviation, "MeanSemideviation c", [-0.1, 1.1], r"in \[0, 1\] \(0: mean\)"),
    (lambda p: MeanSemideviation(1.0, p), "MeanSemideviation p", [0.9, 0.0], "at least 1"),
]


@pytest.mark.parametrize(
    ("make", "named", "value", "allowed"),
    [(make, named, value, says) for make, named, values, says in RANGES for value in [*values, *NOT_FINITE]],
)
def test_out_of_range(make, named, value, allowed):
    with pytest.raises(ValueError, match=f"{named} = {value} is not allowed: it must be {allowed}"):
        make(value)


def test_every_entry_of_an_array_is_looked_at():
    with pytest.raises(ValueError, match=r"CVaR alpha = \[0.1 0.  1. \] is not allowed"):
        CVaR(np.array([0.1, 0.0, 1.0]))
    with pytest.raises(ValueError, match=r"DualPower k = \[\] is not allowed"):
        DualPower(np.array([]))


@pytest.mark.parametrize("value", ["0.25", "a quarter", None, [0.1, "x"]])
def test_not_a_number(value, untyped):
    with pytest.raises(ValueError, match=r"CVaR alpha must be a number, got .*: it must be in \(0, 1\]"):
        CVaR(value)


def test_inside_jit_a_bad_parameter_is_evaluated_as_it_stands():
    """Values are unknown there. CVaR of alpha 2 is then what the formula gives: half the way from the top."""
    law = CategoricalReturn([0.0, 1.0], [0.5, 0.5])
    assert float(jax.jit(lambda alpha: CVaR(alpha)(law))(2.0)) == 0.75
    assert np.isnan(jax.jit(lambda alpha: CVaR(alpha)(law))(jnp.nan))


def test_composites():
    with pytest.raises(ValueError, match=r"belief weights hold -1 at index \(0,\): weights must be finite and not neg"):
        Composite(CVaR(0.5), CVaR(0.5)).of([[1, 2], [3, 4]], belief=[-1, -1])
    with pytest.raises(ValueError, match="belief weights are all zero along axis 0: at least one must be positive"):
        Additive(CVaR(0.5)).of([[1.0, 2.0], [3.0, 4.0]], belief=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"weights of shape \(3,\) do not fit members of shape \(2,\)"):
        Additive(CVaR(0.5)).of([[1.0, 2.0], [3.0, 4.0]], belief=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"a belief needs a leading member axis"):
        Additive(CVaR(0.5)).of([1.0, 2.0])


def test_unknown_aggregate(untyped):
    with pytest.raises(ValueError, match=r"unknown aggregate 'sum': choose one of \('belief', 'scale'\)"):
        Composite(Expectation(), Expectation(), "sum")
