"""One cell from its first step to its record."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.errors import SentinelWarning, Stopped
from sentinel_rl.runners.signals import Stopper
from sentinel_rl.runners.train import Training
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.curves import Curves
from sentinel_rl.study.frozen import evaluate_frozen
from sentinel_rl.study.looks import Looks
from sentinel_rl.study.provenance import provenance
from sentinel_rl.study.record import Record
from sentinel_rl.study.stopwatch import Stopwatch

# How often a training is looked at, at least; every look interrupts an accelerator for a few milliseconds.
_LOOKS = 40

# Told the steps of each run that are done.
Report = Callable[[int], None]


def run_cell(cell: Cell, report: Report = lambda t: None, stopper: Stopper | None = None) -> Record:
    """Train all seeds of a cell at once, then examine their frozen policies.

    Args:
        cell: what to compute.
        report: called now and then.
        stopper: looked at between two chunks of steps, and between two evaluations.

    Raises:
        Stopped: when a stop was requested; nothing is kept of the cell.
        UsageError: for options that cannot be.
        NumericalError: when every run has failed; a run that fails alone is noted in the record.
    """
    use_compilation_cache()
    watch, began = Stopwatch(), time.perf_counter()
    with watch.measure("training"):
        env = cell.make_env()
        agent: Any = cell.make_agent(env)
        plan = cell.make_plan(agent)
        if plan.learn_times.size == 0 and cell.agent != "random":
            message = f"{cell.name}: 0 updates are made in {cell.steps} steps with a warm-up of {plan.warmup}"
            warnings.warn(message, SentinelWarning, stacklevel=2)
        training = Training([agent] * len(cell.seeds), env, plan, cell.seeds, logged=False)
        arrays = _train(cell, training, float(agent.gamma), report, stopper)
    with watch.measure("evaluating"):
        for number, evaluation in enumerate(cell.evaluations):
            _stop_if_asked(stopper, cell)
            world = cell.make_env(evaluation.env_settings)
            told = evaluate_frozen(training.fleet, training.groups, cell.seeds, world, evaluation, float(agent.gamma))
            arrays |= {f"eval/{evaluation.name}/{name}": values for name, values in told.items()}
            if number == 0 and "differs_additive" in told:
                arrays |= {f"choices/{name}": told[f"differs_{name}"] for name in ("additive", "neutral")}
    failures = _failures(cell, training, arrays)
    seconds = watch.seconds | {"wall": time.perf_counter() - began}
    about = {"seconds": seconds, "failures": failures, **provenance()}
    return Record(cell, _without(arrays, cell, failures), about)


def _train(
    cell: Cell, training: Training, gamma: float, report: Report, stopper: Stopper | None
) -> dict[str, np.ndarray]:
    curves = Curves(len(cell.seeds), cell.steps, cell.points, gamma)
    looks = Looks(training.fleet, len(cell.seeds))
    for progress in training.chunks(max(1, -(-cell.steps // _LOOKS))):
        looks.add(progress.t, training.groups)
        if progress.chunk is not None:
            curves.extend(progress.chunk, progress.metrics)
        report(progress.t)
        if progress.t < cell.steps:
            _stop_if_asked(stopper, cell)
    times, told = looks.curves()
    return curves.arrays() | {f"metric/{name}": curves.held(times, values) for name, values in told.items()}


def _stop_if_asked(stopper: Stopper | None, cell: Cell) -> None:
    if stopper is not None and stopper.requested:
        raise Stopped(f"stopped while {cell.name} was under way: it is begun anew when the grid is resumed")


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
