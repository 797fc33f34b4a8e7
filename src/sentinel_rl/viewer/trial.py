"""Scenes as tests: what a driver does in them, and what a search with the exact model says is right."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.agents.agent import Agent, greedy_in
from sentinel_rl.agents.highway import HighwaySearch
from sentinel_rl.envs.highway import Highway, HighwayState
from sentinel_rl.envs.highway.env import ACTION_NAMES
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.training.trips import begin
from sentinel_rl.viewer.recording import Recording
from sentinel_rl.viewer.scene import Scene, road_of, state_of

# Scenes are judged by all sequences of three decisions, with IDLE for two more.
DEPTH, HOLD = 3, 2
# An action is good when its best sequence costs less than a quarter of a decision's reward against the best of all; it
# is bad when none of its sequences avoids a crash.
TOLERANCE = 0.25


class Verdict(NamedTuple):
    """What a search says of the actions in a state of the highway, each ``[A]``.

    Args:
        value: of the best sequence that begins with the action.
        survives: whether one of these sequences has no crash.
    """

    value: Float[np.ndarray, " A"]
    survives: Bool[np.ndarray, " A"]

    @property
    def good(self) -> tuple[str, ...]:
        """The actions whose best sequence is nearly worth the most; none where that is all that are not bad."""
        fine = (self.value > self.value.max() - TOLERANCE) & (self.survives | ~self.survives.any())
        return _names(fine) if (fine != (self.survives | ~self.survives.any())).any() else ()

    @property
    def bad(self) -> tuple[str, ...]:
        """The actions after which every sequence ends in a crash, where others do not."""
        return _names(~self.survives) if self.survives.any() else ()


def judge(env: Highway, state: HighwayState, depth: int = DEPTH, hold: int = HOLD) -> Verdict:
    """Try all sequences of decisions from a state, with the exact model."""
    return Verdict(*jax.device_get(_judged(HighwaySearch(depth=depth, hold=hold), env, state)))


def capture(
    state: HighwayState,
    env: Highway,
    name: str,
    about: str = "",
    do: Sequence[str] | None = None,
    avoid: Sequence[str] | None = None,
) -> Scene:
    """Make a scene of a state of the highway.

    Args:
        state: of the moment.
        env: the highway, one of those with a name.
        name: of the scene.
        about: what there is to see.
        do: what a good driver would do; by the search of `judge` when this and `avoid` are None.
        avoid: what he would not do.

    Raises:
        UsageError: where the search finds all actions equally good.
    """
    road_of(env.spec.name)
    if do is None and avoid is None:
        verdict = judge(env, state)
        do, avoid = verdict.good, verdict.bad
        if not do and not avoid:
            raise UsageError(
                "in this moment all actions are equally good, by a search with the exact model: choose another one, or "
                "say what is to be done or avoided"
            )
    kept: HighwayState = jax.tree.map(np.asarray, state)
    return Scene(name, about, env.spec.name, ACTION_NAMES, tuple(do or ()), tuple(avoid or ()), kept)


def state_at(env: Highway, recording: Recording, episode: int, decision: int) -> HighwayState:
    """The state before a decision of the first episode of a recording, whose number is `episode`, driven to anew."""
    worlds, _, _ = begin(env, jax.random.key(recording.about.seed), jnp.arange(episode, episode + 1))
    state: HighwayState = jax.tree.map(lambda leaf: leaf[0], worlds)
    for action in recording.arrays["action"][:decision]:
        state = _driven(env, state, jnp.int32(action))
    return state


def choices(agent: Agent, state: Any, scenes: Sequence[Scene], spec: EnvSpec, seed: int = 0) -> Int[np.ndarray, " S"]:
    """What the frozen policy of an agent does in scenes: the numbers of the actions, counted from 0.

    Args:
        agent: the agent.
        state: its state.
        scenes: of environments with the agent's sizes.
        spec: of the environment that the agent was made for.
        seed: of an agent that draws.

    Raises:
        UsageError: for a scene of an environment with other sizes.
    """
    found = []
    for scene in scenes:
        if len(scene.actions) != spec.num_actions:
            raise UsageError(f"the scene {scene.name} has {len(scene.actions)} actions, the agent {spec.num_actions}")
        key = jax.random.key(seed)
        if scene.obs is not None:
            _require_size(scene, scene.obs.size, spec)
            found.append(_greedy(agent, state, jnp.asarray(scene.obs), key))
        else:
            env = road_of(scene.env)
            _require_size(scene, env.spec.obs_size, spec)
            found.append(_on_road(agent, state, env, state_of(scene), key))
    return np.array([int(action) for action in found], np.int32)


def _require_size(scene: Scene, size: int, spec: EnvSpec) -> None:
    if size != spec.obs_size:
        raise UsageError(f"the scene {scene.name} has observations of {size} numbers, the agent of {spec.obs_size}")


def _names(chosen: Bool[np.ndarray, " A"]) -> tuple[str, ...]:
    return tuple(name for name, one in zip(ACTION_NAMES, chosen, strict=True) if one)


@jax.jit
def _judged(search: HighwaySearch, env: Highway, state: HighwayState) -> tuple[Array, Array]:
    return search.outcomes(env, state)


@jax.jit
def _driven(env: Highway, state: HighwayState, action: Array) -> HighwayState:
    return env.step(state, action, jax.random.key(0))[0]


@jax.jit
def _greedy(agent: Agent, state: Any, obs: Array, key: jax.Array) -> Array:
    return agent.greedy(state, obs, key)


@jax.jit
def _on_road(agent: Agent, state: Any, env: Highway, world: HighwayState, key: jax.Array) -> Array:
    return greedy_in(agent, state, env, world, env.observe(world), key)
