"""``python -m sentinel_paper`` has the commands of this package without any installation."""

import sys

import typer

from sentinel_paper.cli import report, reproduce
from sentinel_rl.console import complain
from sentinel_rl.errors import SentinelError

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
app.command()(reproduce)
app.command()(report)

if __name__ == "__main__":
    try:
        app()
    except SentinelError as error:
        complain(str(error))
        sys.exit(error.exit_code)
