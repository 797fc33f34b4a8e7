"""Worlds that are stepped from Python: a Gymnasium environment, a vector of them, or a JAX one."""

import dataclasses
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.handle import EnvHandle, spec_of
from sentinel_rl.envs.observations import observations_of
from sentinel_rl.envs.spec import Env, EnvSpec, TimeStep
from sentinel_rl.errors import NumericalError
from sentinel_rl.training.fused import step_keys


class HostStep(NamedTuple):
    """What followed the actions in every environment, in NumPy.

    Args:
        successor: the true one, before any reset.
        reward: of the step.
        terminated: whether the episode ended by itself.
        truncated: whether it was cut off.
        obs: what to act on next, which is a new episode's start where one ended.
        valid: false where an environment only started its next episode and nothing was learnt of the action.
    """

    successor: Float[np.ndarray, "n obs"]
    reward: Float[np.ndarray, " n"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    obs: Float[np.ndarray, "n obs"]
    valid: Bool[np.ndarray, " n"]


@runtime_checkable
class HostEnv(Protocol):
    """Environments that are stepped from Python; they start their next episodes, and say where one ended."""

    spec: EnvSpec
    num_envs: int

    def start(self, key: jax.Array) -> np.ndarray:
        """Begin the first episodes."""
        ...

    def step(self, actions: Int[np.ndarray, " n"], t: int, key: jax.Array) -> HostStep:
        """Take an action in every environment at step ``t`` of the run with this key."""
        ...


class GymnasiumWorld:
    """A Gymnasium environment with numbers to see and a discrete choice to make.

    Episode number ``e`` of a run is reset with a seed made of the run's seed and ``e``: environments that are
    determined by their seed can be resumed at the end of any episode without saving their insides.
    """

    num_envs = 1

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int, episode: int = 0):
        self.env, self.seed, self.episode = env, seed, episode
        self.spec = spec_of(env)
        self._observations = observations_of(env.observation_space, self.spec.name)
        self._first_action = int(getattr(env.action_space, "start", 0))
        self._steps = 0

    def start(self, key: jax.Array | None = None) -> np.ndarray:
        """Begin the next episode; its seed comes from the run's seed and its number."""
        words = np.random.SeedSequence([self.seed, self.episode]).generate_state(1)
        obs, _ = self.env.reset(seed=int(words[0]) & 0x7FFFFFFF)
        self._steps = 0
        return self._checked(self._observations.row(obs), "observation at reset")

    def step(self, actions: Int[np.ndarray, " 1"], t: int, key: jax.Array | None = None) -> HostStep:
        """Take an action, and begin the next episode where this one ended."""
        obs, reward, terminated, truncated, _ = self.env.step(int(actions[0]) + self._first_action)
        self._steps += 1
        successor = following = self._checked(self._observations.row(obs), "observation", t)
        value = self._checked(reward, "reward", t)[0]
        if terminated or truncated:
            self.episode += 1
            following = self.start()
        ends = np.array([terminated], bool), np.array([truncated], bool)
        return HostStep(successor, value, *ends, following, np.array([True]))

    def _checked(self, values: Any, what: str, t: int | None = None) -> np.ndarray:
        where = f"step {t}, episode {self.episode}, step {self._steps} of it, seed {self.seed}"
        return finite_rows(values, 1, f"{what} of {self.spec.name}", where)


