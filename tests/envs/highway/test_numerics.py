import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs.highway.numerics import HALF_ROOT, arcsin_within, not_zero, sin_cos, wrap
from sentinel_rl.envs.highway.vehicle import slip_to_lane


def test_float32_polynomials_are_right_to_rounding():
    angle = np.linspace(-10, 10, 20001, dtype=np.float32)
    sin, cos = sin_cos(jnp.asarray(angle))
    np.testing.assert_allclose(sin, np.sin(angle.astype(float)), atol=4e-7)
    np.testing.assert_allclose(cos, np.cos(angle.astype(float)), atol=4e-7)
    value = np.linspace(-1, 1, 20001, dtype=np.float32)
    clipped = np.clip(value.astype(float), -HALF_ROOT, HALF_ROOT)
    np.testing.assert_allclose(arcsin_within(jnp.asarray(value)), np.arcsin(clipped), atol=2e-7)


def test_float64_is_exact(x64):
    angle = np.linspace(-10, 10, 2001)
    sin, cos = sin_cos(jnp.asarray(angle))
    np.testing.assert_allclose(sin, np.sin(angle), atol=1e-15)
    np.testing.assert_allclose(cos, np.cos(angle), atol=1e-15)


def test_divisors_stay_away_from_zero():
    values = jnp.array([0.0, 0.01, -0.01, 0.02, -0.02, -1e-9])
    np.testing.assert_allclose(not_zero(values), [0.01, 0.01, -0.01, 0.02, -0.02, -0.01])


def test_angles_are_wrapped():
    angles = np.linspace(-9, 9, 1001, dtype=np.float32)
    np.testing.assert_allclose(wrap(jnp.asarray(angles)), (angles + np.pi) % (2 * np.pi) - np.pi, atol=2e-6)


@pytest.mark.parametrize("speed", [-3.0, 0.0, 0.3, 5.0, 9.0, 25.0, 40.0])
def test_the_slip_is_that_of_the_originals_chain_of_angles(x64, speed: float):
    """Tangents and arctangents of the original, against the sine that stands for all of them."""
    y, heading = (grid.ravel() for grid in np.meshgrid(np.linspace(-9, 9, 31), np.linspace(-1, 1, 21)))
    divisor = speed if abs(speed) > 0.01 else 0.01
    reference = np.clip(np.arcsin(np.clip(-y / 0.6 / divisor, -1, 1)), -np.pi / 4, np.pi / 4)
    slip = np.arcsin(np.clip(2.5 / divisor * 5 * (reference - heading), -1, 1))
    steering = np.clip(np.arctan(2 * np.tan(slip)), -np.pi / 3, np.pi / 3)
    truth = np.sin(np.arctan(0.5 * np.tan(steering)))
    zero = jnp.zeros(y.shape)
    np.testing.assert_allclose(
        slip_to_lane(jnp.asarray(y), jnp.asarray(heading), zero + speed, zero), truth, atol=1e-12
    )


def test_the_slip_has_the_right_sign_in_float32():
    """The tangent of a rounded right angle has the wrong one: a slow car in a lane change would steer away."""
    with jax.enable_x64(False):
        slip = slip_to_lane(jnp.array([4.0]), jnp.array([0.0]), jnp.array([9.0]), jnp.array([0.0]))
        assert float(slip[0]) < -0.5
