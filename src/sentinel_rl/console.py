"""Where a command prints: results on standard output, progress and complaints on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# Told ``(done, total)`` as work proceeds.
Report = Callable[[int, int], None]


def results() -> Console:
    """A console on standard output."""
    return Console(highlight=False)


def complain(message: str, hint: str = "") -> None:
    """Print an error, and what to do about it, on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("error:", style="bold red", end=" ")
    console.print(message, markup=False)
    if hint:
        console.print(f"({hint})", style="dim", markup=False)


def note(message: str) -> None:
    """Print a remark on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"note: {message}", style="yellow", markup=False)


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Show a bar on standard error while the block runs; it is given the function to report to."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
