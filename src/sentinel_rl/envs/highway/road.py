"""The straight road: lanes and what stands on them.

Lane k has its centre at ``y = 4k``, 0 being the left-most. Lengths are metres, speeds metres per second.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LANE_WIDTH = 4.0
SPEED_LIMIT = 30.0
LENGTH = 10_000.0


def closest_lane(y: Float[Array, "*shape"], lanes: int) -> Float[Array, "*shape"]:
    """Number of the lane whose centre is nearest; half way between two it is the left one."""
    return jnp.clip(jnp.ceil(y / LANE_WIDTH - 0.5), 0.0, lanes - 1.0)


def beside(y: Float[Array, "..."], lane: Float[Array, "..."], margin: float) -> Bool[Array, "..."]:
    """Whether a place is within `margin` of the centre of a lane."""
    return jnp.abs(y - LANE_WIDTH * lane) <= margin


def counts_on(y: Float[Array, "..."], lane: Float[Array, "..."]) -> Bool[Array, "..."]:
    """Whether drivers see a vehicle as being on a lane: one between two lanes is on both."""
    return beside(y, lane, LANE_WIDTH / 2 + 1.0)


def reachable(y: Float[Array, "..."], lane: Float[Array, "..."]) -> Bool[Array, "..."]:
    """Whether a lane is near enough to be steered to."""
    return beside(y, lane, 2 * LANE_WIDTH)


def off_road(y: Float[Array, "..."], lanes: int) -> Bool[Array, "..."]:
    """Whether a vehicle's centre is outside its lane, and so beside the road; not so of a place that is NaN."""
    return jnp.abs(y - LANE_WIDTH * closest_lane(y, lanes)) > LANE_WIDTH / 2
