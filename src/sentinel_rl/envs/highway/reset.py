"""How an episode begins."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.envs.highway import road
from sentinel_rl.envs.highway.state import HighwayState

Scalar = float | Float[Array, ""]

EGO_SPEED = 25.0
OTHERS_SPEED = (0.7 * road.SPEED_LIMIT, 0.8 * road.SPEED_LIMIT)
_DELTAS = (3.5, 4.5)
_JITTER = (0.9, 1.1)
LANE_CHANGE_DELAY = 1.0


def draw_state(
    key: jax.Array,
    vehicles: int,
    lanes: int,
    spacing: tuple[Scalar, Scalar],
    speeds: tuple[Scalar, Scalar],
    first_lane: int | None,
    frequency: int,
) -> HighwayState:
    """Draw the vehicles of a new episode, as highway-env's ``Vehicle.create_random`` does.

    Each vehicle stands ahead of the one before it, in a lane of its own choice, by

        spacing (12 + speed) exp(-5/40 lanes) U(0.9, 1.1),

    and the ego by three times that without the jitter, and once with it.

    Args:
        key: of the episode.
        vehicles: number of vehicles, the ego included.
        lanes: number of lanes.
        spacing: of the ego, and of the others.
        speeds: (low, high) of the others.
        first_lane: the lane of the ego, drawn when None.
        frequency: simulation steps per second.
    """
    lane_draw, *draws = jax.random.uniform(key, (4, vehicles))
    speed_draw, jitter, delta = (_between(u, *ends) for u, ends in zip(draws, (speeds, _JITTER, _DELTAS), strict=True))
    ego = jnp.arange(vehicles) == 0
    lane = jnp.minimum(jnp.floor(lane_draw * lanes), lanes - 1)
    if first_lane is not None:
        lane = jnp.where(ego, float(first_lane), lane)
    speed = jnp.where(ego, EGO_SPEED, speed_draw)
    gap = jnp.where(ego, *spacing) * (12 + speed) * math.exp(-5 / 40 * lanes)
    x = jnp.cumsum(gap * jitter + jnp.where(ego, 3 * gap, 0.0))
    y = road.LANE_WIDTH * lane
    none, no = jnp.zeros_like(x), jnp.zeros(vehicles, bool)
    return HighwayState(
        x=x,
        y=y,
        heading=none,
        speed=speed,
        target_lane=lane.astype(jnp.int32),
        target_speed=speed,
        delta=delta,
        wait=first_wait(x, y, frequency),
        crashed=no,
        hit=no,
        push_x=none,
        push_y=none,
        time=jnp.zeros((), jnp.int32),
    )


def _between(uniform: Float[Array, " V"], low: Scalar, high: Scalar) -> Float[Array, " V"]:
    return low + (high - low) * uniform


def first_wait(x: Float[Array, " V"], y: Float[Array, " V"], frequency: int) -> Array:
    """Steps until a driver's clock, which starts at ``(x + y) pi mod 1``, is beyond one second."""
    clock = ((x + y) * math.pi) % LANE_CHANGE_DELAY
    return (jnp.floor((LANE_CHANGE_DELAY - clock) * frequency) + 1).astype(jnp.int32)


def steps_until_due(clock: float, frequency: int) -> int:
    """How often ``1 / frequency`` must be added to a clock until it is beyond one second.

    Counted in float64 as highway-env adds it up, rounding included: from 0 at 15 steps a second it takes 16.

    Example:
        >>> steps_until_due(0.0, 15), steps_until_due(0.0, 5), steps_until_due(0.99, 15), steps_until_due(1.5, 15)
        (16, 6, 1, 0)
    """
    steps = 0
    while not clock > LANE_CHANGE_DELAY:
        clock += 1 / frequency
        steps += 1
    return steps
