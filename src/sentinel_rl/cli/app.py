"""The command ``sentinel``: its options, its sub-commands, and what an error looks like."""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from sentinel_rl import __version__
from sentinel_rl.cli import commands
from sentinel_rl.cli.console import complain
from sentinel_rl.cli.plugins import plugins

# Exit codes; typer itself ends with USAGE for options and arguments it does not know.
FAILURE, USAGE, INPUT_OUTPUT = 1, 2, 74


def build() -> typer.Typer:
    """Assemble the command from the library's own sub-commands and those of the entry points."""
    app = typer.Typer(
        name="sentinel",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_root)
    for command in (commands.demo, commands.risk, commands.doctor):
        app.command()(command)
    for plugin in plugins():
        plugin.add_to(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``sentinel`` with the given arguments (those of the process when None) and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        build()(args=[argument for argument in given if argument != "--debug"], prog_name="sentinel")
    except Exception as error:
        if debug:
            traceback.print_exc()
        expected = isinstance(error, OSError | ValueError)
        complain(_message(error), "" if debug or expected else "--debug shows where it happened")
        sys.exit(_code(error))


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

    - `sentinel demo`: composite against additive risk in two tables and a picture
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
    if isinstance(error, ValueError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}"


def _code(error: Exception) -> int:
    if isinstance(error, OSError):
        return INPUT_OUTPUT
    return USAGE if isinstance(error, ValueError) else FAILURE
