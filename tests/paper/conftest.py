"""Each experiment is computed once for all tests that look at it."""

import functools

import pytest

from sentinel_paper.registry import find
from tests.paper.reference import silent


@pytest.fixture(scope="session")
def records_of():
    """The records of an experiment with the paper's settings, by name."""

    @functools.cache
    def compute(name):
        recipe = find(name).load()
        return recipe.run(recipe.SETTINGS, silent)

    return compute
