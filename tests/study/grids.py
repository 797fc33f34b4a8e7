"""A tiny cell, computed once for all tests of a process."""

import dataclasses
import functools
from typing import Any

from sentinel_rl.study import Cell, Evaluation, Record, run_cell
from tests.learners import OPTIONS

PLAN: dict[str, Any] = {"learn_every": 20, "warmup": 20}
CELL = Cell(
    agent="sentinel",
    env="CartPole-v0",
    steps=120,
    seeds=(3, 5),
    options={**OPTIONS["sentinel"], **PLAN},
    evaluations=(Evaluation("frozen", 3, seed=9),),
    points=6,
)


def with_options(cell: Cell = CELL, **options: Any) -> Cell:
    return dataclasses.replace(cell, options={**cell.options, **options})


@functools.cache
def computed() -> Record:
    return run_cell(CELL)


def same_arrays(one: Record, other: Record) -> bool:
    """Whether two records have the same arrays, bit for bit."""
    return one.arrays.keys() == other.arrays.keys() and all(
        values.tobytes() == other.arrays[name].tobytes() and values.dtype == other.arrays[name].dtype
        for name, values in one.arrays.items()
    )
