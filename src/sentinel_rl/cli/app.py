"""The command ``sentinel``: its options, its sub-commands, and what an error looks like."""

import dataclasses
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer

from sentinel_rl._version import __version__
from sentinel_rl.cli import commands, commands_judge, commands_show, commands_train
from sentinel_rl.console import complain, note
from sentinel_rl.errors import SentinelError, SentinelWarning, Stopped, UsageError

# Exit codes; typer itself ends with USAGE for options and arguments it does not know.
FAILURE, USAGE, INPUT_OUTPUT = 1, 2, 74


def build() -> typer.Typer:
    """Assemble the command from the library's own sub-commands and those of the entry points."""
    app = typer.Typer(
        name="sentinel",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_root)
    app.command()(commands.demo)
    app.command()(commands_train.train)
    app.command()(commands_train.sweep)
    app.command("eval")(commands_judge.evaluate)
    app.command()(commands_show.assess)
    app.command()(commands_show.watch)
    app.command()(commands_show.scenes)
    app.command()(commands_show.plot)
    app.command()(commands_show.export)
    app.command()(commands_judge.calibrate)
    app.command()(commands_judge.abstain)
    app.command()(commands_train.verify)
    app.command()(commands_judge.frontier)
    app.command()(commands_judge.stress)
    app.command()(commands.risk)
    app.command()(commands.doctor)
    app.command()(commands.cache)
    for plugin in plugins():
        plugin.add_to(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``sentinel`` with the given arguments (those of the process when None) and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        _require_texts(given)
        with _noted_warnings():
            build()(args=[argument for argument in given if argument != "--debug"], prog_name="sentinel")
    except Stopped as stop:
        again = shlex.join(["sentinel", *(argument for argument in given if argument != "--overwrite")])
        note(f"{stop}\nresume with: {again}")
        sys.exit(stop.exit_code)
    except Exception as error:  # the last one to see it: users get a message and an exit code, never a traceback
        if debug:
            traceback.print_exc()
        expected = isinstance(error, OSError | ValueError | SentinelError)
        complain(_message(error), "" if debug or expected else "--debug shows where it happened")
        sys.exit(_code(error))


def _require_texts(given: Sequence[str]) -> None:
    """Refuse empty values: an empty path would be the current folder, and mostly a variable of the shell was empty.

    Raises:
        UsageError: with the option or the argument before it.
    """
    for before, argument in zip(["", *given], given, strict=False):
        if argument and not _EMPTY.fullmatch(argument):
            continue
        where = argument.rstrip("=") or (f"after {before}" if before else "as the command")
        raise UsageError(f"an empty text was given, {where}: give a value (. is the current folder), or leave it out")


# ``--out=`` and nothing behind it.
_EMPTY = re.compile(r"--[\w-]+=")


@contextmanager
def _noted_warnings() -> Iterator[None]:
    """Show the library's own warnings as remarks, without the line of code that gave them."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, SentinelWarning):
                note(str(message))
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _print_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"sentinel-rl {__version__}")
        raise typer.Exit
    return asked


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """Reinforcement learning that must justify its risks.

    **Examples**

    - `sentinel demo`: composite against additive risk, and an agent that tells how sure it is
    - `sentinel train --env CartPole-v1 --seeds 5 --out runs/pole`: train, save, resume
    - `sentinel reproduce --list`: the experiments of the paper, one command each
    - `sentinel reproduce all`: run them, with figures, numbers and a verdict on every claim
    - `sentinel COMMAND --help`: the options of a command, with examples
    """
    del version, debug  # served by `_print_version` and, wherever it stands, by `main`


def _message(error: Exception) -> str:
    """What to tell the user: bad input and files speak for themselves, anything else is a fault of ours."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    if isinstance(error, ValueError | SentinelError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}"


def _code(error: Exception) -> int:
    if isinstance(error, SentinelError):
        return error.exit_code
    if isinstance(error, OSError):
        return INPUT_OUTPUT
    return USAGE if isinstance(error, ValueError) else FAILURE


GROUP = "sentinel_rl.commands"


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A command under its name: a function, or a `typer.Typer` with commands of its own."""

    name: str
    command: Callable[..., Any] | typer.Typer

    def add_to(self, app: typer.Typer) -> None:
        """Register it as a sub-command."""
        if isinstance(self.command, typer.Typer):
            app.add_typer(self.command, name=self.name)
        else:
            app.command(self.name)(self.command)


def plugins() -> list[Plugin]:
    """Load every command of the group, sorted by name; one that cannot be loaded is reported and left out."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    loaded = (_load(found[name]) for name in sorted(found))
    return [plugin for plugin in loaded if plugin is not None]


def _load(entry: EntryPoint) -> Plugin | None:
    try:
        return Plugin(entry.name, entry.load())
    except Exception as error:  # another package's fault must not take the whole command line down
        note(f"the command {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}")
        return None
