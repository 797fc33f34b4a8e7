"""The command line, and what a command from another package needs.

Nothing here imports JAX before a command runs: ``sentinel --help`` stays quick. A package adds a command with an entry
point of the group ``sentinel_rl.commands``, a function (or a `typer.Typer`) that prints to `console` and writes with
`files`:

    [project.entry-points."sentinel_rl.commands"]
    mine = "my_package.cli:mine"
"""

from sentinel_rl.cli.app import main

__all__ = ["main"]
