"""The same agents on any Gymnasium environment, which is stepped from Python.

The functions and keys are those of the fused runner, so that a JAX environment driven from here gives its trace. What
costs time is the way into a compiled program, not the program: a step calls one, to act. Transitions are kept in NumPy
and taken in with the next update or the end of an episode, before which no agent needs them.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.replay import Transition
from sentinel_rl.training.fused import act_key, learn_key, seed_key, step_keys
from sentinel_rl.training.host_envs import HostEnv, HostStep, JaxWorld
from sentinel_rl.training.schedule import Exploration, Plan
from sentinel_rl.training.standing import Standing

# Transitions that wait at most before they are taken in.
_WAITING = 128
# Keys that are made in one call.
_KEYS = 512


class HostRun:
    """One run on a `HostEnv`, advanced step by step; ``t`` transitions were seen.

    Where the world holds several environments, a step takes in a transition of each, in their order, and then makes
    all updates that were due meanwhile.
    """

    def __init__(self, agent: Agent, world: HostEnv, plan: Plan, seed: int, start: Standing | None = None):
        init_key, reset_key, self.key = jax.random.split(seed_key(seed, plan.before), 3)
        self.agent = jax.tree.map(jnp.asarray, agent)
        self.world, self.plan, self.t = world, plan, 0 if start is None else start.t
        # Python classes are flattened slowly: compiled functions take and return lists of arrays.
        self._agent, self._agent_form = jax.tree.flatten(self.agent)
        # Copied: a step gives up the arrays that it was handed.
        spec = world.spec
        first = _start(self.agent, spec, init_key) if start is None else _copied(start.state_for(spec.copies))
        self._state, self._state_form = jax.tree.flatten(first)
        self._programs = _programs(self._agent_form, self._state_form, jax.random.key_impl(self.key))
        # On the device once: they are arguments of every step.
        self._exploration = jax.tree.map(jnp.asarray, plan.exploration)
        self._key_data = jax.random.key_data(self.key)
        self.obs = world.start(reset_key)
        if start is not None and start.world is not None and isinstance(world, JaxWorld):
            self.obs = world.go_on(*start.world)
        self.actions: Int[Array, " n"] | None = None
        self._seen = _room(_WAITING + world.num_envs, world.spec.obs_size)
        self._waiting = 0
        self._keys, self._keys_from = np.zeros((0, 0), np.uint32), 0

    @property
    def state(self) -> Any:
        """The agent's state, with all that was seen."""
        if self._waiting:
            self._take_in(0, 0)
        return jax.tree.unflatten(self._state_form, self._state)

    @state.setter
    def state(self, state: Any) -> None:
        self._state, self._waiting = jax.tree.leaves(state), 0

    def step(self) -> tuple[HostStep, np.ndarray, list[Metrics]]:
        """Do one step; returns what happened, the actions, and the metrics of the updates that were made.

        The last step of a plan takes in no more transitions than it has left.
        """
        if self.actions is None:
            self.actions = self._next_actions()
        actions = np.asarray(self.actions)
        happened = self.world.step(actions, self.t, self.key)
        if self.world.num_envs > 1:
            happened = happened._replace(valid=_first(happened.valid, self.plan.steps - self.t))
        count = self._keep(happened, actions)
        first, last = self.plan.updates(self.t), self.plan.updates(self.t + count)
        self.obs, self.t = happened.obs, self.t + count
        metrics = []
        ended = happened.terminated.any() or happened.truncated.any()
        if last > first or ended or self._waiting >= _WAITING:
            metrics = self._take_in(last - first, first + 1)
        self.actions = self._next_actions()
        return happened, actions, metrics

    def _next_actions(self) -> Int[Array, " n"]:
        return self._programs.act(self._agent, self._state, self.obs, self.t, self._exploration, self._act_key())

    def _keep(self, happened: HostStep, actions: np.ndarray) -> int:
        """Let the transitions that count wait; returns how many they are."""
        valid = happened.valid
        count = int(np.count_nonzero(valid))
        place = slice(self._waiting, self._waiting + count)
        fields = (self.obs, actions, happened.reward, happened.successor, happened.terminated, happened.truncated)
        for room, field in zip(self._seen, fields, strict=True):
            room[place] = field[valid]
        self._waiting += count
        return count

    def _take_in(self, learns: int, update: int) -> list[Metrics]:
        """Hand the agent what waits, and let it make its updates, which begin with this number."""
        clock = np.array([self.t - self._waiting, self._waiting, update, self.plan.before or 0], np.int32)
        # Copied: the program may still be reading when the next step is written.
        seen = [field.copy() for field in self._seen]
        absorb = self._programs.absorb
        self._state, metrics = absorb(self._agent, self._state, seen, clock, self._key_data, learns=learns)
        self._waiting = 0
        return metrics

    def _act_key(self) -> np.ndarray:
        """The data of the key to act with at this step."""
        place = self.t - self._keys_from
        if not 0 <= place < len(self._keys):
            self._keys_from, place = self.t, 0
            times = self.t + np.arange(_KEYS)
            self._keys = np.asarray(_act_keys(self.key, times, self._exploration.bout, self.world.num_envs))
        key: np.ndarray = self._keys[place]
        return key


