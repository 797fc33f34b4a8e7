"""Cells from their first step to their records."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.errors import Stopped
from sentinel_rl.study.batching import compile_ahead, plan_of
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.provenance import Stopwatch, provenance
from sentinel_rl.study.record import Record
from sentinel_rl.training.curves import Curves
from sentinel_rl.training.looks import Looks
from sentinel_rl.training.loop import Training, chunks_together
from sentinel_rl.training.population_evaluation import evaluate_frozen
from sentinel_rl.training.signals import Stopper

# How often a training is looked at, at least; every look interrupts an accelerator for a few milliseconds.
_LOOKS = 40

# Told the steps of each run that are done.
Report = Callable[[int], None]


def run_cell(cell: Cell, report: Report = lambda t: None, stopper: Stopper | None = None) -> Record:
    """One cell, see `run_cells`."""
    return run_cells([cell], report, stopper)[0]


def run_cells(cells: Sequence[Cell], report: Report = lambda t: None, stopper: Stopper | None = None) -> list[Record]:
    """Train all seeds of cells at once, then examine their frozen policies.

    Args:
        cells: what to compute: one, or a company (see `sentinel_rl.study.batching`).
        report: called now and then.
        stopper: looked at between two chunks of steps, and between two evaluations.

    Raises:
        Stopped: when a stop was requested; nothing is kept of the cells.
        UsageError: for options that cannot be.
        NumericalError: when every run of a cell has failed; a run that fails alone is noted in the record.
    """
    use_compilation_cache()
    watch, began = Stopwatch(), time.perf_counter()
    with watch.measure("training"):
        env = cells[0].make_env()
        agents: list[Any] = [cell.make_agent(env) for cell in cells]
        gamma, plan = float(agents[0].gamma), plan_of(cells, agents)
    between = max(1, -(-cells[0].steps // _LOOKS))
    with watch.measure("compiling"):
        begun = compile_ahead(cells, agents, env, plan, between)
    with closing(begun) as ahead:
        with watch.measure("training"):
            trainings = [
                Training([agent] * len(cell.seeds), env, plan, cell.seeds, logged=False)
                for cell, agent in zip(cells, agents, strict=True)
            ]
        with watch.measure("compiling"):
            ahead.wait("training")
            ahead.wait("looking")
        with watch.measure("training"):
            arrays = _train(cells, trainings, between, gamma, report, stopper)
        with watch.measure("compiling"):
            ahead.wait("evaluating")
        with watch.measure("evaluating"):
            for number, evaluation in enumerate(cells[0].evaluations):
                _stop_if_asked(stopper, cells)
                world = cells[0].make_env(evaluation.env_settings)
                for own, told in zip(arrays, evaluate_frozen(trainings, world, evaluation, gamma), strict=True):
                    own |= {f"eval/{evaluation.name}/{name}": values for name, values in told.items()}
                    if number == 0 and "differs_additive" in told:
                        own |= {f"choices/{name}": told[f"differs_{name}"] for name in ("additive", "neutral")}
    seconds = watch.seconds | {"wall": time.perf_counter() - began}
    company = [cell.name for cell in cells]
    records = []
    for cell, training, own in zip(cells, trainings, arrays, strict=True):
        failures = _failures(cell, training, own)
        about = {"seconds": seconds, "company": company, "failures": failures, **provenance()}
        records.append(Record(cell, _without(own, cell, failures), about))
    return records


def _train(
    cells: Sequence[Cell],
    trainings: Sequence[Training],
    between: int,
    gamma: float,
    report: Report,
    stopper: Stopper | None,
) -> list[dict[str, np.ndarray]]:
    """Train to the end, with looks at least every `between` steps; returns the arrays of every cell's record."""
    first = cells[0]
    curves = [Curves(len(cell.seeds), cell.steps, cell.points, gamma) for cell in cells]
    looks = [Looks(training.fleet, len(training.seeds)) for training in trainings]
    for together in chunks_together(trainings, between):
        for look, training, curve, progress in zip(looks, trainings, curves, together, strict=True):
            look.add(progress.t, training.groups)
            if progress.chunk is not None:
                curve.extend(progress.chunk, progress.metrics)
        t = together[0].t
        report(t)
        if t < first.steps:
            _stop_if_asked(stopper, cells)
    arrays = []
    for look, curve in zip(looks, curves, strict=True):
        times, told = look.curves()
        arrays.append(curve.arrays() | {f"metric/{name}": curve.held(times, values) for name, values in told.items()})
    return arrays


def _stop_if_asked(stopper: Stopper | None, cells: Sequence[Cell]) -> None:
    if stopper is not None and stopper.requested:
        names = ", ".join(cell.name for cell in cells)
        raise Stopped(f"stopped while {names} was under way: it is begun anew when the grid is resumed")


def _failures(cell: Cell, training: Training, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """The runs with a number that is not finite, by seed."""
    failures = {str(cell.seeds[run]): why for run, why in training.failures.items()}
    for evaluation in cell.evaluations:
        finite = np.isfinite(arrays[f"eval/{evaluation.name}/reward"]).all(axis=1)
        for run in np.flatnonzero(~finite):
            failures.setdefault(str(cell.seeds[run]), f"a return of the evaluation {evaluation.name!r} is not finite")
    return failures


def _without(arrays: dict[str, np.ndarray], cell: Cell, failures: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays, with NaN for runs that have failed."""
    failed = [run for run, seed in enumerate(cell.seeds) if str(seed) in failures]
    for name, values in arrays.items() if failed else ():
        if name != "steps":
            values[failed] = np.nan
    return arrays
