"""Agent and JAX environment in one compiled loop, for a population of runs at once.

Time runs in stretches that end with an update, stretches in chunks of a second or so between which the host saves,
reports and looks for NaN. The clock comes unbatched into the loops: learning happens when it is due, not at every step.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.spec import Env
from sentinel_rl.replay import Transition
from sentinel_rl.runners.schedule import Plan, Segments

# Steps per turn of the loop on an accelerator, where a turn has a price of its own (an eighth of a step's).
_UNROLL = 4


class RunState(eqx.Module):
    """One run between two steps."""

    agent: Any
    env: Any
    obs: Float[Array, " obs"]
    key: jax.Array


class StepTrace(NamedTuple):
    """What happened at a step."""

    reward: Float[Array, "..."]
    terminated: Bool[Array, "..."]
    truncated: Bool[Array, "..."]
    action: Int[Array, "..."]

    def pack(self) -> Float[Array, "... 4"]:
        """One row of numbers: a single write per step."""
        return jnp.stack([jnp.asarray(field, jnp.float32) for field in self], axis=-1)


def unpack(rows: Float[Array, "... 4"]) -> StepTrace:
    """The trace from its rows."""
    return StepTrace(rows[..., 0], rows[..., 1] > 0, rows[..., 2] > 0, rows[..., 3].astype(jnp.int32))


class StepKeys(NamedTuple):
    """One key for each purpose of a step."""

    act: jax.Array
    step: jax.Array
    reset: jax.Array
    observe: jax.Array


def step_keys(run_key: jax.Array, t: Int[Array, ""]) -> StepKeys:
    """The keys of step ``t`` of a run: they depend on nothing else."""
    return StepKeys(*jax.random.split(jax.random.fold_in(run_key, t), 4))


def learn_key(run_key: jax.Array, update: Int[Array, ""]) -> jax.Array:
    """The key of an update; folding in a negative number keeps it apart from the keys of the steps."""
    return jax.random.fold_in(run_key, -update)


def start(agent: Agent, env: Env, seed_key: jax.Array) -> RunState:
    """Make one run from the key of its seed."""
    init_key, reset_key, run_key = jax.random.split(seed_key, 3)
    env_state, obs = env.reset(reset_key)
    return RunState(agent.init(env.spec, init_key), env_state, obs, run_key)


def one_step(
    agent: Agent, env: Env, plan: Plan, run: RunState, t: Int[Array, ""], keys: StepKeys
) -> tuple[RunState, StepTrace]:
    """Act, step, remember, and start a new episode where one ended: the only autoreset of the project."""
    action = agent.act(run.agent, run.obs, plan.epsilon(t), keys.act)
    env_state, after = env.step(run.env, action, keys.step)
    seen = Transition(run.obs, action, after.reward, after.obs, after.terminated, after.truncated)
    agent_state = agent.observe(run.agent, t, seen, keys.observe)
    ended = after.terminated | after.truncated
    fresh_state, fresh_obs = env.reset(keys.reset)
    env_state, obs = jax.tree.map(
        lambda new, old: jnp.where(ended, new, old), (fresh_state, fresh_obs), (env_state, after.obs)
    )
    trace = StepTrace(after.reward, after.terminated, after.truncated, action)
    return RunState(agent_state, env_state, obs, run.key), trace


def run_chunk(
    agent: Agent, env: Env, plan: Plan, run: RunState, parts: Segments, steps: int
) -> tuple[RunState, StepTrace, Metrics]:
    """Advance one run by a chunk of stretches.

    Returns:
        the run, the trace of the chunk's steps ``[steps]`` and the metrics of its stretches (NaN without an update).
    """
    origin = parts.begin[0]

    def advance(t: Array, keys: StepKeys, carry: tuple[RunState, Array]) -> tuple[RunState, Array]:
        state, rows = carry
        state, now = one_step(agent, env, plan, state, t, keys)
        return state, jax.lax.dynamic_update_index_in_dim(rows, now.pack(), t - origin, axis=0)

    def stretch(
        carry: tuple[RunState, Array], part: tuple[Array, Array, Array]
    ) -> tuple[tuple[RunState, Array], Metrics]:
        begin, end, update = part
        if parts.length is None:
            carry = jax.lax.fori_loop(begin, end, lambda t, c: advance(t, step_keys(run.key, t), c), carry)
        else:
            times = begin + jnp.arange(parts.length)
            keys = jax.vmap(step_keys, in_axes=(None, 0))(run.key, times)  # one call for all, not one a step
            unroll = 1 if jax.default_backend() == "cpu" else _UNROLL
            carry, _ = jax.lax.scan(lambda c, now: (advance(*now, c), None), carry, (times, keys), unroll=unroll)
        state, rows = carry
        agent_state, metrics = _learn(agent, state, update)
        return (RunState(agent_state, state.env, state.obs, state.key), rows), metrics

    blank = jnp.zeros((steps, len(StepTrace._fields)))
    (run, rows), metrics = jax.lax.scan(
        stretch, (run, blank), (jnp.asarray(parts.begin), jnp.asarray(parts.end), jnp.asarray(parts.update))
    )
    return run, unpack(rows), metrics


def _learn(agent: Agent, run: RunState, update: Int[Array, ""]) -> tuple[Any, Metrics]:
    """Learn if an update is due; the question is the same for all runs, so that it stays a branch under vmap."""

    def now(state: Any) -> tuple[Any, Metrics]:
        return agent.learn(state, update, learn_key(run.key, update))

    def later(state: Any) -> tuple[Any, Metrics]:
        _, metrics = jax.eval_shape(now, state)
        return state, jax.tree.map(lambda m: jnp.full(m.shape, jnp.nan, m.dtype), metrics)

    result: tuple[Any, Metrics] = jax.lax.cond(update > 0, now, later, run.agent)
    return result
