"""Cells that are computed in each other's company: on an accelerator one compiled program trains them all."""

import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import SentinelError, SentinelWarning
from sentinel_rl.study.cell import Cell
from sentinel_rl.training.looks import lower_looks
from sentinel_rl.training.loop import cuts
from sentinel_rl.training.population import Fleet
from sentinel_rl.training.population_evaluation import lower_frozen
from sentinel_rl.training.schedule import Plan

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


_WORKERS = 8


class Ahead:
    """Compiles in threads of its own: XLA lets Python go on meanwhile."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="compile")
        self._begun: dict[str, dict[str, Future[Any]]] = {}

    def begin(self, purpose: str, programs: Iterable[Any]) -> None:
        """Compile lowered programs, each once."""
        begun = self._begun.setdefault(purpose, {})
        for program in programs:
            if (text := program.as_text()) not in begun:
                begun[text] = self._pool.submit(program.compile)

    def wait(self, purpose: str) -> None:
        """Wait for the programs of a purpose, if there are any: calling them now would compile them twice."""
        for program in self._begun.get(purpose, {}).values():
            program.result()

    def close(self) -> None:
        """Begin nothing more; what is under way ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def compile_ahead(cells: Sequence[Cell], agents: Sequence[Any], env: Env, plan: Plan, target: int) -> Ahead:
    """Begin to compile what the training of a company, its looks and its evaluations will call.

    Nothing is done on a CPU, which has better things to do, and without a cache, where all would be compiled twice.
    """
    ahead, fleet = Ahead(), Fleet(env, plan)
    if not _worthwhile(fleet):
        return ahead
    outlines = [fleet.outline([agent] * len(cell.seeds), cell.seeds) for cell, agent in zip(cells, agents, strict=True)]
    groups = [group for outline in outlines for group in outline]
    ahead.begin("training", fleet.lower(groups, *next(cuts(fleet, target=target))))
    trained = [(outline, cell.seeds) for outline, cell in zip(outlines, cells, strict=True)]
    for evaluation in cells[0].evaluations:
        world = cells[0].make_env(evaluation.env_settings)
        ahead.begin("evaluating", lower_frozen(fleet, trained, world, evaluation, float(agents[0].gamma)))
    ahead.begin("looking", lower_looks(groups, fleet.mesh))
    return ahead


def _worthwhile(fleet: Fleet) -> bool:
    return fleet.devices[0].platform != "cpu" and jax.config.values["jax_compilation_cache_dir"] is not None
