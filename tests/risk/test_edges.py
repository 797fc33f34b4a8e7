"""Risk at the edges of the numbers: half precision, the largest and the smallest numbers of a precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, CVaR, EVaR, Expectation
from tests.risk.zoo import COHERENT, MEASURES, name

HALVES = ["float16", "bfloat16"]
SAMPLES = [1.0, 0.0, 1.0, 3.0, 2.0]  # exact in half precision


@pytest.mark.attack("half-precision")
@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_samples_of_half_precision(measure, attacks):
    wanted = measure.of(SAMPLES)
    given = [(half, make) for half in HALVES for make in (np.array, jnp.array)]
    for half, make in given:
        found = measure.of(make(SAMPLES, jnp.dtype(half)))
        assert found.dtype == np.float32
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    attacks(len(given))


@pytest.mark.attack("half-precision")
@pytest.mark.parametrize("half", HALVES)
def test_sums_of_half_precision_are_those_of_float32(half, attacks):
    """In float16 the sum of these is infinite, and in bfloat16 the mean of ones stays at 256."""
    large = np.full(1_000, 60_000, jnp.dtype(half))
    assert Expectation().of(large) == pytest.approx(float(large[0]), rel=1e-6)
    law = CategoricalReturn(np.array([0, 1], jnp.dtype(half)), np.array([0.5, 0.5], jnp.dtype(half)))
    assert (law.mean(), law.probs.dtype) == (0.5, jnp.float32)
    for measure in (Composite(CVaR(0.5), CVaR(0.5)), Additive(CVaR(0.5))):
        samples = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
        assert measure.of(samples.astype(jnp.dtype(half))) == pytest.approx(measure.of(samples), rel=1e-6)
    attacks(4)


# Of one size: JAX compiles anew for every other.
HUGE = [
    [-3e38, -3e38, 3e38, 3e38],
    [3e38] * 4,
    [0.0, 0.0, 0.0, 3e38],
    [-3e38, 0.0, 1.0, 3e38],
    [1e38, 2e38, 3e38, 3e38],
]


@pytest.mark.attack("huge-atoms")
@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_atoms_near_the_largest_number_give_the_right_number_or_an_error(measure, attacks):
    for atoms in HUGE:
        wanted = measure.of(np.array(atoms))
        try:
            found = measure.of(np.array(atoms, np.float32))
        except ValueError as refusal:
            told = str(refusal)
        else:
            assert found == pytest.approx(wanted, rel=1e-5)
            continue
        assert "cannot be computed in float32" in told
        assert "Give float64, or divide" in told
    attacks(len(HUGE))


@pytest.mark.attack("huge-atoms")
@pytest.mark.parametrize("measure", COHERENT, ids=name)
def test_atoms_near_the_largest_float64(measure, attacks):
    for atoms in np.divide(HUGE[0], 3e38), np.divide(HUGE[4], 3e38):
        try:
            found = measure.of(1.7e308 * atoms)
        except ValueError as refusal:
            told = str(refusal)
        else:
            assert found == pytest.approx(1.7e308 * measure.of(atoms), rel=1e-12)
            continue
        assert "cannot be computed in float64" in told
    attacks(2)


@pytest.mark.attack("tiny-atoms")
@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.99, 1.0])
def test_evar_of_one_atom_is_that_atom_however_small(alpha, attacks):
    scales = [*np.power(10.0, np.arange(-300, 301, 25)), 1e-30, 0.0]
    atoms = np.repeat([*scales, *np.negative(scales)], 4).reshape(-1, 4)
    np.testing.assert_allclose(EVaR(alpha).of(atoms), atoms[:, 0], rtol=1e-12, atol=0)
    attacks(len(atoms))


@pytest.mark.attack("tiny-atoms")
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e-10, 1e10, 1e30, 1e300])
def test_evar_is_homogeneous_at_every_scale(scale, attacks):
    atoms = np.array([-1.0, 0.5, 2.0, 2.5])
    alphas = (0.05, 0.3, 0.9)
    for alpha in alphas:
        assert EVaR(alpha).of(scale * atoms) == pytest.approx(scale * EVaR(alpha).of(atoms), rel=1e-10, abs=0)
    attacks(len(alphas))


def test_the_gradient_of_evar_at_one_atom_is_that_of_the_mean():
    law = jnp.array([0.25, 0.75])
    gradient = jax.grad(lambda atoms: EVaR(0.3)(CategoricalReturn(atoms, law)))(jnp.array([2.0, 2.0]))
    assert gradient.tolist() == [0.25, 0.75]
