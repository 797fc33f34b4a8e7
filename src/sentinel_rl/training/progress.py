"""How training goes, on standard error: a bar in a terminal, a line now and then where it is redirected."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from sentinel_rl.training.compiled import Progress

_COMPILING = "compiling (once; cached for the next time)"
# Seconds without a report after which that is said where nothing else is shown.
_PATIENCE = 3.0
# Widths of the bar, in a terminal of less than 100 columns and in a wider one.
_NARROW, _WIDE = 10, 20
# Lines where there is no terminal: at every tenth of the steps, but not more often than in so many seconds.
_TENTHS, _SECONDS = 10, 3.0
# Reports that the speed is taken from.
_WINDOW = 20
_SEPARATOR = " · "

Show = Callable[[Progress], None]


@contextmanager
def progress_bar(
    steps: int,
    runs: int = 1,
    shown: bool | None = True,
    console: Console | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Show]:
    """Yield a function that takes the progress of a training and shows it, on standard error.

    Args:
        steps: of every run.
        runs: how many, side by side or one after the other.
        shown: whether anything is shown; None is one line in a terminal when compiling takes longer than some seconds.
        console: to print on, in place of standard error.
        clock: gives the time in seconds.
    """
    console = Console(stderr=True, highlight=False) if console is None else console
    if not shown:
        patient = threading.Timer(_PATIENCE, lambda: console.print(f"sentinel-rl: {_COMPILING}", markup=False))
        patient.daemon = True
        if shown is None and (console.is_terminal or console.is_jupyter):
            patient.start()
        try:
            yield lambda progress: patient.cancel()
        finally:
            patient.cancel()
        return
    pace = Pace(steps * runs, clock)
    if console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        size = _NARROW if console.width < 100 else _WIDE
        with _bar(console, size) as bar:
            yield _in_a_bar(bar, size, pace)
    else:
        console.print(f"training: {_COMPILING}", soft_wrap=True, markup=False)
        yield _in_lines(console, pace, clock)


class Pace:
    """How fast steps are made and how long the rest will take, by its own clock.

    The speed is that of the latest reports. Steps that a resumed run had made before count as done, but not as made,
    and the first chunk counts only until there is a second one: most of its time is compiling.

    Args:
        total: steps of all runs together.
        clock: gives the time in seconds.
    """

    def __init__(self, total: int, clock: Callable[[], float]):
        self.total, self._clock = total, clock
        self._before: dict[tuple[int, ...], int] = {}
        self._reached: dict[tuple[int, ...], int] = {}
        # Steps made and the time, at the beginning and at the latest reports.
        self._marks, self._chunks = deque([(0, clock())], maxlen=_WINDOW), 0

    def report(self, progress: Progress) -> None:
        """Take in how far the runs of these seeds are."""
        seeds = tuple(progress.seeds)
        resumed = seeds not in self._before and not progress.metrics  # told before its first step
        self._before.setdefault(seeds, progress.t if resumed else 0)
        self._reached[seeds] = progress.t
        made = self.done - sum(before * len(own) for own, before in self._before.items())
        if made == 0:
            self._marks.clear()
        self._marks.append((made, self._clock()))
        self._chunks += made > 0
        if self._chunks == 2:
            self._marks.popleft()

    @property
    def done(self) -> int:
        """Steps of all runs together."""
        return sum(t * len(seeds) for seeds, t in self._reached.items())

    @property
    def share(self) -> float:
        """The share of all steps that is done."""
        return self.done / self.total

    @property
    def speed(self) -> float | None:
        """Steps a second of all runs together; None before the first one."""
        (before, since), (made, now) = self._marks[0], self._marks[-1]
        steps, seconds = made - before, now - since
        return steps / seconds if steps > 0 and seconds > 0 else None

    @property
    def left(self) -> str:
        """The time that the rest will take, as ``h:mm:ss``.

        Example:
            >>> Pace(100, time.perf_counter).left
            '-:--:--'
        """
        speed = self.speed
        if speed is None:
            return "-:--:--"
        minutes, seconds = divmod(round((self.total - self.done) / speed), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"

    def notes(self, progress: Progress) -> list[str]:
        """The speed, and how the runs do, the most important first."""
        table = progress.history.table()
        recent = [progress.history.recent(run).reward for run in np.unique(table.run).tolist()]
        notes = [] if self.speed is None else [f"{self.speed:,.0f} steps/s"]
        if recent:
            notes.append(f"return {np.mean([np.mean(rewards) for rewards in recent]):.1f}")
        return [*notes, f"{len(table.run):,} episodes", f"{int(np.sum(table.terminated)):,} terminated"]


def _bar(console: Console, size: int) -> Bar:
    fixed = Column(no_wrap=True)
    return Bar(
        TextColumn("training", table_column=fixed),
        BarColumn(size),
        TextColumn("{task.percentage:>3.0f}%", table_column=fixed),
        TextColumn("{task.fields[left]}", table_column=fixed),
        TextColumn("{task.fields[note]}", table_column=fixed, markup=False),
        console=console,
    )


def _in_a_bar(bar: Bar, size: int, pace: Pace) -> Show:
    """Show progress in a bar, with as many notes as the terminal is wide: percent and time left always fit."""

    def now(notes: list[str]) -> dict[str, Any]:
        left = pace.left
        room = bar.console.width - len(f"training {'-' * size} 100% {left} ")
        return {"completed": pace.done, "left": left, "note": _fitting(notes, room)}

    task = bar.add_task("training", total=pace.total, **now([_COMPILING]))

    def show(progress: Progress) -> None:
        pace.report(progress)
        bar.update(task, refresh=True, **now([_COMPILING] if pace.speed is None else pace.notes(progress)))

    return show


def _in_lines(console: Console, pace: Pace, clock: Callable[[], float]) -> Show:
    """Print a line at every tenth of the steps, unless they come too fast, and at the end."""
    told, last = 0, clock()

    def show(progress: Progress) -> None:
        nonlocal told, last
        pace.report(progress)
        tenth = int(pace.share * _TENTHS)
        finished = pace.done >= pace.total
        if tenth <= told or not (finished or clock() - last >= _SECONDS):
            return
        told, last = tenth, clock()
        steps = f"{pace.done:,} of {pace.total:,} steps"
        line = ", ".join([f"{pace.share:.0%}", steps, *pace.notes(progress), f"{pace.left} left"])
        console.print(f"training: {line}", soft_wrap=True, markup=False)

    return show


def _fitting(notes: list[str], width: int) -> str:
    """As many of the notes as fit."""
    while notes and len(_SEPARATOR.join(notes)) > width:
        notes = notes[:-1]
    return _SEPARATOR.join(notes)
