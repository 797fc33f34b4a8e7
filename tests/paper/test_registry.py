"""The list of experiments."""

import importlib.util

import pytest

from sentinel_paper import registry
from sentinel_paper.claims import Claim
from sentinel_paper.registry import EXPERIMENTS

PLANNED = {
    *("gauss-mix-cvar", "gaussian-estimators", "ftrl-gaussians", "table-highway", "fig-highway-crashes"),
    *("fig-risk-measures", "fig-ftrl-lambda", "table-ensemble-size", "table-compute", "fig-toy-laws"),
    "fig-toy-wasserstein",
}


def test_all_experiments_of_the_paper_are_listed_once():
    names = [experiment.name for experiment in EXPERIMENTS]
    assert sorted(names) == sorted(PLANNED)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_what_is_available_is_there(experiment):
    module = f"sentinel_paper.{experiment.name.replace('-', '_')}"
    assert (importlib.util.find_spec(module) is not None) == experiment.available


@pytest.mark.parametrize("experiment", registry.available(), ids=lambda experiment: experiment.name)
def test_an_experiment_has_its_parts(experiment):
    recipe = experiment.load()
    assert recipe.PAPER
    assert all(isinstance(claim, Claim) for claim in recipe.PAPER)
    assert recipe.NAME == experiment.name
    assert hash(recipe.SETTINGS) == hash(type(recipe.SETTINGS)())
    assert all(callable(part) for part in (recipe.run, recipe.findings, recipe.render))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gauss-mix-cvr", "did you mean 'gauss-mix-cvar'"),
        ("table-highway", "still to come"),
        ("zzz", "unknown experiment 'zzz': Available now: gauss-mix-cvar"),
    ],
)
def test_names_that_cannot_be_run(name, message):
    with pytest.raises(ValueError, match=message):
        registry.find(name)
