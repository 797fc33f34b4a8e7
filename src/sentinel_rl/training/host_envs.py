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
from sentinel_rl.errors import UsageError
from sentinel_rl.training.fused import step_keys
from sentinel_rl.training.host_checks import copy_of, ends_of, reset_of, rewards_of, rows_of, step_of, steps_of


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
        self._steps, where = 0, f"episode {self.episode}, seed {self.seed}"
        with steps_of(self.spec.name, "reset", where):
            returned = self.env.reset(seed=int(words[0]) & 0x7FFFFFFF)
        obs = reset_of(returned, self.spec.name, where)
        return rows_of(self._observations, obs, None, f"observation of {self.spec.name} at reset", where)

    def step(self, actions: Int[np.ndarray, " 1"], t: int, key: jax.Array | None = None) -> HostStep:
        """Take an action, and begin the next episode where this one ended."""
        self._steps += 1
        name = self.spec.name
        where = f"step {t}, episode {self.episode}, step {self._steps} of it, seed {self.seed}"
        with steps_of(name, "step", where):
            returned = self.env.step(int(actions[0]) + self._first_action)
        obs, reward, terminated, truncated, _ = step_of(returned, name, where)
        successor = following = rows_of(self._observations, obs, None, f"observation of {name}", where)
        value = rewards_of(reward, 1, name, where)
        ends = ends_of(terminated, 1, "terminated", name, where), ends_of(truncated, 1, "truncated", name, where)
        if ends[0][0] or ends[1][0]:
            self.episode += 1
            following = self.start()
        return HostStep(successor, value, *ends, following, np.array([True]))


class VectorWorld:
    """A Gymnasium vector environment (``gymnasium.make_vec``), in any of its modes of starting the next episode.

    The number `episode` counts how often all environments were started together; later ones are the vector's own.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int, episode: int = 0):
        self.env, self.seed, self.episode, self.num_envs = env, seed, episode, env.num_envs
        if self.num_envs < 1:
            raise UsageError(f"a vector of {self.num_envs} environments cannot be trained in: give at least 1")
        self.spec = dataclasses.replace(spec_of(env), copies=env.num_envs)
        self._observations = observations_of(env.single_observation_space, self.spec.name)
        self._copy = copy_of(env, self._observations)
        self._first_action = int(getattr(env.single_action_space, "start", 0))
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._ended = np.zeros(self.num_envs, bool)

    def start(self, key: jax.Array | None = None) -> np.ndarray:
        """Begin an episode in every environment."""
        self._ended[:] = False
        words = np.random.SeedSequence([self.seed, self.episode] if self.episode else self.seed).generate_state(1)
        return self._reset("step 0", seed=int(words[0]) & 0x7FFFFFFF)

    def step(self, actions: Int[np.ndarray, " n"], t: int, key: jax.Array | None = None) -> HostStep:
        """Take an action in every environment, and begin the next episode where one ended."""
        name, count, where = self.spec.name, self.num_envs, f"step {t}, seed {self.seed}"
        with steps_of(name, "step", where, self._copy):
            returned = self.env.step(actions + self._first_action)
        obs, reward, terminated, truncated, info = step_of(returned, name, where)
        following = rows_of(self._observations, obs, count, f"observation of {name}", where)
        value = rewards_of(reward, count, name, where)
        ends = (
            ends_of(terminated, count, "terminated", name, where),
            ends_of(truncated, count, "truncated", name, where),
        )
        ended = ends[0] | ends[1]
        successor, valid = following, np.ones(count, bool)
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            successor = following.copy()
            final = [
                rows_of(self._observations, info["final_obs"][i], None, f"final observation of {name}", where)[0]
                for i in np.flatnonzero(ended)
            ]
            successor[ended] = final
        elif self._mode == AutoresetMode.DISABLED and ended.any():
            following = self._reset(f"step {t}", options={"reset_mask": ended})
        elif self._mode == AutoresetMode.NEXT_STEP:
            valid, self._ended = ~self._ended, ended
        # Environments may hand out the same arrays at every step.
        return HostStep(successor.copy(), value.copy(), *ends, following.copy(), valid)

    def _reset(self, when: str, **arguments: Any) -> np.ndarray:
        where = f"{when}, seed {self.seed}"
        with steps_of(self.spec.name, "reset", where, self._copy):
            returned = self.env.reset(**arguments)
        obs = reset_of(returned, self.spec.name, where)
        what = f"observation of {self.spec.name} at reset"
        return rows_of(self._observations, obs, self.num_envs, what, where).copy()


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


def host_env(handle: EnvHandle, seed: int, episode: int = 0) -> HostEnv:
    """The environment of a handle, to be stepped from Python, from the episode of this number on."""
    if isinstance(handle.env, VectorEnv):
        return VectorWorld(handle.env, seed, episode)
    return JaxWorld(handle.env) if handle.is_jax else GymnasiumWorld(handle.env, seed, episode)
