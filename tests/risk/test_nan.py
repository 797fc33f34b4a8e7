"""No NaN is replaced in silence: inside jit, where values are not checked, it comes out of every measure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, CVaR, DualPower, MeanStd, VaR, WorstCase, assess
from tests.risk.zoo import MEASURES, name, risks

COMPILE_QUICKLY = True

LAST = -1


@jax.jit
def of_laws(atoms, probs):
    law = CategoricalReturn(atoms, probs)
    return jnp.stack([measure(law) for measure in MEASURES])


def assert_all_nan(values):
    bad = [name(measure) for measure, row in zip(MEASURES, values, strict=True) if not np.isnan(row).all()]
    assert not bad


def with_nan(array, place):
    broken = np.array(array, np.float64)
    broken[..., place] = np.nan
    return broken


ATOMS, PROBS = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.6, 0.4, 0.0])


@pytest.mark.parametrize("place", [0, 1, LAST])
def test_in_laws(place):
    """Also at the ends, where these laws have probability zero; and only in the law that has the NaN."""
    clean = np.stack([ATOMS, ATOMS]), np.stack([PROBS, PROBS])
    broken = np.stack([ATOMS, with_nan(ATOMS, place)]), np.stack([PROBS, with_nan(PROBS, place)])
    for values in (of_laws(broken[0], clean[1]), of_laws(clean[0], broken[1])):
        assert np.isfinite(values[:, 0]).all()
        assert_all_nan(values[:, 1:])


@pytest.mark.parametrize("place", [0, 1, LAST])
def test_in_samples_and_weights(place):
    """The evaluation inside jit checks no values."""
    assert_all_nan(risks(MEASURES, with_nan(ATOMS, place), PROBS))
    assert_all_nan(risks(MEASURES, ATOMS, with_nan(PROBS, place)))


def test_in_a_single_atom():
    assert_all_nan(of_laws(np.array([np.nan]), np.array([1.0])))
    assert_all_nan(of_laws(np.array([1.0]), np.array([np.nan])))


@pytest.mark.parametrize("place", [0, LAST])
def test_in_a_long_law(place):
    """More than 256 atoms are summed by another program."""
    distortions = [CVaR(0.25), VaR(0.25), DualPower(2.0)]
    assert np.isnan(risks(distortions, np.arange(300.0), with_nan(np.full(300, 1 / 300), place))).all()


@pytest.mark.parametrize("weights", [[0.5, 0.5], [1.0, 0.0]], ids=["trusted", "not trusted"])
def test_in_a_member(weights):
    """Even one that the belief excludes: a broken network is not to be hidden by its weight."""
    probs = np.stack([PROBS, with_nan(PROBS, 1)])

    @jax.jit
    def value(probs, weights):
        belief = Belief(CategoricalReturn(ATOMS, probs), weights)
        measures = [Composite(CVaR(0.3), CVaR(0.5)), Additive(MeanStd()), Composite(WorstCase(), WorstCase())]
        return jnp.stack([measure(belief) for measure in measures]), assess(belief, CVaR(0.3), CVaR(0.5)).total

    for found in value(probs, jnp.array(weights)):
        assert np.isnan(found).all()


def test_in_a_parameter():
    broken = jax.tree.map(lambda _: float("nan"), MEASURES)
    values = risks(broken, ATOMS, PROBS)
    expected = [bool(jax.tree.leaves(measure)) for measure in MEASURES]
    np.testing.assert_array_equal(np.isnan(values), expected)