class VectorWorld:
    """A Gymnasium vector environment (``gymnasium.make_vec``), in any of its modes of starting the next episode.

    The number `episode` counts how often all environments were started together; later ones are the vector's own.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int, episode: int = 0):
        self.env, self.seed, self.episode, self.num_envs = env, seed, episode, env.num_envs
        self.spec = dataclasses.replace(spec_of(env), copies=env.num_envs)
        self._observations = observations_of(env.single_observation_space, self.spec.name)
        self._first_action = int(getattr(env.single_action_space, "start", 0))
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._ended = np.zeros(self.num_envs, bool)

    def start(self, key: jax.Array | None = None) -> np.ndarray:
        """Begin an episode in every environment."""
        self._ended[:] = False
        words = np.random.SeedSequence([self.seed, self.episode] if self.episode else self.seed).generate_state(1)
        obs, _ = self.env.reset(seed=int(words[0]) & 0x7FFFFFFF)
        return self._checked(self._observations.rows(obs, self.num_envs), "observation at reset")

    def step(self, actions: Int[np.ndarray, " n"], t: int, key: jax.Array | None = None) -> HostStep:
        """Take an action in every environment, and begin the next episode where one ended."""
        obs, reward, terminated, truncated, info = self.env.step(actions + self._first_action)
        following = self._checked(self._observations.rows(obs, self.num_envs), "observation", t)
        value = self._checked(reward, "reward", t)[:, 0]
        ended = np.asarray(terminated | truncated, bool)
        successor, valid = following, np.ones(self.num_envs, bool)
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            successor = following.copy()
            final = np.stack([self._observations.row(obs) for obs in info["final_obs"][ended]])
            successor[ended] = self._checked(final, "final observation", t)
        elif self._mode == AutoresetMode.DISABLED and ended.any():
            fresh, _ = self.env.reset(options={"reset_mask": ended})
            following = self._checked(self._observations.rows(fresh, self.num_envs), "observation at reset", t)
        elif self._mode == AutoresetMode.NEXT_STEP:
            valid, self._ended = ~self._ended, ended
        # Environments may hand out the same arrays at every step.
        ends = np.array(terminated, bool), np.array(truncated, bool)
        return HostStep(successor.copy(), value.copy(), *ends, following.copy(), valid)

    def _checked(self, values: Any, what: str, t: int | None = None) -> np.ndarray:
        count = len(values)
        return finite_rows(values, count, f"{what} of {self.spec.name}", f"step {t}, seed {self.seed}")


class JaxWorld:
    """A JAX environment stepped from Python, with the keys of the fused runner."""

    num_envs = 1

    def __init__(self, env: Env):
        self.env, self.spec = env, env.spec
        self.state: Any = None

    def start(self, key: jax.Array) -> np.ndarray:
        """Begin the first episode."""
        self.state, obs = _reset(self.env, key)
        return np.asarray(obs)[None]

    def go_on(self, state: Any, obs: Any) -> np.ndarray:
        """Go on in the middle of an episode."""
        self.state = state
        return np.asarray(obs)[None]

    def step(self, actions: Int[np.ndarray, " 1"], t: int, key: jax.Array) -> HostStep:
        """Take an action, and begin the next episode where this one ended."""
        keys = step_keys(key, jnp.int32(t))
        self.state, after = _step(self.env, self.state, jnp.int32(actions[0]), keys.step)
        successor, reward, terminated, truncated = (np.asarray(part)[None] for part in after)
        obs = successor
        if terminated[0] or truncated[0]:
            self.state, fresh = _reset(self.env, keys.reset)
            obs = np.asarray(fresh)[None]
        return HostStep(successor, reward, terminated, truncated, obs, np.array([True]))


# Compiled at the level of the module: another world of the same environment compiles nothing.
@jax.jit
def _reset(env: Env, key: jax.Array) -> tuple[Any, Float[Array, " obs"]]:
    return env.reset(key)


@jax.jit
def _step(env: Env, state: Any, action: Int[Array, ""], key: jax.Array) -> tuple[Any, TimeStep]:
    return env.step(state, action, key)


def finite_rows(values: Any, count: int, what: str, where: str) -> Float[np.ndarray, "n size"]:
    """Flatten to rows of float32, and stop on what is not finite before it enters the replay."""
    rows = np.asarray(values, dtype=np.float32).reshape(count, -1)
    if not np.isfinite(rows).all():
        run, place = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        which = f"environment {run}, " if count > 1 else ""
        raise NumericalError(
            f"{what} holds {rows[run, place]} at index {place} ({which}{where}): "
            f"fix the environment; the last checkpoint is kept"
        )
    return rows


def host_env(handle: EnvHandle, seed: int, episode: int = 0) -> HostEnv:
    """The environment of a handle, to be stepped from Python, from the episode of this number on."""
    if isinstance(handle.env, VectorEnv):
        return VectorWorld(handle.env, seed, episode)
    return JaxWorld(handle.env) if handle.is_jax else GymnasiumWorld(handle.env, seed, episode)
