"""Where a command prints: results on standard output, progress and complaints on standard error."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# Told ``(done, total)`` as work proceeds.
Report = Callable[[int, int], None]
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def results() -> Console:
    """A console on standard output, on which text is text: names out of files may look like markup."""
    return Console(highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    r"""A text without characters that a terminal would obey: they are written as escapes.

    Example:
        >>> printable("red: \x1b[31m")
        'red: \\x1b[31m'
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def complain(message: str, hint: str = "") -> None:
    """Print an error, and what to do about it, on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("error:", style="bold red", end=" ")
    console.print(printable(message), markup=False, emoji=False)
    if hint:
        console.print(f"({hint})", style="dim", markup=False)


def note(message: str) -> None:
    """Print a remark on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(f"note: {printable(message)}", style="yellow", markup=False)


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Show a bar on standard error while the block runs; it is given the function to report to."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
