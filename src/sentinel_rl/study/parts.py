"""A cell in parts of fewer seeds, and the parts as one again."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentinel_rl.study.cell import Cell
from sentinel_rl.study.record import Record


def split(cell: Cell, size: int) -> list[Cell]:
    """Cells of at most `size` seeds each.

    On a CPU a run does not depend on its neighbours, and the parts joined are the whole, bit for bit.

    Example:
        >>> [part.seeds for part in split(Cell("random", "CartPole-v0", 10, (4, 5, 6)), 2)]
        [(4, 5), (6,)]
    """
    seeds = [cell.seeds[begin : begin + size] for begin in range(0, len(cell.seeds), size)]
    return [dataclasses.replace(cell, seeds=part) for part in seeds]


def join(cell: Cell, parts: Sequence[Cell], records: Mapping[str, Record], failed: Mapping[str, str]) -> Record:
    """The record of a cell from those of its parts.

    Args:
        cell: the whole.
        parts: of it, in the order of its seeds.
        records: by the ids of the parts, at least one.
        failed: why all runs of a part have failed, for the others; their numbers are NaN.
    """
    model = next(iter(records.values()))
    rows = {name: [_rows(name, part, records, model) for part in parts] for name in model.arrays}
    arrays = {name: values[0] if name == "steps" else np.concatenate(values) for name, values in rows.items()}
    failures = {str(seed): why for part in parts if (why := failed.get(part.id)) for seed in part.seeds}
    for record in records.values():
        failures |= record.about["failures"]
    seconds: dict[str, float] = {}
    for record in records.values():
        for phase, time in record.about["seconds"].items():
            seconds[phase] = seconds.get(phase, 0.0) + time
    about: dict[str, Any] = {**model.about, "seconds": seconds, "failures": failures, "parts": len(parts)}
    about["finished"] = max(record.about["finished"] for record in records.values())
    return Record(cell, arrays, about)


def _rows(name: str, part: Cell, records: Mapping[str, Record], model: Record) -> np.ndarray:
    if part.id in records:
        return records[part.id].arrays[name]
    like = model.arrays[name]
    return np.full((len(part.seeds), *like.shape[1:]), np.nan, like.dtype) if name != "steps" else like
