"""Experiments that train agents: from the rows of a table to a grid of cells, and to their records."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from sentinel_paper.settings import DEFAULT_PRESET, Options, Task, options_for, require_preset
from sentinel_rl.agents.registry import agent_kind
from sentinel_rl.errors import SentinelError, UsageError
from sentinel_rl.study import Cell, Evaluation, GridProgress, Record, Store, run_grid
from sentinel_rl.training.metrics import tail_mean

GridReport = Callable[[GridProgress], None]
# Options are chosen on the seeds before it, results are reported on those from it on.
FIRST_SEED = 1_000
FROZEN = "frozen"
# A policy that plans gets one of so many episodes of an evaluation: its runs differ only in the episodes they see.
PLANNED_ONE_IN = 10
# What makes any of them tiny: it shows that all parts work, not what the agents can do.
QUICK: Mapping[str, Any] = {"runs": 2, "steps": 400, "episodes": 20, "points": 20}
QUICK_OPTIONS: Options = {"samples": 64, "capacity": 1_000, "hidden": (16, 16)}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The size of an experiment.

    Args:
        runs: of every agent, all with the same seeds.
        steps: of a run.
        preset: which options the agents learn with, see `sentinel_paper.settings`.
        seed: of the first run; the others count on.
        episodes: in which a frozen policy is evaluated.
        points: of the curves.
        quick: small networks and batches.
    """

    runs: int = 20
    steps: int = 100_000
    preset: str = DEFAULT_PRESET
    seed: int = FIRST_SEED
    episodes: int = 1_000
    points: int = 200
    quick: bool = False

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise UsageError(f"runs = {self.runs} is not allowed: give at least 2, so that runs can be compared")
        require_preset(self.preset)

    def made_quick(self) -> Self:
        """The same experiment, tiny."""
        return dataclasses.replace(self, **QUICK, quick=True)

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per run."""
        return tuple(range(self.seed, self.seed + self.runs))


@dataclasses.dataclass(frozen=True)
class Contender:
    """A row of a table, a curve of a figure.

    Args:
        label: what it is called.
        agent: its name in the library.
        options: its own, beside those of the task and the preset.
        printed: the paper's numbers by metric, each a mean and a standard error.
        only_evaluated: a policy that learns nothing and takes long to decide is not run for all steps of a training:
            what it would do there is taken from its evaluations, which have a tenth of the episodes.
    """

    label: str
    agent: str
    options: Options = dataclasses.field(default_factory=dict)
    printed: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    only_evaluated: bool = False


@dataclasses.dataclass(frozen=True)
class Execution:
    """Where and how cells are computed: the folder of the records, and the engine of the grid."""

    store: Path
    engine: str = "local"
    address: str | None = None
    shard: tuple[int, int] | None = None


class Unfinished(SentinelError):  # noqa: N818 (nothing went wrong)
    """The cells of this shard are done, those of others are not: there is nothing to show yet."""

    exit_code = 0


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of an experiment by the labels of its contenders."""

    settings: Settings
    task: Task
    found: Mapping[str, Record]

    def first(self, runs: int) -> "Records":
        """The same with the first runs only."""
        size = len(self.settings.seeds)
        found = {
            label: dataclasses.replace(
                record,
                arrays={
                    name: array[:runs] if name != "steps" and len(array) == size else array
                    for name, array in record.arrays.items()
                },
            )
            for label, record in self.found.items()
        }
        return Records(dataclasses.replace(self.settings, runs=min(runs, size)), self.task, found)


def cell(
    task: Task,
    contender: Contender,
    settings: Settings,
    evaluations: Sequence[Evaluation] = (),
    seeds: Sequence[int] | None = None,
) -> Cell:
    """The cell of a contender; `evaluations` come after that of the frozen policy in the task itself."""
    options = options_for(task, contender.agent, settings.preset, contender.options)
    if settings.quick:
        known = agent_kind(contender.agent).options
        options |= {name: value for name, value in QUICK_OPTIONS.items() if name in known}
    played = [Evaluation(FROZEN, settings.episodes), *evaluations]
    if contender.only_evaluated:
        played = [dataclasses.replace(one, episodes=max(1, one.episodes // PLANNED_ONE_IN)) for one in played]
    return Cell(
        agent=contender.agent,
        env=task.env,
        steps=1 if contender.only_evaluated else settings.steps,
        seeds=settings.seeds if seeds is None else tuple(seeds),
        options=options,
        env_settings=task.quick if settings.quick else {},
        evaluations=tuple(played),
        points=1 if contender.only_evaluated else settings.points,
        label=contender.label,
    )


def run(
    task: Task,
    contenders: Sequence[Contender],
    settings: Settings,
    report: GridReport,
    execution: Execution,
    evaluations: Sequence[Evaluation] = (),
    seeds: Sequence[int] | None = None,
    apart: bool = False,
) -> Records:
    """Compute the cells that are missing, and return the records of all.

    Args:
        task: environment and constants.
        contenders: one cell each.
        settings: sizes and preset.
        report: is called with the progress.
        execution: engine and store.
        evaluations: of the frozen policies, besides that in the task itself.
        seeds: those of the settings if None.
        apart: train every contender by itself, to measure its seconds.

    Raises:
        Unfinished: when another shard still has cells to compute.
    """
    wanted = [cell(task, contender, settings, evaluations, seeds) for contender in contenders]
    store = Store(execution.store)
    run_grid(wanted, store, execution.engine, execution.address, execution.shard, report, apart)
    found = {one.label: store.get(one) for one in wanted}
    for contender in contenders:
        if contender.only_evaluated and (record := found[contender.label]) is not None:
            found[contender.label] = as_if_trained(record, settings)
    done = {label: record for label, record in found.items() if record is not None}
    if len(done) < len(found):
        raise Unfinished(f"{len(done)} of {len(found)} cells are done: run it without --shard when all shards are")
    return Records(settings, task, done)


def as_if_trained(record: Record, settings: Settings) -> Record:
    """The record of a policy that was only evaluated, with the numbers that a training of it would have.

    A policy that learns nothing drives in training as in its evaluation: episodes end there at the same rate per step,
    and have the same returns.
    """
    ends, lengths, returns = (
        np.asarray(record.arrays[f"eval/{FROZEN}/{part}"], np.float64)
        for part in ("terminated", "length", "discounted")
    )
    steps = np.linspace(0, settings.steps, settings.points + 1).round()[1:]
    rate = ends.sum(axis=1) / lengths.sum(axis=1)
    kept = {name: array for name, array in record.arrays.items() if name.startswith("eval/")}
    of_training = {
        "steps": steps.astype(int),
        "terminations": rate * settings.steps,
        "terminations_curve": rate[:, None] * steps,
        "train_discounted_mean": returns.mean(axis=1),
        "train_discounted_tail": tail_mean(returns, 0.25),
    }
    return dataclasses.replace(record, arrays={**of_training, **kept})
