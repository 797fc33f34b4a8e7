"""Check a command that a page shows, without running it: its name, its options and the files it names must exist."""

import functools
import re
import shlex
import tomllib
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from sentinel_paper import registry
from sentinel_rl.cli import app as app_module
from tests.docs.pages import ROOT

# Commands that pages may show and that are not ours to check.
FOREIGN = {"pip", "git", "cd", "export", "chmod", "ray", "sbatch"}


class WrongCommandError(Exception):
    """A command that would not work as it is printed."""


def check(command: str, *, complete: bool = True, own: Collection[str] = ()) -> None:
    """Raise `WrongCommandError` where a command cannot work.

    Args:
        command: as it is printed.
        complete: whether all arguments must be there.
        own: scripts that the page itself prints.
    """
    words = shlex.split(command, comments=True)
    program, rest = words[0], words[1:]
    if program == "sentinel":
        _check_sentinel(rest, complete)
    elif program == "make":
        _check_make(rest)
    elif program == "python":
        if rest[0] not in own:
            _check_python(rest)
    elif program not in FOREIGN:
        raise WrongCommandError(f"{program} is no command that the documentation knows")


@functools.cache
def subcommands() -> dict[str, Any]:
    """Return what `sentinel` has, with the commands of pyproject.toml, whether or not the project is installed."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][app_module.GROUP]
    app = app_module.build()
    for name, target in declared.items():
        module, _, function = target.partition(":")
        app_module.Plugin(name, getattr(import_module(module), function)).add_to(app)
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def _check_sentinel(arguments: Sequence[str], complete: bool) -> None:
    name, *rest = arguments
    if name in ("COMMAND", "--help", "--version"):
        return
    command = subcommands().get(name)
    if command is None:
        raise WrongCommandError(f"there is no command sentinel {name}: there are {', '.join(subcommands())}")
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    if unknown := [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]:
        raise WrongCommandError(
            f"sentinel {name} has no option {', '.join(unknown)}: it has {', '.join(sorted(known))}"
        )
    if complete and "--help" not in rest:
        _parse(name, command, rest)
    if name == "reproduce" and rest and not rest[0].startswith("--") and rest[0] not in ("all", "NAME"):
        registry.find(rest[0])


def _parse(name: str, command: Any, arguments: Sequence[str]) -> None:
    try:
        command.make_context(name, list(arguments))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer brings a click of its own, older ones use the package
            raise
        raise WrongCommandError(error.format_message()) from None


def _check_make(arguments: Sequence[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    if unknown := [word for word in arguments if "=" not in word and word not in targets]:
        raise WrongCommandError(f"make has no target {', '.join(unknown)}")


def _check_python(arguments: Sequence[str]) -> None:
    file = _script(arguments)
    if not file.exists():
        raise WrongCommandError(f"{file.relative_to(ROOT)} does not exist")
    if file.parent.name == "sentinel_paper" and file.name == "__main__.py":
        return  # its options are those of `sentinel reproduce`
    if file.name == "rl_zoo.py":
        return  # its options are those of RL Baselines3 Zoo
    text = file.read_text()
    if unknown := [word for word in arguments if word.startswith("--") and f'"{word}"' not in text]:
        raise WrongCommandError(f"{file.relative_to(ROOT)} has no option {', '.join(unknown)}")


def _script(arguments: Sequence[str]) -> Path:
    """The file that `python` is asked to run, by its path or with -m by its module."""
    if arguments[0] != "-m":
        return ROOT / arguments[0]
    base = ROOT / ("src" if arguments[1].startswith("sentinel_") else "") / Path(*arguments[1].split("."))
    return base / "__main__.py" if base.is_dir() else base.with_suffix(".py")
