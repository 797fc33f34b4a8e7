"""What agents report of themselves while they learn, asked for now and then without holding them up."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax.sharding import Mesh

from sentinel_rl.agents.learning import REPORTED_OBSERVATIONS
from sentinel_rl.replay import map_replays
from sentinel_rl.training.fused import Population
from sentinel_rl.training.population import Fleet, sharded


def report_runs(fleet: Fleet, groups: Sequence[Population]) -> list[Any]:
    """The reports of all runs, as dictionaries of arrays by group; empty where the agents report nothing.

    The numbers stay on the device, which goes on while nobody waits for them.
    """
    told = [part for group in groups for part in _report_group(fleet, group)]
    return told if any(told) else []


def lower_reports(groups: Sequence[Population], mesh: Mesh) -> list[Any]:
    """The programs of reports on an accelerator, traced but not compiled; outlines of groups are enough."""
    return [_report_all.lower(group.agents, group.runs.agent, mesh) for group in groups if _reports(group)]


def _reports(group: Population) -> bool:
    """Whether these agents report anything; to ask takes as long as to trace their reports."""
    return bool(
        jax.eval_shape(lambda agents, states: jax.vmap(_report)(agents, states), group.agents, group.runs.agent)
    )


def _report_group(fleet: Fleet, group: Population) -> list[Any]:
    states = group.runs.agent
    if fleet.devices[0].platform != "cpu":
        return [_report_all(group.agents, states, fleet.mesh)]
    # One run after the other on one core: the bits must not depend on how many cores there are, as those of a
    # program that is partitioned over them do. Only the latest transitions are moved there.
    small = _with_latest(states, fleet.mesh)
    pair = jax.device_put((group.agents, small), fleet.devices[0])
    return [_report_one(*_run(pair, i)) for i in range(group.size)]


def _report(agent: Any, state: Any) -> Any:
    return agent.report(state)


@partial(jax.jit, static_argnames="mesh")
def _report_all(agents: Any, states: Any, mesh: Mesh) -> Any:
    return sharded(_report, mesh)(agents, states)


@jax.jit
def _report_one(agent: Any, state: Any) -> Any:
    return jax.tree.map(lambda number: number[None], agent.report(state))


@jax.jit
def _run(tree: Any, number: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], tree)


@partial(jax.jit, static_argnames="mesh")
def _with_latest(states: Any, mesh: Mesh) -> Any:
    """States whose replays hold the latest transitions only: little to move."""

    def cut(state: Any) -> Any:
        return map_replays(lambda replay: replay.only_latest(REPORTED_OBSERVATIONS), state)

    return sharded(cut, mesh)(states)
