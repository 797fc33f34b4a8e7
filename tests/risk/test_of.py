"""`of` takes anything array-like and answers in kind: NumPy keeps its float64 though JAX's default is float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, CVaR, Expectation, MeanStd

SAMPLES = [3.0, 1.0, 4.0, 2.0]
THIRD = 1.0 / 3.0


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (SAMPLES, np.float64),
        (tuple(SAMPLES), np.float64),
        ([3, 1, 4, 2], np.float64),
        (np.array([3, 1, 4, 2]), np.float64),
        (np.array([3, 1, 4, 2], np.int8), np.float64),
        (np.array(SAMPLES), np.float64),
        (np.array(SAMPLES, np.float32), np.float32),
    ],
    ids=["list", "tuple", "ints", "int64", "int8", "float64", "float32"],
)
def test_numpy_in_numpy_out(values, dtype):
    value = CVaR(0.5).of(values)
    assert isinstance(value, np.generic)
    assert value.dtype == dtype
    assert value == 1.5


def test_jax_in_jax_out(precision):
    value = CVaR(0.5).of(jnp.array(SAMPLES))
    assert isinstance(value, jax.Array)
    assert value.dtype == precision
    assert value == 1.5
    assert isinstance(CVaR(0.5).of(SAMPLES, jnp.ones(4)), jax.Array)


def test_float64_keeps_all_its_digits_while_x64_is_off():
    assert not jax.config.jax_enable_x64
    assert CVaR(0.5).of([1 + 1e-12, 2.0]) == 1 + 1e-12
    assert Expectation().of([THIRD, THIRD]) == THIRD
    assert Composite(Expectation(), Expectation()).of([[THIRD, THIRD], [THIRD, THIRD]]) == THIRD
    assert not jax.config.jax_enable_x64
    assert jnp.zeros(1).dtype == jnp.float32


def test_float32_stays_float32_while_x64_is_on(x64):
    assert CVaR(0.5).of(np.array(SAMPLES, np.float32)).dtype == np.float32


def test_weights_decide_the_precision_too():
    single = np.array(SAMPLES, np.float32)
    assert CVaR(0.5).of(single, np.ones(4, np.float32)).dtype == np.float32
    assert CVaR(0.5).of(single, np.ones(4)).dtype == np.float64


def test_of_is_the_law_of_the_samples():
    law = CategoricalReturn.from_samples(SAMPLES, [1.0, 2.0, 3.0, 4.0])
    assert float(MeanStd(0.3)(law)) == pytest.approx(MeanStd(0.3).of(SAMPLES, [1, 2, 3, 4]), rel=1e-6)


def test_weights_are_normalised():
    assert CVaR(0.5).of([0, 10], [3, 1]) == 0.0
    assert CVaR(1.0).of([0, 10], [3, 1]) == 2.5
    assert CVaR(1.0).of([0, 10], [3e-300, 1e-300]) == 2.5


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_any_axis_with_any_weights(axis):
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    per_sample = np.arange(1.0, values.shape[axis] + 1)
    shape = [1, 1, 1]
    shape[axis] = -1
    full = np.broadcast_to(per_sample.reshape(shape), values.shape)
    expected = np.average(values, axis=axis, weights=per_sample)
    for weights in (per_sample, full):
        found = Expectation().of(values, weights, axis=axis)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_batch_gives_an_array():
    found = CVaR(0.5).of(np.array([[3.0, 1.0], [5.0, 7.0]]))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, [1, 5])


def test_beliefs_of_samples():
    """K = 2 models, two actions, samples last; belief weights per model, or per model and action."""
    values = np.array([[[0.0, 2.0], [1.0, 1.0]], [[4.0, 6.0], [3.0, 3.0]]])
    additive = Additive(Expectation())
    np.testing.assert_array_equal(additive.of(values), [3, 2])
    np.testing.assert_array_equal(additive.of(values, belief=[1, 3]), [4, 2.5])
    np.testing.assert_array_equal(additive.of(values, belief=[[1, 1], [3, 0]]), [4, 1])
    np.testing.assert_array_equal(additive.of(values, weights=[3, 1]), [2.5, 2])
    assert additive.of(values).dtype == np.float64
    assert isinstance(additive.of(jnp.asarray(values)), jax.Array)
