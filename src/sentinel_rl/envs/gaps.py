"""Worlds with a coverage gap: a region of states that training never shows, by construction.

What an ensemble knows of the region cannot come from data of it. Training takes place in the *closed* world and the
test in the *open* one, which is the same world without the restriction.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl.envs.cartpole import CartPole, CartPoleState
from sentinel_rl.envs.highway import Highway, HighwayState
from sentinel_rl.envs.highway.dynamics import IDLE, LEFT
from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.spec import Env, EnvSpec, TimeStep

Start = Literal["anywhere", "inside", "outside"]


@runtime_checkable
class Gapped(Protocol):
    """What an environment adds that has a region which training never shows."""

    def in_gap(self, state: Any) -> Bool[Array, ""]:
        """Whether a state lies in the region."""
        ...


class GapRegion(eqx.Module):
    """A region of the states of an environment (abstract)."""

    def contains(self, env: Any, state: Any) -> Bool[Array, ""]:
        """Whether a state lies in it."""
        raise NotImplementedError

    def avoid(self, env: Any, state: Any, action: Int[Array, ""]) -> Int[Array, ""]:
        """The action that a closed world takes instead of one that leads into the region; by default the same."""
        return action


class LeaningRight(GapRegion):
    """CartPole's pole leans to the right by more than `angle` radians."""

    angle: float = eqx.field(static=True, default=0.03)

    def contains(self, env: CartPole, state: CartPoleState) -> Bool[Array, ""]:
        """Whether the pole does."""
        return state.motion[2] > self.angle


class LeftLane(GapRegion):
    """The ego is in the left-most lane of the highway, or nearer to its centre than to any other."""

    def contains(self, env: Highway, state: HighwayState) -> Bool[Array, ""]:
        """Whether the ego is."""
        return state.y[0] < LANE_WIDTH / 2

    def avoid(self, env: Highway, state: HighwayState, action: Int[Array, ""]) -> Int[Array, ""]:
        """Make IDLE of a change to the left-most lane."""
        return jnp.where((action == LEFT) & (state.target_lane[0] <= 1), IDLE, action)


class GapState(NamedTuple):
    """The state of the environment, and its observation."""

    inner: Any
    obs: Float[Array, " obs"]


class CoverageGap(eqx.Module):
    """An environment with a region that it never shows while it is closed.

    Closed, episodes start outside the region (starts are drawn again until they do), actions that lead into it are
    replaced where the region knows how (`GapRegion.avoid`), and a step that leads into it nevertheless *truncates* the
    episode with the observation from before the step: nothing inside is ever observed. A reward is that of the step.
    Open, it is the environment as it is.

    Args:
        env: the environment; it must be able to draw itself.
        region: which of its states are in the gap.
        closed: whether the region is closed, for training, or open, for the test.
        start: where episodes start; by default outside of a closed region, and anywhere where it is open.

    Example:
        >>> world = CoverageGap(CartPole(500), LeaningRight())
        >>> state, obs = world.reset(jax.random.key(0))
        >>> print(world.in_gap(state), obs.shape)
        False (4,)
    """

    env: Any
    region: GapRegion
    closed: bool = eqx.field(static=True, default=True)
    start: Start | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.start not in (None, "anywhere", "inside", "outside"):
            raise ValueError(f"start = {self.start!r} is not allowed: give 'anywhere', 'inside', 'outside' or None")
        if self.closed and self.start in ("inside", "anywhere"):
            raise ValueError(f"start = {self.start!r} would show the closed region: open it with closed=False")

    @property
    def spec(self) -> EnvSpec:
        """That of the environment, under a name of its own where it has one."""
        inner: EnvSpec = self.env.spec
        family = "highway-gap" if isinstance(self.env, Highway) else f"{type(self.env).__name__}Gap"
        opened = "" if self.closed else "-open" if isinstance(self.env, Highway) else "Open"
        return dataclasses.replace(inner, name=f"sentinel/{family}{opened}-v0")

    @property
    def render_fps(self) -> int:
        """That of the environment."""
        return int(self.env.render_fps)

    def reset(self, key: jax.Array) -> tuple[GapState, Float[Array, " obs"]]:
        """Draw a start, again and again until it is where it must be."""
        env: Env = self.env
        start = self.start or ("outside" if self.closed else "anywhere")
        state, obs = env.reset(key)

        def is_wrong(carry: Any) -> Bool[Array, ""]:
            return self.region.contains(self.env, carry[0]) != (start == "inside")

        def draw(carry: Any) -> Any:
            key, now = jax.random.split(carry[2])
            return (*env.reset(now), key)

        if start != "anywhere":
            state, obs, _ = jax.lax.while_loop(is_wrong, draw, (state, obs, jax.random.fold_in(key, 1)))
        return GapState(state, obs), obs

    def step(self, state: GapState, action: Int[Array, ""], key: jax.Array) -> tuple[GapState, TimeStep]:
        """Take a step that does not end inside a closed region."""
        env: Env = self.env
        if not self.closed:
            inner, after = env.step(state.inner, action, key)
            return GapState(inner, after.obs), after
        inner, after = env.step(state.inner, self.region.avoid(self.env, state.inner, action), key)
        entered = self.region.contains(self.env, inner)
        kept = jax.tree.map(lambda old, new: jnp.where(entered, old, new), state.inner, inner)
        obs = jnp.where(entered, state.obs, after.obs)
        after = TimeStep(obs, after.reward, after.terminated, after.truncated | entered)
        return GapState(kept, obs), after

    def in_gap(self, state: GapState) -> Bool[Array, ""]:
        """Whether a state lies in the region."""
        return self.region.contains(self.env, state.inner)

    def render(self, state: GapState) -> UInt8[np.ndarray, "height width 3"]:
        """Draw the environment."""
        picture: UInt8[np.ndarray, "height width 3"] = self.env.render(state.inner)
        return picture


def cartpole_gap(closed: bool = True, start: Start | None = None, angle: float = 0.03, **settings: Any) -> CoverageGap:
    """CartPole of at most 500 steps in which the pole never leans to the right by more than `angle` radians."""
    return CoverageGap(CartPole(**({"max_steps": 500} | settings)), LeaningRight(angle), closed, start)


def highway_gap(closed: bool = True, start: Start | None = None, **settings: Any) -> CoverageGap:
    """The paper's highway, on which the ego is never in the left-most lane."""
    return CoverageGap(Highway.preset("highway-v1", **settings), LeftLane(), closed, start)
