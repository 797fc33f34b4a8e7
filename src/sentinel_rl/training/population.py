"""Many runs at once: vmapped on an accelerator, one per core on a CPU.

A CPU core is filled by one run, so that batching gains nothing there; an accelerator is filled by hundreds. Either
way a group of runs is one compiled call, sharded over the devices, and a run's random numbers depend on its seed alone.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sentinel_rl._mapping import each_of
from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.spec import Env
from sentinel_rl.training.fused import (
    Population,
    RunState,
    StepTrace,
    cut,
    join,
    run_chunk,
    seed_key,
    start_agent,
    start_world,
)
from sentinel_rl.training.schedule import Exploration, Plan
from sentinel_rl.training.segments import Segments

# What a group became, the trace of its steps and the metrics of its updates.
Advanced = tuple[Population, StepTrace, Metrics]


def use_all_cores() -> None:
    """Let JAX see every CPU core as a device. It must be called before JAX is first used, and is ignored after."""
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except RuntimeError:
        return  # JAX is running already: one core it is


def stack_agents(agents: Sequence[Agent]) -> Any:
    """Put agents that differ only in numbers (lambda, alpha, ...) on a leading axis."""
    kinds = {str(jax.tree.structure(agent)) for agent in agents}
    if len(kinds) != 1:
        raise ValueError("agents of one population may differ in numbers only, not in kind, sizes or options")
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *agents)


def seed_keys(seeds: Sequence[int], before: int | None = None) -> jax.Array:
    """One key per seed, whatever the others are; `before` as in `Plan`."""
    return jnp.stack([seed_key(seed, before) for seed in seeds])


class Fleet:
    """Advances groups of runs of one plan on the devices at hand.

    Args:
        env: a JAX environment.
        plan: the course of the runs.
        devices: to use; all local ones when None.
    """

    def __init__(self, env: Env, plan: Plan, devices: Sequence[jax.Device] | None = None):
        self.env, self.plan = env, plan
        self.devices = list(devices or jax.local_devices())
        self.mesh = Mesh(np.asarray(self.devices), ("runs",))

    def group_size(self, runs: int) -> int:
        """How many runs go into one call: one per core on a CPU, all on accelerators."""
        count = len(self.devices)
        return count if self.devices[0].platform == "cpu" else -(-runs // count) * count

    def start(self, agents: Sequence[Agent], seeds: Sequence[int]) -> list[Population]:
        """Begin a run per seed, in groups; the last group is filled up with repetitions."""
        before = self.plan.before
        return [self._begin(stacked, seed_keys(own, before)) for stacked, own in self._groups(agents, seeds)]

    def outline(self, agents: Sequence[Agent], seeds: Sequence[int]) -> list[Population]:
        """The shapes of what `start` makes, for which programs can be compiled before anything is computed."""
        # What is on one device is not split, and JAX calls it so.
        place = NamedSharding(self.mesh, PartitionSpec("runs") if len(self.devices) > 1 else PartitionSpec())

        def shape(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place, weak_type=leaf.weak_type)

        groups = []
        for stacked, own in self._groups(agents, seeds):
            runs = jax.eval_shape(self._begin, stacked, seed_keys(own)).runs
            groups.append(Population(stacked, jax.tree.map(shape, runs)))
        return groups

    def _groups(self, agents: Sequence[Agent], seeds: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
        """The agents and seeds of every group."""
        size = self.group_size(len(seeds))
        filled = -(-len(seeds) // size) * size
        order = [min(i, len(seeds) - 1) for i in range(filled)]
        for begin in range(0, filled, size):
            part = order[begin : begin + size]
            yield stack_agents([agents[i] for i in part]), [seeds[i] for i in part]

    def _begin(self, stacked: Any, keys: jax.Array) -> Population:
        state = _start_agents(stacked, keys, self.env, self.mesh)
        return Population(stacked, RunState(state, *_start_worlds(keys, self.env, self.mesh)))

    def advance(self, groups: Sequence[Population], parts: Segments, steps: int) -> list[Advanced]:
        """Advance groups by a chunk: one after the other on a CPU, all in one call on accelerators.

        Their old states are given up. Traces are ``[runs, steps]``.
        """
        return [each for call in self.calls(groups) for each in self.advance_at_once(call, parts, steps)]

    def calls(self, groups: Sequence[Population]) -> list[list[Population]]:
        """The groups that are computed in one call: each by itself on a CPU, all on accelerators."""
        return [[group] for group in groups] if self.devices[0].platform == "cpu" else [list(groups)]

    def advance_at_once(self, groups: Sequence[Population], parts: Segments, steps: int) -> list[Advanced]:
        """Advance groups by a chunk in one compiled call."""
        advanced = _advance(*self._arguments(groups, parts, steps))
        return [
            (Population(group.agents, runs), trace, metrics)
            for group, (runs, trace, metrics) in zip(groups, advanced, strict=True)
        ]

    def lower(self, groups: Sequence[Population], parts: Segments, steps: int) -> list[Any]:
        """The programs of `advance`, traced but not compiled; outlines of groups are enough."""
        return [_advance.lower(*self._arguments(call, parts, steps)) for call in self.calls(groups)]

    def _arguments(self, groups: Sequence[Population], parts: Segments, steps: int) -> tuple[Any, ...]:
        agents, runs = [group.agents for group in groups], [group.runs for group in groups]
        clock = parts.begin, parts.end, parts.update
        # A segment that is cut short needs a loop of unknown length, which slows down accelerators only.
        length = parts.length if parts.full or self.devices[0].platform == "cpu" else None
        return agents, runs, self.env, clock, self.plan.exploration, length, steps, self.mesh


# Compiled at the level of the module: another fleet or plan of the same shapes compiles nothing. Worlds are started by
# themselves: they are the same for every kind of agent.
@partial(jax.jit, static_argnames="mesh")
def _start_worlds(keys: jax.Array, env: Env, mesh: Mesh) -> Any:
    return sharded(lambda key: start_world(env, key), mesh)(keys)


@partial(jax.jit, static_argnames="mesh")
def _start_agents(agents: Any, keys: jax.Array, env: Env, mesh: Mesh) -> Any:
    return sharded(lambda agent, key: start_agent(agent, env, key), mesh)(agents, keys)


@partial(jax.jit, static_argnames=("length", "steps", "mesh"), donate_argnames="runs")
def _advance(
    agents: Any,
    runs: Any,
    env: Env,
    clock: Any,
    exploration: Exploration,
    length: int | None,
    steps: int,
    mesh: Mesh,
) -> list[tuple[RunState, StepTrace, Metrics]]:
    def local(agents: Any, runs: Any, clock: Any, exploration: Any) -> list[tuple[RunState, StepTrace, Metrics]]:
        groups = [Population(*each) for each in zip(agents, runs, strict=True)]
        kinds, parted = joined(groups)
        begin, end, update = clock
        advanced = parted(run_chunk(kinds, env, exploration, Segments(begin, end, update, length), steps))
        return [(group.runs, *told) for group, *told in advanced]

    split, whole = PartitionSpec("runs"), PartitionSpec()
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(split, split, whole, whole), out_specs=split, check_vma=False)
    advanced: list[tuple[RunState, StepTrace, Metrics]] = mapped(agents, runs, clock, exploration)
    return advanced


def joined(stacks: Sequence[Any]) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Join stacks whose trees are alike, as those of agents that differ in numbers only.

    Returns:
        the stacks that are left, and what takes a result for each of them apart again.

    Example:
        >>> left, parted = joined([{"a": jnp.ones((1, 2))}, {"b": jnp.ones((1, 2))}, {"a": jnp.ones((3, 2))}])
        >>> [stack.shape for kind in left for stack in kind.values()]
        [(4, 2), (1, 2)]
        >>> [result.tolist() for result in parted([jnp.arange(4), jnp.arange(1)])]
        [[0], [0], [1, 2, 3]]
    """
    kinds: dict[Any, list[int]] = {}
    for i, stack in enumerate(stacks):
        shapes = tuple((leaf.shape[1:], str(leaf.dtype)) for leaf in jax.tree.leaves(stack))
        kinds.setdefault((str(jax.tree.structure(stack)), shapes), []).append(i)
    sizes = [jax.tree.leaves(stack)[0].shape[0] for stack in stacks]

    def parted(results: Sequence[Any]) -> list[Any]:
        by_stack: dict[int, Any] = {}
        for kind, result in zip(kinds.values(), results, strict=True):
            by_stack |= zip(kind, cut(result, [sizes[i] for i in kind]), strict=True)
        return [by_stack[i] for i in range(len(stacks))]

    return [join([stacks[i] for i in kind]) for kind in kinds.values()], parted


def take_run(runs: Any, index: int) -> Any:
    """One run out of a group that is stacked on the leading axis, wherever it is.

    From several devices it is copied through the host. To index an array over devices would be a program on all of them
    that waits for its parts: with as few threads as cores, two such programs can wait for each other for ever.
    """
    return jax.tree.map(lambda leaf: _take(leaf, index), runs)


def _take(leaf: Any, index: int) -> Any:
    if not isinstance(leaf, jax.Array) or len(leaf.sharding.device_set) == 1:
        return leaf[index]
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_take(jax.random.key_data(leaf), index), impl=jax.random.key_impl(leaf))
    for shard in leaf.addressable_shards:
        first = shard.index[0].start or 0
        if first <= index < first + shard.data.shape[0]:
            return jnp.asarray(np.asarray(shard.data)[index - first])
    raise IndexError(f"there is no run {index} on this machine")


def sharded(one: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """Map a function of one run over a group, devices side by side."""
    split = PartitionSpec("runs")
    mapped: Callable[..., Any] = jax.shard_map(
        each_of(one), mesh=mesh, in_specs=split, out_specs=split, check_vma=False
    )
    return mapped
