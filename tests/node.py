"""Node.js and what it brings: a test that lacks it fails in continuous integration, and is skipped elsewhere."""

import os
import shutil
from typing import NoReturn

import pytest


def tool(name: str) -> str:
    """The path of a program."""
    return shutil.which(name) or missing(f"{name} is not installed")


def missing(reason: str) -> NoReturn:
    """End the test: CI must not pass because of what was not there."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, and CI is set: nothing may be skipped", pytrace=False)
    pytest.skip(reason)
