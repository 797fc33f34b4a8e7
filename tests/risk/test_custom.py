"""A user's own measure in three lines: as a class, from a function, with parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Composite, CVaR, Distortion, DualPower, Expectation, RiskMeasure
from tests.risk.strategies import masses, returns
from tests.risk.zoo import risks


class Square(Distortion):
    def g(self, u):
        return 2 * u - u**2


class Blend(Distortion):
    """A parameter is a field, and is mapped over like any other."""

    trust: float

    def g(self, u):
        return self.trust * u + (1 - self.trust) * jnp.sqrt(u)


class Median(RiskMeasure):
    """Not a distortion of mine: any function of the law."""

    def _value(self, law):
        return law.quantile(0.5)


FROM_FUNCTION = Distortion.from_function(lambda u: 2 * u - u**2)


@given(returns(), masses())
def test_class_and_function_agree_with_the_library(x, p):
    """``2u - u^2`` is the dual power of 2."""
    mine, function, library, blend, mean = risks(
        [Square(), FROM_FUNCTION, DualPower(2.0), Blend(1.0), Expectation()], x, p
    )
    tolerance = 1e-9 * (1 + np.abs(x).max())
    assert mine == pytest.approx(library, abs=tolerance)
    assert function == pytest.approx(library, abs=tolerance)
    assert blend == pytest.approx(mean, abs=tolerance)


def test_by_hand():
    """Two equal outcomes 0 and 1: ``1 - g(1/2) = 1 - 3/4``."""
    assert Square().of([0, 1]) == 0.25
    assert FROM_FUNCTION.of([0, 1]) == 0.25
    assert Median().of([3, 1, 2]) == 2


def test_it_composes_maps_and_differentiates():
    assert Composite(CVaR(0.5), Square()).of([[0, 1], [10, 11]]) == 0.25
    law = CategoricalReturn([0.0, 1.0], [0.25, 0.75])
    mapped = jax.jit(jax.vmap(lambda measure: measure(law)))(Blend(jnp.array([0.0, 1.0])))
    np.testing.assert_allclose(mapped, [0.5, 0.75])
    assert float(jax.grad(lambda trust: Blend(trust)(law))(0.5)) == pytest.approx(0.25)


def test_it_prints():
    assert str(Square()) == "Square"
    assert str(Blend(0.5)) == "Blend:0.5"

    def halved(u):
        return u / 2

    assert str(Distortion.from_function(halved)) == "halved"


@pytest.mark.parametrize("abstract", [Distortion, RiskMeasure])
def test_the_bases_are_abstract(abstract):
    with pytest.raises(TypeError, match="abstract"):
        abstract()
