"""Cells that are computed in one batch: on an accelerator one compiled program trains them all.

On an accelerator a program of the highway takes about a minute to compile, most of it on one core of the host. Programs
are compiled side by side and beside the training, before they are needed; what was compiled in advance is found again
in JAX's compilation cache when it is called.
"""

import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from sentinel_rl.agents.agent import Agent, FixedPolicy
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import SentinelError, SentinelWarning
from sentinel_rl.study.cell import Cell
from sentinel_rl.training.compiled import cuts
from sentinel_rl.training.population import Fleet
from sentinel_rl.training.population_evaluation import lower_evaluation
from sentinel_rl.training.reports import lower_reports
from sentinel_rl.training.schedule import Plan

_WORKERS = 8


def batches(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Put cells together that share an environment, a plan and evaluations.

    On a CPU a run fills a core, and every cell stays alone. So does a cell whose options cannot be: it will fail for
    itself.

    Example:
        >>> cells = [Cell("random", "CartPole-v0", 10, (0,)), Cell("random", "CartPole-v0", 10, (1,))]
        >>> [len(batch) for batch in batches(cells)] == ([1, 1] if jax.default_backend() == "cpu" else [2])
        True
    """
    if jax.default_backend() == "cpu":
        return [[cell] for cell in cells]
    return grouped(cells)


def grouped(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The batches of cells, whatever the device."""
    found: dict[Any, list[Cell]] = {}
    plans: dict[Any, Plan] = {}
    made = [(cell, _made(cell)) for cell in cells]
    # Those that learn first: they set the plan for those that do not.
    for cell, agent_and_env in sorted(made, key=lambda pair: pair[1] is not None and _is_idle(pair[1][0])):
        if agent_and_env is None:
            found[cell.id] = [cell]
            continue
        agent, env = agent_and_env
        world, plan = (env, cell.steps, cell.points, str(cell.evaluations)), cell.make_plan(agent)
        if _is_idle(agent):
            plan = plans.get(world, plan)
        plans.setdefault(world, plan)
        found.setdefault((world, plan), []).append(cell)
    return list(found.values())


def _made(cell: Cell) -> tuple[Agent, Env] | None:
    """The agent and environment of a cell, None where they cannot be made."""
    try:
        env = cell.make_env()
        agent = cell.make_agent(env)
        cell.make_plan(agent)
    except SentinelError:
        return None
    return agent, env


def _is_idle(agent: Any) -> bool:
    """Whether an agent learns nothing: whatever the plan, it does the same."""
    return isinstance(agent, FixedPolicy)


def plan_of(cells: Sequence[Cell], agents: Sequence[Agent]) -> Plan:
    """The plan of a batch: that of its cells which learn, if there are any."""
    learning = [pair for pair in zip(cells, agents, strict=True) if not _is_idle(pair[1])]
    cell, agent = learning[0] if learning else (cells[0], agents[0])
    plan = cell.make_plan(agent)
    if plan.updates(plan.steps) == 0 and learning:
        message = f"{cell.name}: 0 updates are made in {cell.steps} steps with a warm-up of {plan.warmup}"
        warnings.warn(message, SentinelWarning, stacklevel=3)
    return plan


class Precompiler:
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
        """Begin nothing more; what is being compiled ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def precompile(cells: Sequence[Cell], agents: Sequence[Agent], env: Env, plan: Plan, target: int) -> Precompiler:
    """Begin to compile what the training of a batch, its reports and its evaluations will call.

    Nothing is done on a CPU, which has better things to do, and without a cache, where all would be compiled twice.
    """
    compiler, fleet = Precompiler(), Fleet(env, plan)
    if not _worthwhile(fleet):
        return compiler
    outlines = [fleet.outline([agent] * len(cell.seeds), cell.seeds) for cell, agent in zip(cells, agents, strict=True)]
    groups = [group for outline in outlines for group in outline]
    compiler.begin("training", fleet.lower(groups, *next(cuts(fleet, target=target))))
    trained = [(outline, cell.seeds) for outline, cell in zip(outlines, cells, strict=True)]
    kinds: set[Any] = set()
    for evaluation in cells[0].evaluations:
        world = cells[0].make_env(evaluation.env_settings)
        kind = str(jax.tree.structure(world)), evaluation.episodes
        if kind in kinds:  # other numbers, the same program: to trace it again would take seconds
            continue
        kinds.add(kind)
        compiler.begin("evaluating", lower_evaluation(fleet, trained, world, evaluation, env.spec.gamma))
    compiler.begin("reporting", lower_reports(groups, fleet.mesh))
    return compiler


def _worthwhile(fleet: Fleet) -> bool:
    return fleet.devices[0].platform != "cpu" and jax.config.values["jax_compilation_cache_dir"] is not None
