"""What the ego sees: itself and the nearest vehicles, as highway-env's ``KinematicObservation``."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.highway.numerics import sin_cos
from sentinel_rl.envs.highway.pairs import fold, row_numbers
from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.highway.state import HighwayState
from sentinel_rl.envs.highway.vehicle import LENGTH, MAX_SPEED

FEATURES = 5
_SIGHT = 5 * MAX_SPEED
_BEHIND = 2 * LENGTH


def scales(lanes: int) -> tuple[float, float, float, float]:
    """What metres along and across the road and the two speeds are divided by in an observation."""
    return _SIGHT, LANE_WIDTH * lanes, 2 * MAX_SPEED, 2 * MAX_SPEED


def observe(state: HighwayState, count: int, lanes: int) -> Float[Array, "obs ..."]:
    """Rows ``(presence, x, y, vx, vy)``, one after the other: the ego, then the nearest others relative to it.

    Others are seen within 200 m and not more than 10 m behind, and sorted by their distance along the road. Values
    are divided by 200 m, 4 m times the lanes, and 80 m/s, and clipped to [-1, 1]. Rows without a vehicle are 0.
    """
    sin, cos = sin_cos(state.heading)
    features = (state.x, state.y, state.speed * cos, state.speed * sin)
    seen, rank = _ranked(state)
    here = tuple(feature[0] for feature in features)
    rows = [jnp.ones_like(here[0]), *(_scaled(value, scale) for value, scale in zip(here, scales(lanes), strict=True))]
    for place in range(count - 1):
        mine = seen & (rank == place)
        present = jnp.any(mine, axis=0)
        rows.append(present.astype(state.x.dtype))
        for feature, own, scale in zip(features, here, scales(lanes), strict=True):
            value = jnp.sum(jnp.where(mine, feature, 0.0), axis=0) - own
            rows.append(jnp.where(present, _scaled(value, scale), 0.0))
    return jnp.stack(rows)


def rows_seen(state: HighwayState, count: int) -> Int[Array, "rows ..."]:
    """The vehicles that the rows of `observe` show, by number: the ego, then the nearest others, or -1 for nobody."""
    seen, rank = _ranked(state)
    numbers = row_numbers(state.x).astype(jnp.int32)
    rows = [jnp.zeros_like(rank[0])]
    for place in range(count - 1):
        mine = seen & (rank == place)
        rows.append(jnp.sum(jnp.where(mine, numbers + 1, 0), axis=0) - 1)
    return jnp.stack(rows)


def _ranked(state: HighwayState) -> tuple[Bool[Array, "V ..."], Int[Array, "V ..."]]:
    """Whom the ego sees, and in which order: by distance along the road, and by number between equals."""
    rows = row_numbers(state.x)
    dx, dy = state.x - state.x[:1], state.y - state.y[:1]
    seen = (dx * dx + dy * dy < _SIGHT**2) & (dx > -_BEHIND) & (rows > 0)
    distance = jnp.where(seen, jnp.abs(dx), jnp.inf)

    def compare(j: Any, other: Float[Array, "1 ..."], rank: Int[Array, "V ..."]) -> Int[Array, "V ..."]:
        before = (other < distance) | ((other == distance) & jnp.greater(rows, j))
        return rank + before

    return seen, fold(compare, distance, jnp.zeros(state.x.shape, jnp.int32), 1, state.x.shape[0])


def _scaled(value: Float[Array, "*batch"], scale: float) -> Float[Array, "*batch"]:
    return jnp.clip(-1 + (value + scale) / scale, -1.0, 1.0)
