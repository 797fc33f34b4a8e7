"""Cells that are computed in each other's company: on an accelerator one compiled program trains them all."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax

from sentinel_rl.errors import SentinelError, SentinelWarning
from sentinel_rl.runners.schedule import Plan
from sentinel_rl.study.cell import Cell

# An agent that learns nothing: whatever the plan, it does the same.
IDLE = "random"


def companies(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Put cells together that share an environment, a plan, evaluations and a discount.

    On a CPU a run fills a core, and every cell stays alone. So does a cell whose options cannot be: it will fail for
    itself.

    Example:
        >>> cells = [Cell("random", "CartPole-v0", 10, (0,)), Cell("random", "CartPole-v0", 10, (1,))]
        >>> [len(company) for company in companies(cells)] == ([1, 1] if jax.default_backend() == "cpu" else [2])
        True
    """
    if jax.default_backend() == "cpu":
        return [[cell] for cell in cells]
    return grouped(cells)


def grouped(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The companies of cells, whatever the device."""
    found: dict[Any, list[Cell]] = {}
    plans: dict[Any, Plan] = {}
    # Those that learn first: they set the plan for those that do not.
    for cell in sorted(cells, key=lambda cell: cell.agent == IDLE):
        try:
            env = cell.make_env()
            agent: Any = cell.make_agent(env)
            world = env, cell.steps, cell.points, str(cell.evaluations), float(agent.gamma)
            plan = cell.make_plan(agent)
        except SentinelError:
            found[cell.id] = [cell]
            continue
        if cell.agent == IDLE:
            plan = plans.get(world, plan)
        plans.setdefault(world, plan)
        found.setdefault((world, plan), []).append(cell)
    return list(found.values())


def plan_of(cells: Sequence[Cell], agents: Sequence[Any]) -> Plan:
    """The course of a company: that of its cells which learn, if there are any."""
    learning = [pair for pair in zip(cells, agents, strict=True) if pair[0].agent != IDLE]
    cell, agent = learning[0] if learning else (cells[0], agents[0])
    plan = cell.make_plan(agent)
    if plan.learn_times.size == 0 and learning:
        message = f"{cell.name}: 0 updates are made in {cell.steps} steps with a warm-up of {plan.warmup}"
        warnings.warn(message, SentinelWarning, stacklevel=3)
    return plan
