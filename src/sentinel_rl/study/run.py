"""Cells from their first step to their records."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import Stopped
from sentinel_rl.study.batching import plan_of, precompile
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.provenance import Stopwatch, provenance
from sentinel_rl.study.record import Record
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.population_evaluation import Evaluation, evaluate_population
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.session import Reporter, Session
from sentinel_rl.training.signals import Stopper
from sentinel_rl.training.sinks import Logger

# How often a training returns to the host, at least; each time interrupts an accelerator for a few milliseconds.
_RETURNS = 40
# Seconds between two checkpoints of a cell: so much is lost at most when a process is killed.
SAVE_SECONDS = 60.0

# Told the steps of each run that are done.
Report = Callable[[int], None]
# What is asked of trained agents beside their evaluations: further arrays for every cell, runs on their leading axis.
Examine = Callable[[Sequence[Cell], Sequence[Training]], Sequence[Mapping[str, np.ndarray]]]


def run_cell(
    cell: Cell,
    report: Report = lambda t: None,
    stopper: Stopper | None = None,
    checkpoints: Path | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Record:
    """Compute one cell on all cores, see `run_cells`."""
    return run_cells([cell], report, stopper, checkpoints, save_seconds)[0]


def run_cells(
    cells: Sequence[Cell],
    report: Report = lambda t: None,
    stopper: Stopper | None = None,
    checkpoints: Path | None = None,
    save_seconds: float = SAVE_SECONDS,
    examine: Examine | None = None,
) -> list[Record]:
    """Train all seeds of cells at once, then evaluate their frozen policies.

    Args:
        cells: what to compute: one, or a batch (see `sentinel_rl.study.batching`).
        report: called now and then.
        stopper: looked at between two chunks of steps, and between two evaluations.
        checkpoints: folder in which every cell has one for its checkpoints; training goes on from there.
        save_seconds: between two checkpoints.
        examine: is given the cells and their trainings at the end; the arrays of numbers that it returns for every cell
            are added to its record. The ids of cells do not know it: its records need a store of their own.

    Raises:
        Stopped: when a stop was requested; with a folder for checkpoints the cells go on where they were.
        UsageError: for options that cannot be.
        NumericalError: when every run of a cell has failed; a run that fails alone is noted in the record.
    """
    use_all_cores()
    use_compilation_cache()
    watch, began = Stopwatch(), time.perf_counter()
    with watch.measure("training"):
        env = cells[0].make_env()
        agents = [cell.make_agent(env) for cell in cells]
        plan = plan_of(cells, agents)
        agents = [agent.planned(plan.planned_updates) for agent in agents]
    target = max(1, -(-cells[0].steps // _RETURNS))
    with watch.measure("compiling"):
        begun = precompile(cells, agents, env, plan, target)
    with closing(begun) as compiler:
        with watch.measure("training"):
            trainings = [
                Training([agent] * len(cell.seeds), env, plan, cell.seeds, cell.points)
                for cell, agent in zip(cells, agents, strict=True)
            ]
            session = _session(cells, trainings, report, stopper, checkpoints, save_seconds, target)
        with watch.measure("compiling"):
            compiler.wait("training")
            compiler.wait("reporting")
        with watch.measure("training"):
            session.run()
            arrays = [_training_arrays(training) for training in trainings]
        with watch.measure("compiling"):
            compiler.wait("evaluating")
        with watch.measure("evaluating"):
            for number, evaluation in enumerate(cells[0].evaluations):
                if stopper is not None and stopper.requested:
                    session.save_before_stop()
                    raise Stopped(f"stopped before the evaluation {evaluation.name!r} of {cells[0].name}")
                world = cells[0].make_env(evaluation.env_settings)
                played = evaluate_population(
                    trainings, world, evaluation, env.spec.gamma, *_acting(cells, evaluation, env, plan)
                )
                for own, told in zip(arrays, played, strict=True):
                    kept = told if evaluation.keeps is None else {name: told[name] for name in evaluation.keeps}
                    own |= {f"eval/{evaluation.name}/{name}": _as_floats(values) for name, values in kept.items()}
                    if number == 0 and "differs_additive" in told:
                        own |= {f"choices/{name}": told[f"differs_{name}"] for name in ("additive", "neutral")}
        if examine is not None:
            with watch.measure("examining"):
                for own, found in zip(arrays, examine(cells, trainings), strict=True):
                    own |= {name: _as_floats(np.asarray(values)) for name, values in found.items()}
    seconds = watch.seconds | {"wall": time.perf_counter() - began}
    batch = [cell.name for cell in cells]
    records = []
    for cell, training, own in zip(cells, trainings, arrays, strict=True):
        failures = _failures(cell, training, own)
        about = {"seconds": seconds, "batch": batch, "failures": failures, **provenance()}
        records.append(Record(cell, _without(own, cell, failures), about))
    return records


def _acting(cells: Sequence[Cell], evaluation: Evaluation, env: Env, plan: Plan) -> tuple[list[Agent], ...]:
    """The agents whose numbers policies act with, where they are not those of the training."""
    if not evaluation.acting:
        return ()
    return ([cell.make_agent(env, evaluation.acting).planned(plan.planned_updates) for cell in cells],)


def _session(
    cells: Sequence[Cell],
    trainings: Sequence[Training],
    report: Report,
    stopper: Stopper | None,
    checkpoints: Path | None,
    save_seconds: float,
    target: int,
) -> Session:
    keepers = []
    if checkpoints is not None:
        places = zip(cells, trainings, strict=True)
        keepers = [Keeper(each, checkpoints / cell.id, None, seconds=save_seconds) for cell, each in places]
    return Session(
        trainings,
        stopper=stopper,
        keepers=keepers,
        reporters=[Reporter([Logger([], seed) for seed in training.seeds]) for training in trainings],
        callbacks=[lambda progress: report(progress.t)],
        target=target,
    )


def _training_arrays(training: Training) -> dict[str, np.ndarray]:
    """The arrays of a record that training makes."""
    curves, totals = training.history.curves(), training.history.totals()
    return {
        "steps": curves.pop("steps"),
        "terminations": totals["terminations"],
        "episodes": totals["episodes"],
        "terminations_curve": curves.pop("terminations"),
        "return_curve": curves.pop("return"),
        "train_return_mean": totals["return"],
        "train_discounted_mean": totals["discounted"],
        "train_discounted_tail": totals["tail"],
        **{f"metric/{name}": values for name, values in curves.items()},
    }


def _failures(cell: Cell, training: Training, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """The runs with a number that is not finite, by seed."""
    failures = {str(cell.seeds[run]): why for run, why in training.failures.items()}
    for evaluation in cell.evaluations:
        finite = np.isfinite(arrays[f"eval/{evaluation.name}/reward"]).all(axis=1)
        for run in np.flatnonzero(~finite):
            failures.setdefault(str(cell.seeds[run]), f"a return of the evaluation {evaluation.name!r} is not finite")
    return failures


def _as_floats(values: np.ndarray) -> np.ndarray:
    """Numbers that can be NaN, where a run has failed; counts and truth values in 4 bytes."""
    return values if values.dtype.kind == "f" else np.asarray(values, np.float32)


def _without(arrays: dict[str, np.ndarray], cell: Cell, failures: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays, with NaN for runs that have failed."""
    failed = [run for run, seed in enumerate(cell.seeds) if str(seed) in failures]
    for name, values in arrays.items() if failed else ():
        if name != "steps":
            values[failed] = np.nan
    return arrays
