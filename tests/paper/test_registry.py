"""The list of experiments."""

import dataclasses

import pytest

from sentinel_paper import registry
from sentinel_paper.claims import Claim
from sentinel_paper.registry import EXPERIMENTS

PLANNED = {
    *("gauss-mix-cvar", "gaussian-estimators", "ftrl-gaussians", "table-highway", "fig-highway-crashes"),
    *("fig-risk-measures", "fig-ftrl-lambda", "table-ensemble-size", "table-compute", "fig-toy-laws"),
    *("fig-toy-wasserstein", "theorems"),
}


def test_all_experiments_of_the_paper_are_listed_once():
    names = [experiment.name for experiment in EXPERIMENTS]
    assert sorted(names) == sorted(PLANNED)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_an_experiment_has_its_parts(experiment):
    recipe = experiment.load()
    assert recipe.PAPER
    assert all(isinstance(claim, Claim) for claim in recipe.PAPER)
    assert recipe.NAME == experiment.name
    assert hash(recipe.SETTINGS) == hash(dataclasses.replace(recipe.SETTINGS))
    assert all(callable(part) for part in (recipe.run, recipe.findings, recipe.render))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gauss-mix-cvr", "did you mean 'gauss-mix-cvar'"),
        ("zzz", "unknown experiment 'zzz': There are theorems, gauss-mix-cvar"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        registry.find(name)
