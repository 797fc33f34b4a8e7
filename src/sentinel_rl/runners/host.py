"""The same agents on any Gymnasium environment: one compiled call per step, the environment in Python.

The functions and keys are those of the fused runner, so that a JAX environment driven from here gives its trace.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.replay import Transition
from sentinel_rl.runners.fused import learn_key, step_keys
from sentinel_rl.runners.host_worlds import HostEnv, HostStep
from sentinel_rl.runners.schedule import Plan


class HostRun:
    """One run on a `HostEnv`, advanced step by step; ``t`` transitions were seen.

    Where the world holds several environments, a step takes in a transition of each, in their order, and then makes
    all updates that were due meanwhile.
    """

    def __init__(self, agent: Agent, world: HostEnv, plan: Plan, seed: int):
        init_key, reset_key, self.key = jax.random.split(jax.random.key(seed), 3)
        self.agent = jax.tree.map(jnp.asarray, agent)
        self.world, self.plan, self.t = world, plan, 0
        self.state = jax.jit(lambda a, k: a.init(world.spec, k))(self.agent, init_key)
        self.obs = world.start(reset_key)
        self.actions: Int[Array, " n"] | None = None
        self._learn_times = plan.learn_times
        self._act = jax.jit(self._act_now)
        self._proceed = jax.jit(self._remember_learn_and_act, static_argnames="learns", donate_argnames="state")

    def step(self) -> tuple[HostStep, np.ndarray, list[Metrics]]:
        """Do one step; returns what happened, the actions, and the metrics of the updates that were made.

        The last step of a plan takes in no more transitions than it has left.
        """
        if self.actions is None:
            self.actions = self._act(self.agent, self.state, self.obs, np.int32(self.t))
        actions = np.asarray(self.actions)
        happened = self.world.step(actions, self.t, self.key)
        counted = np.flatnonzero(happened.valid)[: self.plan.steps - self.t]
        happened = happened._replace(valid=np.isin(np.arange(self.world.num_envs), counted))
        # Those that count come first; what follows them is not looked at.
        order = np.argsort(~happened.valid, kind="stable")
        fields = (self.obs, actions, happened.reward, happened.successor, happened.terminated, happened.truncated)
        seen = Transition._make(field[order] for field in fields)
        first, last = np.searchsorted(self._learn_times, [self.t, self.t + counted.size], side="right")
        clock = np.array([self.t, counted.size, first + 1], np.int32)
        self.state, self.actions, metrics = self._proceed(
            self.agent, self.state, seen, happened.obs, clock, learns=int(last - first)
        )
        self.obs, self.t = happened.obs, self.t + counted.size
        return happened, actions, metrics

    def _act_now(self, agent: Agent, state: Any, obs: Float[Array, "n obs"], t: Int[Array, ""]) -> Int[Array, " n"]:
        key, epsilon = step_keys(self.key, t).act, self.plan.epsilon(t)
        if len(obs) == 1:
            return agent.act(state, obs[0], epsilon, key)[None]
        keys = jax.random.split(key, len(obs))
        return jax.vmap(partial(agent.act, state), in_axes=(0, None, 0))(obs, epsilon, keys)

    def _remember_learn_and_act(
        self, agent: Agent, state: Any, seen: Transition, obs: Float[Array, "n obs"], clock: Array, learns: int
    ) -> tuple[Any, Int[Array, " n"], list[Metrics]]:
        t, count, update = clock

        def remember(i: Any, state: Any) -> Any:
            one = jax.tree.map(lambda field: field[i], seen)
            return agent.observe(state, t + i, one, step_keys(self.key, t + i).observe)

        state = remember(0, state) if len(obs) == 1 else jax.lax.fori_loop(0, count, remember, state)
        metrics = []
        for number in range(learns):
            state, made = agent.learn(state, update + number, learn_key(self.key, update + number))
            metrics.append(made)
        return state, self._act_now(agent, state, obs, t + count), metrics
