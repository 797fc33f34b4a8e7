"""Many runs at once: vmapped on an accelerator, one per core on a CPU.

A CPU core is filled by one run, so that batching gains nothing there; an accelerator is filled by hundreds. Either
way a group of runs is one compiled call, sharded over the devices, and a run's random numbers depend on its seed alone.
"""

import os
from collections.abc import Sequence
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
    """Compiled functions that advance groups of runs of one plan on the devices at hand."""

    def __init__(self, env: Env, plan: Plan, devices: Sequence[jax.Device] | None = None):
        self.env, self.plan = env, plan
        self.devices = list(devices or jax.local_devices())
        self._mesh = Mesh(np.asarray(self.devices), ("runs",))
        self._start = jax.jit(self._sharded(lambda agent, key: start(agent, env, key)))
        self._advance = jax.jit(self._chunk, static_argnames=("length", "steps"), donate_argnums=1)

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
            groups.append(Population(stacked, self._start(stacked, seed_keys([seeds[i] for i in part]))))
        return groups

    def advance(self, group: Population, parts: Segments, steps: int) -> tuple[Population, StepTrace, Metrics]:
        """Advance a group by a chunk; its old state is given up. Traces are ``[runs, steps]``."""
        runs, trace, metrics = self._advance(
            group.agents, group.runs, parts.begin, parts.end, parts.update, length=parts.length, steps=steps
        )
        return Population(group.agents, runs), trace, metrics

    def _chunk(
        self, agents: Any, runs: RunState, begin: Any, end: Any, update: Any, length: int | None, steps: int
    ) -> tuple[RunState, StepTrace, Metrics]:
        def one(agent: Agent, run: RunState, begin: Any, end: Any, update: Any) -> tuple[RunState, StepTrace, Metrics]:
            return run_chunk(agent, self.env, self.plan, run, Segments(begin, end, update, length), steps)

        advanced: tuple[RunState, StepTrace, Metrics] = self._sharded(one, shared=3)(agents, runs, begin, end, update)
        return advanced

    def _sharded(self, one: Any, shared: int = 0) -> Any:
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
            return jax.shard_map(local, mesh=self._mesh, in_specs=specs, out_specs=split, check_vma=False)(*args)

        return mapped
