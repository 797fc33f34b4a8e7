"""The cells of these tests compile much and compute next to nothing."""

import pytest


@pytest.fixture(autouse=True)
def _quick(quick_compile):
    """XLA optimises little."""