class _Programs(NamedTuple):
    """What a run calls, compiled."""

    act: Callable[..., Int[Array, " n"]]
    absorb: Callable[..., tuple[list[Array], list[Metrics]]]


@lru_cache(maxsize=32)
def _programs(agent_form: Any, state_form: Any, key_impl: Any) -> _Programs:
    """The programs of all runs whose agents and states have these trees: another run or plan compiles nothing.

    Args:
        agent_form: the tree of the agent.
        state_form: the tree of its state.
        key_impl: the random number generator of the run's key.
    """

    def act(
        agent_leaves: list[Array],
        state_leaves: list[Array],
        obs: Float[Array, "n obs"],
        t: Array,
        exploration: Exploration,
        key_data: Array,
    ) -> Int[Array, " n"]:
        agent: Agent = jax.tree.unflatten(agent_form, agent_leaves)
        state = jax.tree.unflatten(state_form, state_leaves)
        key, epsilon = jax.random.wrap_key_data(key_data, impl=key_impl), exploration.epsilon(t)
        if len(obs) == 1:
            return agent.act(state, obs[0], epsilon, key)[None]
        keys = jax.random.split(key, len(obs))
        return jax.vmap(partial(agent.act, state), in_axes=(0, None, 0))(obs, epsilon, keys)

    def absorb(
        agent_leaves: list[Array],
        state_leaves: list[Array],
        seen: list[Array],
        clock: Array,
        key_data: Array,
        learns: int,
    ) -> tuple[list[Array], list[Metrics]]:
        agent: Agent = jax.tree.unflatten(agent_form, agent_leaves)
        run_key = jax.random.wrap_key_data(key_data, impl=key_impl)
        t, count, update, before = clock

        def remember(i: Array, state: Any) -> Any:
            one = Transition._make(field[i] for field in seen)
            return agent.observe(state, before + t + i, one, step_keys(run_key, t + i).observe)

        state = jax.lax.fori_loop(0, count, remember, jax.tree.unflatten(state_form, state_leaves))
        metrics = []
        for number in range(learns):
            state, made = agent.learn(state, update + number, learn_key(run_key, update + number))
            metrics.append(made)
        return jax.tree.leaves(state), metrics

    return _Programs(jax.jit(act), jax.jit(absorb, static_argnames="learns", donate_argnums=1))


def _copied(state: Any) -> Any:
    """Arrays of one's own."""
    return jax.tree.map(jnp.copy, state)


@jax.jit
def _start(agent: Agent, spec: EnvSpec, key: jax.Array) -> Any:
    """The agent's state before the first step."""
    return agent.init(spec, key)


@partial(jax.jit, static_argnames="copies")
def _act_keys(run_key: jax.Array, times: Int[Array, " n"], bout: Int[Array, ""] | None, copies: int) -> Array:
    """The data of the keys to act with at these steps."""
    return jax.random.key_data(jax.vmap(lambda t: act_key(run_key, t, bout, copies))(times))


def _room(size: int, obs_size: int) -> Transition:
    """Space for transitions."""
    obs = (size, obs_size)
    ends = np.zeros(size, bool), np.zeros(size, bool)
    return Transition._make(
        (
            np.zeros(obs, np.float32),
            np.zeros(size, np.int32),
            np.zeros(size, np.float32),
            np.zeros(obs, np.float32),
            *ends,
        )
    )


def _first(valid: np.ndarray, count: int) -> np.ndarray:
    """The first of those that are true."""
    return valid & (np.cumsum(valid) <= count)
