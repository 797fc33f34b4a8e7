"""How far a grid is: a bar where somebody watches, a line per finished cell in a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sentinel_rl.study.progress import GridProgress

GridReport = Callable[[GridProgress], None]


@contextmanager
def grid_bar(title: str) -> Iterator[GridReport]:
    """Show the cell at work, all cells and the time left on standard error while the block runs."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    heard = -1
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=1.0)

        def report(progress: GridProgress) -> None:
            nonlocal heard
            bar.update(task, completed=progress.finished / progress.cells, description=f"{title}: {progress}")
            if not console.is_terminal and progress.finished != heard:
                heard = progress.finished
                console.print(f"{title}: {progress}", markup=False)

        yield report
