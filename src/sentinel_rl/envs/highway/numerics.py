"""Elementary functions of the inner loop: the exact ones in float64, polynomials in float32.

In float32 a CPU has no vectorised sine or arcsine; these polynomials are right to a rounding error or two (see the
tests), which is what float32 can hold.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

HALF_ROOT = math.sqrt(0.5)
_PI_HIGH, _PI_LOW = 3.140625, math.pi - 3.140625


def _horner(x: Float[Array, "*shape"], coefficients: tuple[float, ...]) -> Float[Array, "*shape"]:
    """A polynomial, its highest coefficient first."""
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def sin_cos(angle: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Sine and cosine."""
    if angle.dtype != jnp.float32:
        return jnp.sin(angle), jnp.cos(angle)
    turns = jnp.round(angle * (1 / math.pi))
    rest = (angle - turns * _PI_HIGH) - turns * _PI_LOW
    square = rest * rest
    sign = 1 - 2 * jnp.abs(turns - 2 * jnp.round(0.5 * turns))
    return sign * rest * _horner(square, _SIN), sign * _horner(square, _COS)


def arcsin_within(value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Arcsine of a value clipped to ``[-sqrt(1/2), sqrt(1/2)]``: an angle of at most a quarter of pi."""
    clipped = jnp.clip(value, -HALF_ROOT, HALF_ROOT)
    if value.dtype != jnp.float32:
        return jnp.arcsin(clipped)
    return clipped * _horner(clipped * clipped, _ARCSIN)


def not_zero(value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Keep a divisor at least 0.01 away from 0, on its own side."""
    return jnp.where(jnp.abs(value) > 0.01, value, jnp.where(value >= 0, 0.01, -0.01))


def wrap(angle: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The same direction in ``[-pi, pi]``."""
    return angle - 2 * math.pi * jnp.round(angle * (0.5 / math.pi))


# Chebyshev interpolation in the square of the argument: on [0, (pi/2)^2] and on [0, 1/2].
_SIN = (
    -2.3888989313092917e-08,
    2.7525257102686117e-06,
    -0.00019840860934687324,
    0.00833333097231248,
    -0.16666666616765008,
    0.9999999999828977,
)
_COS = (
    1.990732481734407e-09,
    -2.752465819374309e-07,
    2.4801039621706458e-05,
    -0.0013888884167301023,
    0.04166666647267572,
    -0.49999999997009603,
    0.999999999999247,
)
_ARCSIN = (
    0.14315106421709062,
    -0.1955462718382478,
    0.16083177400287244,
    -0.041068078966054605,
    0.0362081716372586,
    0.02843380247387018,
    0.04479786848860704,
    0.07499381288627455,
    0.16666676148849074,
    0.9999999997624122,
)
