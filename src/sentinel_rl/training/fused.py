"""Agents and a JAX environment in one compiled loop, for populations of runs at once.

Steps are made in segments that end with an update, segments in chunks of a second or so between which the host saves,
reports and looks for NaN. All runs share one clock: learning happens when it is due, not at every step.
"""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl._mapping import each_of
from sentinel_rl.agents.agent import Agent, Metrics, act_in
from sentinel_rl.envs.spec import Env, TimeStep
from sentinel_rl.replay import Transition
from sentinel_rl.training.schedule import Exploration
from sentinel_rl.training.segments import Segments

# Steps per turn of the loop on an accelerator, where a turn has a price of its own (an eighth of a step's). A segment
# of at most this many steps is not unrolled: its world would be compiled several times to save little.
_UNROLL = 4
# Folded into a run's key for its bouts: apart from the numbers of steps (from 0 up) and of updates (from 2^32 down).
_BOUTS = 2**31


class RunState(eqx.Module):
    """One run between two steps, or a stack of them."""

    agent: Any
    env: Any
    obs: Float[Array, "... obs"]
    key: jax.Array


class Population(eqx.Module):
    """Runs of one agent family: same shapes, different seeds and numbers, stacked on the leading axis."""

    agents: Any  # a stack of agents is itself no `Agent`
    runs: RunState

    @property
    def size(self) -> int:
        """How many runs there are."""
        return int(self.runs.obs.shape[0])


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


