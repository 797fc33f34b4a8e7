"""Many runs at once: vmapped on an accelerator, one per core on a CPU.

A CPU core is filled by one run, so that batching gains nothing there; an accelerator is filled by hundreds. Either
way a group of runs is one compiled call, sharded over the devices, and a run's random numbers depend on its seed alone.
"""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.spec import Env
from sentinel_rl.runners.fused import RunState, StepTrace, run_chunk, start
from sentinel_rl.runners.schedule import Plan, Segments


def use_all_cores() -> None:
    """Let JAX see every CPU core as a device. It must be called before JAX is first used, and is ignored after."""
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except RuntimeError:
        return  # JAX is running already: one core it is


class Population(eqx.Module):
    """Runs of one agent family: same shapes, different seeds and numbers, stacked on the leading axis."""

    agents: Agent
    runs: RunState


def stack_agents(agents: Sequence[Agent]) -> Any:
    """Put agents that differ only in numbers (lambda, alpha, ...) on a leading axis."""
    kinds = {str(jax.tree.structure(agent)) for agent in agents}
    if len(kinds) != 1:
        raise ValueError("agents of one population may differ in numbers only, not in kind, sizes or options")
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *agents)


def seed_keys(seeds: Sequence[int]) -> jax.Array:
    """One key per seed, whatever the others are."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


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
        size = self.group_size(len(seeds))
        filled = -(-len(seeds) // size) * size
        order = [min(i, len(seeds) - 1) for i in range(filled)]
        groups = []
        for begin in range(0, filled, size):
            part = order[begin : begin + size]
            stacked = stack_agents([agents[i] for i in part])
            keys = seed_keys([seeds[i] for i in part])
            groups.append(Population(stacked, _start(stacked, keys, self.env, self.mesh)))
        return groups

    def advance(self, group: Population, parts: Segments, steps: int) -> tuple[Population, StepTrace, Metrics]:
        """Advance a group by a chunk; its old state is given up. Traces are ``[runs, steps]``."""
        times = (parts.begin, parts.end, parts.update)
        runs, trace, metrics = _advance(
            group.agents, group.runs, self.env, times, self.plan, parts.length, steps, self.mesh
        )
        return Population(group.agents, runs), trace, metrics


# Compiled at the level of the module: another fleet of the same shapes compiles nothing.
@partial(jax.jit, static_argnames="mesh")
def _start(agents: Any, keys: jax.Array, env: Env, mesh: Mesh) -> RunState:
    runs: RunState = sharded(lambda agent, key: start(agent, env, key), mesh)(agents, keys)
    return runs


@partial(jax.jit, static_argnames=("plan", "length", "steps", "mesh"), donate_argnames="runs")
def _advance(
    agents: Any, runs: RunState, env: Env, times: Any, plan: Plan, length: int | None, steps: int, mesh: Mesh
) -> tuple[RunState, StepTrace, Metrics]:
    def one(agent: Agent, run: RunState, times: Any) -> tuple[RunState, StepTrace, Metrics]:
        begin, end, update = times
        return run_chunk(agent, env, plan, run, Segments(begin, end, update, length), steps)

    advanced: tuple[RunState, StepTrace, Metrics] = sharded(one, mesh, shared=1)(agents, runs, times)
    return advanced


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


def sharded(one: Any, mesh: Mesh, shared: int = 0) -> Any:
    """Map a function of one run over a group, devices side by side; the last `shared` arguments go to all."""
    split, whole = PartitionSpec("runs"), PartitionSpec()

    def local(*args: Any) -> Any:
        own, common = args[: len(args) - shared], args[len(args) - shared :]
        if jax.tree.leaves(own)[0].shape[0] == 1:
            alone = one(*jax.tree.map(lambda leaf: leaf[0], own), *common)
            return jax.tree.map(lambda leaf: leaf[None], alone)
        return jax.vmap(lambda *each: one(*each, *common))(*own)

    def mapped(*args: Any) -> Any:
        specs = (split,) * (len(args) - shared) + (whole,) * shared
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)(*args)

    return mapped
