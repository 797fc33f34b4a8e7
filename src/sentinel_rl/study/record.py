"""What came out of a cell."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentinel_rl.study.cell import Cell


@dataclasses.dataclass(frozen=True)
class Record:
    """The result of a cell.

    Every array but ``steps`` has the runs on its leading axis, in the order of the cell's seeds. The numbers of a run
    that has failed are NaN.

    - ``steps`` ``[P]``: step counts at which the curves are given, each for the stretch since the one before;
    - ``terminations``, ``episodes``: falls or crashes in training, and all episodes that ended in it;
    - ``terminations_curve`` ``[S, P]``: cumulative;
    - ``return_curve`` ``[S, P]``: mean undiscounted return of the episodes that ended in the stretch, NaN if none did;
    - ``train_return_mean``, ``train_discounted_mean``, ``train_discounted_tail``: over all episodes of training; the
      tail is CVaR 0.25;
    - ``metric/NAME`` ``[S, P]``: means of what updates tell (``loss``, ``clip_low``, ``clip_high``; NaN where there was
      none), and what the agent tells of its preferred action, averaged over its latest 64 observations
      (SENTINEL: ``aleatory``, ``epistemic``, ``composite``), looked at some forty times in a run and repeated between;
    - ``eval/EVALUATION/discounted``, ``reward``, ``length``, ``terminated`` ``[S, E]``: episodes of the frozen policy;
    - ``eval/EVALUATION/actions`` ``[S, A]``: shares of its decisions; on the highway also ``speed`` (bins of 1 m/s from
      0) and ``lane`` (0 is the left-most);
    - SENTINEL only: ``eval/EVALUATION/aleatory`` and ``epistemic``: mean penalties of the action taken;
      ``eval/EVALUATION/differs_additive`` and ``differs_neutral``: shares of the decisions in which the additive or the
      risk-neutral values of the same networks prefer another action; ``choices/additive`` and ``choices/neutral`` are
      those of the first evaluation.

    Args:
        cell: what was asked for.
        arrays: see above.
        about: ``seconds`` (``training``, ``evaluating`` and ``compiling`` apart, and ``wall``), ``failures`` by seed,
            ``device``, ``versions``, ``machine``, ``revision``, ``finished``.
    """

    cell: Cell
    arrays: Mapping[str, np.ndarray]
    about: Mapping[str, Any]

    @property
    def failures(self) -> Mapping[int, str]:
        """The runs that have failed, by seed, and why."""
        return {int(seed): why for seed, why in self.about.get("failures", {}).items()}


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
