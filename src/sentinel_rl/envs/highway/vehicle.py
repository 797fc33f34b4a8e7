"""How a vehicle steers and moves: highway-env's bicycle model and its cascaded controllers.

A vehicle is 5 m by 2 m. Its steering angle and the slip angle ``beta`` it makes are one to one, and the limit of the
one (pi/3) is a limit of the other, so that only ``u = sin beta`` is ever computed: no tangent, and none of the wrong
signs that the tangent of a rounded right angle has in float32.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sentinel_rl.envs.highway.numerics import arcsin_within, not_zero, wrap
from sentinel_rl.envs.highway.road import LANE_WIDTH

LENGTH, WIDTH = 5.0, 2.0
MAX_SPEED = 40.0
SPEED_GAIN = 1 / 0.6
_HEADING_GAIN = 1 / 0.2
_LATERAL_GAIN = 1 / 0.6
_MAX_SLIP = math.sin(math.atan(0.5 * math.tan(math.pi / 3)))


def slip_to_lane(
    y: Float[Array, "*shape"],
    heading: Float[Array, "*shape"],
    speed: Float[Array, "*shape"],
    lane: Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """Sine of the slip angle that steers towards the centre of a lane.

    The distance to the centre asks for a lateral speed, that for a heading, that for a turning rate, that for a slip:

        heading_ref = clip(arcsin(-(1/0.6) (y - 4 lane) / v), -pi/4, pi/4)
        sin(beta)   = (5/2) / v * 5 (heading_ref - heading)
    """
    divisor = not_zero(speed)
    heading_ref = arcsin_within(-_LATERAL_GAIN * (y - LANE_WIDTH * lane) / divisor)
    rate = _HEADING_GAIN * wrap(heading_ref - heading)
    return jnp.clip(LENGTH / 2 / divisor * rate, -_MAX_SLIP, _MAX_SLIP)


def limit_acceleration(
    acceleration: Float[Array, "*shape"], speed: Float[Array, "*shape"], crashed: Bool[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """A wreck brakes with ``-v``; beyond 40 m/s either way nobody accelerates further."""
    wanted = jnp.where(crashed, -speed, acceleration)
    slowed = jnp.where(speed > MAX_SPEED, jnp.minimum(wanted, MAX_SPEED - speed), wanted)
    return jnp.where(speed < -MAX_SPEED, jnp.maximum(slowed, -MAX_SPEED - speed), slowed)
