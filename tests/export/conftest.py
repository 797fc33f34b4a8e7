"""The command line, as its own tests call it."""

from tests.cli.conftest import run

__all__ = ["run"]
