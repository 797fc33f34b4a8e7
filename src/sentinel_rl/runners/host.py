"""The same agents on any Gymnasium environment: one compiled call per step, the environment in Python.

The functions and keys are those of the fused runner, so that a JAX environment driven from here gives its trace.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.replay import Transition
from sentinel_rl.runners.fused import learn_key, step_keys
from sentinel_rl.runners.schedule import Plan


class HostStep(NamedTuple):
    """What followed an action, in NumPy: the true successor, and what to act on next (a new episode's start)."""

    successor: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    obs: np.ndarray


@runtime_checkable
class HostEnv(Protocol):
    """A world that is stepped from Python; it starts the next episode by itself, and says where one ended."""

    spec: EnvSpec

    def start(self, key: jax.Array) -> np.ndarray:
        """Begin the first episode."""
        ...

    def step(self, action: int, t: int, key: jax.Array) -> HostStep:
        """Take an action at step ``t`` of the run with this key."""
        ...


class GymnasiumWorld:
    """A Gymnasium environment with a box of numbers to see and a discrete choice to make.

    Episode number ``e`` of a run is reset with a seed made of the run's seed and ``e``: environments that are
    determined by their seed can be resumed at the end of any episode without saving their insides.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int, episode: int = 0):
        self.env, self.seed, self.episode = env, seed, episode
        self.spec = spec_of(env)
        self._first_action = int(getattr(env.action_space, "start", 0))
        self._steps = 0

    def start(self, key: jax.Array | None = None) -> np.ndarray:
        """Begin the next episode; its seed comes from the run's seed and its number."""
        words = np.random.SeedSequence([self.seed, self.episode]).generate_state(1)
        obs, _ = self.env.reset(seed=int(words[0]) & 0x7FFFFFFF)
        self._steps = 0
        return self._checked(obs, "observation at reset")

    def step(self, action: int, t: int, key: jax.Array | None = None) -> HostStep:
        """Take an action, and begin the next episode where this one ended."""
        obs, reward, terminated, truncated, _ = self.env.step(action + self._first_action)
        self._steps += 1
        successor = self._checked(obs, "observation", t)
        value = float(self._checked(reward, "reward", t)[0])
        following = successor
        if terminated or truncated:
            self.episode += 1
            following = self.start()
        return HostStep(successor, value, bool(terminated), bool(truncated), following)

    def _checked(self, values: Any, what: str, t: int | None = None) -> np.ndarray:
        """Flatten to float32, and stop on what is not finite before it enters the replay."""
        flat = np.asarray(values, dtype=np.float32).reshape(-1)
        if not np.isfinite(flat).all():
            place = int(np.argmin(np.isfinite(flat)))
            raise NumericalError(
                f"{what} of {self.spec.name} holds {flat[place]} at index {place} (step {t}, episode {self.episode}, "
                f"step {self._steps} of it, seed {self.seed}): fix the environment; the last checkpoint is kept"
            )
        return flat


class JaxWorld:
    """A JAX environment stepped from Python, with the keys of the fused runner."""

    def __init__(self, env: Env):
        self.spec = env.spec
        self._reset, self._step = jax.jit(env.reset), jax.jit(env.step)
        self._state: Any = None

    def start(self, key: jax.Array) -> np.ndarray:
        """Begin the first episode."""
        self._state, obs = self._reset(key)
        return np.asarray(obs)

    def step(self, action: int, t: int, key: jax.Array) -> HostStep:
        """Take an action, and begin the next episode where this one ended."""
        keys = step_keys(key, jnp.int32(t))
        self._state, after = self._step(self._state, jnp.int32(action), keys.step)
        successor = obs = np.asarray(after.obs)
        terminated, truncated = bool(after.terminated), bool(after.truncated)
        if terminated or truncated:
            self._state, fresh = self._reset(keys.reset)
            obs = np.asarray(fresh)
        return HostStep(successor, float(after.reward), terminated, truncated, obs)


class HostRun:
    """One run on a `HostEnv`, advanced step by step; ``t`` steps are done."""

    def __init__(self, agent: Agent, world: HostEnv, plan: Plan, seed: int):
        init_key, reset_key, self.key = jax.random.split(jax.random.key(seed), 3)
        self.agent = jax.tree.map(jnp.asarray, agent)
        self.world, self.plan, self.t = world, plan, 0
        self.state = jax.jit(lambda a, k: a.init(world.spec, k))(self.agent, init_key)
        self.obs = world.start(reset_key)
        self._updates = {int(t): n for n, t in enumerate(plan.learn_times, start=1)}
        self._action: Array | None = None
        self._act = jax.jit(self._act_now)
        self._proceed = jax.jit(self._remember_and_act, donate_argnums=1)
        self._proceed_learning = jax.jit(self._remember_learn_and_act, donate_argnums=1)

    def step(self) -> tuple[HostStep, int, Metrics | None]:
        """Do one step; returns what happened, the action, and the metrics of the update if one was made."""
        if self._action is None:
            self._action = self._act(self.agent, self.state, self.obs, self.t)
        action = int(self._action)
        happened = self.world.step(action, self.t, self.key)
        reward, ends = np.float32(happened.reward), (np.bool_(happened.terminated), np.bool_(happened.truncated))
        seen = Transition._make((self.obs, np.int32(action), reward, happened.successor, *ends))
        metrics = None
        update = self._updates.get(self.t + 1)
        if update is None:
            self.state, self._action = self._proceed(self.agent, self.state, seen, happened.obs, np.int32(self.t))
        else:
            self.state, self._action, metrics = self._proceed_learning(
                self.agent, self.state, seen, happened.obs, np.int32(self.t), np.int32(update)
            )
        self.obs, self.t = happened.obs, self.t + 1
        return happened, action, metrics

    def _act_now(self, agent: Agent, state: Any, obs: Float[Array, " obs"], t: Int[Array, ""]) -> Int[Array, ""]:
        return agent.act(state, obs, self.plan.epsilon(t), step_keys(self.key, t).act)

    def _remember_and_act(
        self, agent: Agent, state: Any, seen: Transition, obs: Array, t: Array
    ) -> tuple[Any, Int[Array, ""]]:
        state = agent.observe(state, t, seen, step_keys(self.key, t).observe)
        return state, self._act_now(agent, state, obs, t + 1)

    def _remember_learn_and_act(
        self, agent: Agent, state: Any, seen: Transition, obs: Array, t: Array, update: Array
    ) -> tuple[Any, Int[Array, ""], Metrics]:
        state = agent.observe(state, t, seen, step_keys(self.key, t).observe)
        state, metrics = agent.learn(state, update, learn_key(self.key, update))
        return state, self._act_now(agent, state, obs, t + 1), metrics


def spec_of(env: gymnasium.Env[Any, Any]) -> EnvSpec:
    """Read the sizes of a Gymnasium environment, or say why it cannot be used and what to do."""
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    actions, observations = _single_spaces(env)
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise UsageError(
            f"{name} has the action space {actions}: SENTINEL chooses among Discrete(n) actions. "
            f"Wrap it with gymnasium.wrappers.TransformAction to offer a list of discrete choices"
        )
    if not isinstance(observations, gymnasium.spaces.Box):
        raise UsageError(
            f"{name} has the observation space {observations}: a Box of numbers is needed. "
            f"Wrap it with gymnasium.wrappers.FlattenObservation"
        )
    axes = len(observations.shape)
    if axes > 2 or (axes == 2 and observations.dtype == np.uint8):
        raise UsageError(
            f"{name} shows images {observations.shape} of {observations.dtype}: the networks are for vectors. "
            f"Extract features first, or wrap it with gymnasium.wrappers.FlattenObservation"
        )
    limit = env.spec.max_episode_steps if env.spec is not None else None
    return EnvSpec(name, int(np.prod(observations.shape)), int(actions.n), None, limit)


def _single_spaces(env: Any) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """The spaces of one environment, also where many are vectorised."""
    return (
        getattr(env, "single_action_space", env.action_space),
        getattr(env, "single_observation_space", env.observation_space),
    )
