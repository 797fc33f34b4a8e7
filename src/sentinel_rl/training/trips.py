"""Play episodes with a frozen policy and keep what was seen on the way.

The episodes are those of `sentinel_rl.evaluate` with the same seed. Where a return goes on behind the time limit, or
behind the last decision that is kept, the world is driven on until what follows counts for less than a hundredth.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.agents.agent import Agent, greedy_in
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.envs.spec import Env, TimeStep
from sentinel_rl.errors import NumericalError, SentinelError, UsageError

# What follows counts for less than this.
NEGLIGIBLE = 0.01
# Steps behind the last decision at most, where the discount is 1 or near it.
FURTHEST = 1000


class Trip(NamedTuple):
    """One episode.

    Args:
        obs: at every decision.
        action: chosen there, counted from 0.
        reward: of every decision, and of those after the last one that is kept.
        terminated: whether the last decision that is kept ended the episode.
        truncated: whether it was cut off there.
        closed: whether nothing follows the last reward.
        scenes: of every moment, what the world is drawn from.
    """

    obs: Float[np.ndarray, "T obs"]
    action: Int[np.ndarray, " T"]
    reward: Float[np.ndarray, " more"]
    terminated: bool
    truncated: bool
    closed: bool
    scenes: list[Any]

    def realised(self, gamma: float) -> Float[np.ndarray, " T"]:
        """The discounted return from every decision on; NaN where too much of it is not known."""
        total, returns = 0.0, np.zeros(len(self.reward))
        for t in reversed(range(len(self.reward))):
            total = float(self.reward[t]) + gamma * total
            returns[t] = total
        left = len(self.reward) - np.arange(len(self.reward))
        known = self.closed | (np.power(gamma, left) < NEGLIGIBLE)
        return np.where(known, returns, np.nan)[: len(self.action)].astype(np.float32)


def steps_beyond(gamma: float) -> int:
    """How many steps count for at least a hundredth.

    Example:
        >>> steps_beyond(0.95), steps_beyond(0.0), steps_beyond(1.0)
        (90, 1, 1000)
    """
    if not 0 < gamma < 1:
        return FURTHEST if gamma >= 1 else 1
    return min(math.ceil(math.log(NEGLIGIBLE) / math.log(gamma)), FURTHEST)


class _Journal:
    """Takes the steps of one episode as they come, and tells when it has all it needs."""

    def __init__(self, gamma: float, bootstraps: bool, longest: int):
        self._beyond, self._bootstraps, self._longest = steps_beyond(gamma), bootstraps, longest
        self.obs: list[Any] = []
        self.action: list[int] = []
        self.reward: list[float] = []
        self.scenes: list[Any] = []
        self.terminated = self.truncated = self.recorded = self.closed = self.done = False

    def start(self, scene: Callable[[], Any]) -> None:
        self.scenes.append(scene())

    def add(self, obs: Any, action: int, after: tuple[float, bool, bool], scene: Callable[[], Any]) -> None:
        reward, terminated, truncated = after
        self.reward.append(reward)
        if not self.recorded:
            self.obs.append(np.asarray(obs, np.float32).reshape(-1))
            self.action.append(action)
            self.scenes.append(scene())
            self.terminated, self.truncated = terminated, truncated
            self.recorded = terminated or truncated or len(self.action) >= self._longest
        self.closed = terminated or (truncated and not self._bootstraps)
        self.done = self.closed or (self.recorded and len(self.reward) - len(self.action) >= self._beyond)

    def trip(self) -> Trip:
        ends = self.terminated, self.truncated, self.closed
        return Trip(np.stack(self.obs), np.array(self.action, np.int32), np.array(self.reward), *ends, self.scenes)


def play_jax(
    agent: Agent, state: Any, env: Env, episodes: range, seed: int, gamma: float, bootstraps: bool, longest: int
) -> list[Trip]:
    """Play in a JAX environment, all episodes side by side; the scenes are the states of the environment."""
    worlds, obs, keys = begin(env, jax.random.key(seed), jnp.asarray(episodes))
    journals = [_Journal(gamma, bootstraps, longest) for _ in episodes]
    now = jax.device_get(worlds)
    for e, journal in enumerate(journals):
        journal.start(partial(_of, now, e))
    step = 0
    while not all(journal.done for journal in journals):
        action, worlds, after = _turn(agent, state, env, worlds, obs, keys, jnp.int32(step))
        seen, chosen, now, told = jax.device_get((obs, action, worlds, after))
        for e, journal in enumerate(journals):
            if journal.done:
                continue
            _require_finite(float(told.reward[e]), env.spec.name, e, step)
            ends = float(told.reward[e]), bool(told.terminated[e]), bool(told.truncated[e])
            journal.add(seen[e], int(chosen[e]), ends, partial(_of, now, e))
        obs, step = after.obs, step + 1
    return [journal.trip() for journal in journals]


def play_gymnasium(
    agent: Agent,
    state: Any,
    handle: EnvHandle,
    episodes: range,
    seed: int,
    gamma: float,
    bootstraps: bool,
    longest: int,
    draw: Callable[[], Any],
) -> list[Trip]:
    """Play in a Gymnasium environment, one episode after the other; the scenes are what `draw` gives."""
    env, key, draws = handle.env, jax.random.key(seed), 0
    if not isinstance(env, gymnasium.Env):
        raise UsageError(f"a recording needs one environment to play in, got {env!r}")
    trips = []
    for episode in episodes:
        journal = _Journal(gamma, bootstraps, longest)
        obs, _ = env.reset(seed=seed + episode)
        journal.start(draw)
        while not journal.done:
            (row,), _ = handle.batch(obs)
            action = int(_greedy(agent, state, row, key, draws))
            try:
                obs, reward, terminated, truncated, _ = env.step(action + handle.first_action)
            except SentinelError:
                raise
            except Exception:
                if journal.recorded:  # it cannot be driven on past its end: what follows stays unknown
                    break
                raise
            _require_finite(float(reward), handle.spec.name, episode, len(journal.reward))
            journal.add(row, action, (float(reward), bool(terminated), bool(truncated)), draw)
            draws += not journal.recorded
        trips.append(journal.trip())
    return trips


def _require_finite(reward: float, name: str, episode: int, step: int) -> None:
    if not math.isfinite(reward):
        raise NumericalError(
            f"the reward of {name} is {reward} in step {step} of episode {episode}: fix the environment"
        )


def _of(tree: Any, episode: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[episode], tree)


@jax.jit
def begin(env: Env, key: jax.Array, numbers: Int[Array, " E"]) -> tuple[Any, Array, jax.Array]:
    """The first states and observations, and the keys of the episodes, as `sentinel_rl.evaluate` draws them."""
    own = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
    reset_keys, run_keys = jnp.moveaxis(jax.vmap(jax.random.split)(own), 1, 0)
    worlds, obs = jax.vmap(env.reset)(reset_keys)
    return worlds, obs, run_keys


@jax.jit
def _turn(
    agent: Agent, state: Any, env: Env, worlds: Any, obs: Float[Array, "E obs"], keys: jax.Array, step: Int[Array, ""]
) -> tuple[Int[Array, " E"], Any, TimeStep]:
    """One decision in every episode."""
    own = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, step)))(keys)
    action = jax.vmap(lambda *seen: greedy_in(agent, state, env, *seen))(worlds, obs, own[:, 0])
    following, after = jax.vmap(env.step)(worlds, action, own[:, 1])
    return action, following, after


@jax.jit
def _greedy(agent: Agent, state: Any, obs: Array, key: jax.Array, draw: Array) -> Array:
    return agent.greedy(state, obs, jax.random.fold_in(key, draw))
