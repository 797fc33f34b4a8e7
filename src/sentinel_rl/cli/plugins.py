"""Sub-commands from outside the library, found through entry points."""

import dataclasses
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from sentinel_rl.cli.console import note

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
