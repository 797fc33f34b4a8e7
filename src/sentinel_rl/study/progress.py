"""How far a grid is, and how long it will take."""

import dataclasses
import time
from collections.abc import Callable, Sequence

from sentinel_rl.study.cell import Cell


@dataclasses.dataclass(frozen=True)
class GridProgress:
    """Where a grid stands.

    Args:
        finished: cells with a result, those of earlier sessions included.
        cells: in all.
        cell: the one that was last heard of.
        t: its steps so far.
        seconds_left: from the pace of this session; None before there is one.
        batch: cells that are computed with it in one call, itself included.
    """

    finished: int
    cells: int
    cell: Cell
    t: int
    seconds_left: float | None
    batch: int = 1

    def __str__(self) -> str:
        """One line for people.

        >>> print(GridProgress(2, 7, Cell("random", "CartPole-v0", 1_000, (0,), label="random"), 400, 75.0))
        cell 3 of 7 (random): step 400 of 1,000, 1 min 15 s left
        """
        left = "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"
        number = min(self.finished + 1, self.cells)
        if self.batch > 1:
            others = f"{self.cell.name} and {self.batch - 1} more at once"
            which = f"{self.finished} of {self.cells} cells done ({others})"
        else:
            which = f"cell {number} of {self.cells} ({self.cell.name})"
        return f"{which}: step {self.t:,} of {self.cell.steps:,}{left}"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> [duration(seconds) for seconds in (12.3, 75, 7_260)]
    ['12 s', '1 min 15 s', '2 h 1 min']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3_600 else f"{whole // 3_600} h {whole % 3_600 // 60} min"


Report = Callable[[GridProgress], None]


class Meter:
    """Tells the progress of a grid, from what its engine tells of its cells.

    Args:
        cells: the whole grid.
        missing: what is still to do.
        report: is told.
    """

    def __init__(self, cells: Sequence[Cell], missing: Sequence[Cell], report: Report):
        self._cells, self._report = len(cells), report
        self._finished = len(cells) - len(missing)
        self._left, self._done = float(sum(map(work, missing))), 0.0
        self._origin: tuple[float, float] | None = None  # when something was first told, and the work done then

    def step(self, batch: Sequence[Cell], t: int) -> None:
        """Cells that are computed at once have done `t` steps of each of their runs."""
        self._tell(batch, t, t * sum(len(cell.seeds) for cell in batch))

    def finish(self, batch: Sequence[Cell]) -> None:
        """Cells that were computed at once have ended, with a result or without."""
        self._finished += len(batch)
        self._done += sum(map(work, batch))
        self._tell(batch, batch[0].steps, 0)

    def _tell(self, batch: Sequence[Cell], t: int, running: float) -> None:
        now, done = time.perf_counter(), self._done + running
        if self._origin is None:  # what came before is compiling, which says nothing about the pace
            self._origin = now, done
        began, before = self._origin
        left = None if done <= before else max(self._left - done, 0.0) * (now - began) / (done - before)
        self._report(GridProgress(self._finished, self._cells, batch[0], t, left, len(batch)))


def work(cell: Cell) -> int:
    """What a cell costs, in steps: evaluations are cheap beside training."""
    return cell.steps * len(cell.seeds)
