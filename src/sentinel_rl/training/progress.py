"""A progress bar for training: steps a second, episodes, recent return, ends by termination, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from sentinel_rl.training.loop import Progress


@contextmanager
def progress_bar(steps: int, runs: int = 1, shown: bool = True) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that takes the progress of a training and shows it, on standard error."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("training", total=steps, note="compiling")

        def show(progress: Progress) -> None:
            if bar.tasks[0].completed == 0:
                bar.reset(task, completed=progress.t)  # a run that resumes did not make these steps now
            table = progress.history.table()
            speed = bar.tasks[0].speed or 0.0
            episodes, falls = len(table.run), int(table.terminated.sum())
            recent = np.mean(table.reward[-100:]) if episodes else np.nan
            note = f"{speed * runs:,.0f} steps/s · {episodes:,} episodes · return {recent:.1f} · {falls:,} terminated"
            bar.update(task, completed=progress.t, note=note)

        yield show