def act_key(
    run_key: jax.Array, t: Int[Array, ""], bout: Int[Array, ""] | np.int32 | None, copies: int = 1
) -> jax.Array:
    """The key to act with at step ``t``: that of the step with which its bout began.

    Whoever acts with the same key explores at the same epsilon or does not, and takes the same action: exploration that
    goes on for a while leads further away than one that changes its mind at every step (temporally extended
    epsilon-greedy exploration, Dabney et al. 2021). Time is cut into blocks as long as the longest bouts, and every
    block into bouts of the same length, which is a power of two drawn for the block: bouts of all lengths take the same
    share of the time, and the share of steps that explore is epsilon as ever.

    Args:
        run_key: of the run.
        t: the step, counted in transitions.
        bout: length of the longest bouts, a power of two; None where every step has a key of its own.
        copies: environments that are stepped together, with a transition each.
    """
    if bout is None:
        return step_keys(run_key, t).act
    step = t // copies
    key = jax.random.fold_in(jax.random.fold_in(run_key, _BOUTS), step // bout)
    most = jax.lax.population_count(jnp.asarray(bout) - 1)
    length = jnp.left_shift(1, jax.random.randint(key, (), 0, most + 1))
    return step_keys(run_key, copies * (step - step % bout % length)).act


def learn_key(run_key: jax.Array, update: Int[Array, ""]) -> jax.Array:
    """The key of an update; folding in a negative number keeps it apart from the keys of the steps."""
    return jax.random.fold_in(run_key, -update)


def seed_key(seed: int, before: int | None = None) -> jax.Array:
    """The key of a seed; a training that follows another, of so many transitions, has one of its own."""
    key = jax.random.key(seed)
    return jax.random.fold_in(key, before) if before else key


def start_agent(agent: Agent, env: Env, seed_key: jax.Array) -> Any:
    """The state of a run's agent, from the key of its seed."""
    return agent.init(env.spec, _seed_keys(seed_key)[0])


def start_world(env: Env, seed_key: jax.Array) -> tuple[Any, Float[Array, " obs"], jax.Array]:
    """A run's world, what is seen of it, and the key of the run, from the key of its seed."""
    _, reset_key, run_key = _seed_keys(seed_key)
    return *env.reset(reset_key), run_key


def _seed_keys(seed_key: jax.Array) -> jax.Array:
    return jax.random.split(seed_key, 3)


def join(trees: Sequence[Any]) -> Any:
    """Stacked runs as one stack."""
    return trees[0] if len(trees) == 1 else jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def cut(tree: Any, sizes: Sequence[int]) -> list[Any]:
    """What `join` made of stacks of these sizes."""
    places = [itemgetter(slice(end - size, end)) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    return [tree] if len(sizes) == 1 else [jax.tree.map(place, tree) for place in places]


class _Carry(NamedTuple):
    """All runs between two steps: the agents by population, the worlds of all in one batch, and the trace."""

    agents: list[Any]
    worlds: Any
    obs: Array
    rows: Array


def run_chunk(
    populations: Sequence[Population], env: Env, exploration: Exploration, parts: Segments, steps: int
) -> list[tuple[Population, StepTrace, Metrics]]:
    """Advance populations by a chunk of segments.

    Every agent family acts, remembers and learns by itself; the worlds of all are stepped in one batch, so that
    another family costs what its agents cost, and no other simulation is compiled for it.

    Args:
        populations: one per agent family.
        env: a JAX environment.
        exploration: the decline of epsilon.
        parts: the segments; empty ones at the end are skipped. On an accelerator those of a known length are full.
        steps: rows of the trace, at least the steps of the segments.

    Returns:
        for every population what it became, the trace ``[runs, steps]`` (zeros after the chunk's last step) and the
        metrics of its segments ``[runs, segments]`` (NaN without an update).
    """
    sizes = [population.size for population in populations]
    agents = [population.agents for population in populations]
    own_keys = [population.runs.key for population in populations]
    run_keys = join(own_keys)
    origin = parts.begin[0]

    def keys_of(t: Array) -> StepKeys:
        times = jnp.full(sum(sizes), t)
        keys: StepKeys = each_of(step_keys)(run_keys, times)
        if exploration.bout is None:
            return keys
        return keys._replace(act=each_of(lambda key, now: act_key(key, now, exploration.bout))(run_keys, times))

    def advance(t: Array, keys: StepKeys, carry: _Carry) -> _Carry:
        epsilon = exploration.epsilon(t)
        act = each_of(lambda agent, state, world, obs, key: act_in(agent, state, env, world, obs, epsilon, key))
        observe = each_of(lambda agent, state, seen, key: agent.observe(state, t + exploration.before, seen, key))
        own = zip(agents, carry.agents, cut((carry.worlds, carry.obs, keys.act), sizes), strict=True)
        action = join([act(agent, state, *seen) for agent, state, seen in own])
        worlds, obs, after = each_of(lambda *world: _step_world(env, *world))(
            carry.worlds, action, keys.step, keys.reset
        )
        seen = Transition(carry.obs, action, after.reward, after.obs, after.terminated, after.truncated)
        own = zip(agents, carry.agents, cut((seen, keys.observe), sizes), strict=True)
        states = [observe(agent, state, *part) for agent, state, part in own]
        now = StepTrace(after.reward, after.terminated, after.truncated, action)
        rows = jax.lax.dynamic_update_index_in_dim(carry.rows, now.pack(), t - origin, axis=0)
        return _Carry(states, worlds, obs, rows)

    def learn(states: list[Any], update: Int[Array, ""]) -> tuple[list[Any], list[Metrics]]:
        each = each_of(lambda agent, state, key: agent.learn(state, update, learn_key(key, update)))
        learned = [each(*own) for own in zip(agents, states, own_keys, strict=True)]
        return [state for state, _ in learned], [metrics for _, metrics in learned]

    def no_update(states: list[Any]) -> tuple[list[Any], list[Metrics]]:
        return states, jax.tree.map(lambda row: jnp.full(row.shape, jnp.nan, row.dtype), shapes)

    def segment(number: Array, carried: tuple[_Carry, list[Metrics]]) -> tuple[_Carry, list[Metrics]]:
        carry, told = carried
        begin, end, update = (times[number] for times in clock)
        if parts.length is None:
            carry = jax.lax.fori_loop(begin, end, lambda t, now: advance(t, keys_of(t), now), carry)
        else:
            times = begin + jnp.arange(parts.length)
            keys = jax.vmap(keys_of)(times)  # one call, not one a step
            if jax.default_backend() == "cpu":

                def turn(place: Array, now: _Carry) -> _Carry:
                    return advance(begin + place, jax.tree.map(lambda leaf: leaf[place], keys), now)

                carry = jax.lax.fori_loop(0, end - begin, turn, carry)
            else:  # where the end of a loop is not known, an accelerator asks the host at every turn
                unroll = _UNROLL if parts.length > _UNROLL else 1
                carry, _ = jax.lax.scan(lambda c, now: (advance(*now, c), None), carry, (times, keys), unroll=unroll)
        states, metrics = jax.lax.cond(update > 0, partial(learn, update=update), no_update, carry.agents)
        told = jax.tree.map(lambda rows, row: rows.at[number].set(row), told, metrics)
        return carry._replace(agents=states), told

    clock = jnp.asarray(parts.begin), jnp.asarray(parts.end), jnp.asarray(parts.update)
    worlds, obs = join([(population.runs.env, population.runs.obs) for population in populations])
    blank = jnp.zeros((steps, sum(sizes), len(StepTrace._fields)))
    carry = _Carry([population.runs.agent for population in populations], worlds, obs, blank)
    _, shapes = jax.eval_shape(learn, carry.agents, clock[2][0])
    told = jax.tree.map(lambda row: jnp.full((len(parts), *row.shape), jnp.nan, row.dtype), shapes)
    carry, metrics = jax.lax.fori_loop(0, jnp.count_nonzero(clock[1] > clock[0]), segment, (carry, told))
    traces = unpack(jnp.moveaxis(carry.rows, 0, 1))
    parted = zip(agents, carry.agents, cut((carry.worlds, carry.obs, run_keys, traces), sizes), metrics, strict=True)
    return [
        (
            Population(agent, RunState(state, world, seen, key)),
            trace,
            jax.tree.map(lambda values: jnp.moveaxis(values, 0, 1), measured),
        )
        for agent, state, (world, seen, key, trace), measured in parted
    ]


def _step_world(
    env: Env, world: Any, action: Int[Array, ""], step_key: jax.Array, reset_key: jax.Array
) -> tuple[Any, Float[Array, " obs"], TimeStep]:
    """Step, and start a new episode where one ended: the only autoreset of the project."""
    world, after = env.step(world, action, step_key)
    ended = after.terminated | after.truncated
    world, obs = jax.tree.map(lambda new, old: jnp.where(ended, new, old), env.reset(reset_key), (world, after.obs))
    return world, obs, after
