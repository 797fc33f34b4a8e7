"""Programs compiled side by side and beside the training, before they are needed.

On an accelerator a program of the highway takes about a minute to compile, most of it on one core of the host. What is
compiled ahead is found again in JAX's compilation cache when it is called.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from sentinel_rl.envs.spec import Env
from sentinel_rl.runners.population import Fleet
from sentinel_rl.runners.schedule import Plan
from sentinel_rl.runners.train import cuts
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.frozen import lower_frozen
from sentinel_rl.study.looks import lower_looks

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
