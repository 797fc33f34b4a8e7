"""What may happen on a shifted highway that does not happen as trained: wrecks, hard brakers, and cars that cut in.

Everything is a change of the state *before* the dynamics see it, at the start of an episode or between two decisions:
the dynamics themselves stay those of highway-env, so that the same change made there gives the same episode.
"""

from numbers import Real
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sentinel_rl.envs.highway import road
from sentinel_rl.envs.highway.reset import first_wait
from sentinel_rl.envs.highway.state import HighwayState

Number = float | Float[Array, ""]

# Seconds between two events.
PERIOD = 5
# How far ahead of the ego a car may be to brake, and how much farther than the least distance one may be to cut in.
BRAKER_SIGHT, CUT_IN_SIGHT = 60.0, 20.0
# Where the traffic begins behind a wreck.
_CLEARANCE = 20.0


def number(value: Any) -> Any:
    """A Python number as a float: a whole one would be another type to compile for. The checks see the rest."""
    return float(value) if isinstance(value, Real) else value


class Shift(eqx.Module):
    """Wrecks at the start of an episode, and events every five seconds; all numbers are leaves, and off by default.

    Args:
        wrecks: how many of the others stand still, side by side: the first in the lane of the ego, the next in the
            lanes to its right, counted around the road. The rest of the traffic starts behind them, out of the way.
        distance: metres from the ego to the wrecks.
        brake_to: m/s. Every five seconds the nearest car ahead of the ego, in its lane and within 60 m, wants this
            speed from then on if it wants a higher one: it brakes with up to 6 m/s^2.
        cut_in: metres. Every five seconds the nearest car in a lane beside the ego's, at least so far ahead and at most
            20 m more, changes to the lane of the ego.
    """

    wrecks: Number = eqx.field(converter=number, default=0.0)
    distance: Number = eqx.field(converter=number, default=120.0)
    brake_to: Number = eqx.field(converter=number, default=float("inf"))
    cut_in: Number = eqx.field(converter=number, default=float("inf"))

    def __check_init__(self) -> None:
        if not (self.wrecks >= 0 and 10 <= self.distance <= 1000 and self.brake_to > 0 and self.cut_in >= 7):
            raise ValueError(
                f"{self} is not possible: give at least 0 wrecks, a distance of 10 to 1000 m, a speed above 0 to brake "
                "to, and at least 7 m to a car that cuts in"
            )

    def begin(self, state: HighwayState, lanes: int, frequency: int) -> HighwayState:
        """Put the wrecks on the road of a new episode."""
        rows = jnp.arange(state.x.shape[0])
        wreck = (rows > 0) & (rows <= self.wrecks)
        lane = jnp.where(wreck, (state.target_lane[0] + rows - 1) % lanes, state.target_lane)
        free = (rows > 0) & ~wreck
        missing = state.x[0] + self.distance + _CLEARANCE - jnp.min(jnp.where(free, state.x, jnp.inf))
        behind = jnp.where(jnp.any(wreck), jnp.maximum(missing, 0.0), 0.0)
        x = jnp.where(wreck, state.x[0] + self.distance, state.x + jnp.where(free, behind, 0.0))
        y = road.LANE_WIDTH * lane.astype(x.dtype)
        return state._replace(
            x=x,
            y=y,
            speed=jnp.where(wreck, 0.0, state.speed),
            target_lane=lane,
            crashed=wreck,
            wait=first_wait(x, y, frequency),
        )

    def intervene(self, state: HighwayState, lanes: int, decisions_per_second: int) -> HighwayState:
        """Let happen what is due before the next decision."""
        period = PERIOD * decisions_per_second
        due = (state.time > 0) & (state.time % period == 0)
        lane = road.closest_lane(state.y, lanes)
        ahead = state.x - state.x[0]
        drives = (jnp.arange(state.x.shape[0]) > 0) & ~state.crashed & due
        brakes = _nearest(drives & (lane == lane[0]) & (ahead > 0) & (ahead <= BRAKER_SIGHT), ahead)
        beside = (jnp.abs(lane - lane[0]) == 1) & (state.target_lane == lane)
        near = (ahead >= self.cut_in) & (ahead <= self.cut_in + CUT_IN_SIGHT)
        cuts_in = _nearest(drives & beside & near, ahead)
        return state._replace(
            target_speed=jnp.where(brakes, jnp.minimum(state.target_speed, self.brake_to), state.target_speed),
            target_lane=jnp.where(cuts_in, lane[0].astype(state.target_lane.dtype), state.target_lane),
        )


def _nearest(candidates: Bool[Array, " V"], ahead: Float[Array, " V"]) -> Bool[Array, " V"]:
    """Mark the nearest of the candidates, if there is one."""
    distance = jnp.where(candidates, ahead, jnp.inf)
    return candidates & (jnp.arange(ahead.shape[0]) == jnp.argmin(distance))
