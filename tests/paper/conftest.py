"""Each experiment is computed once for all tests that look at it; where agents would be trained, records are fake."""

import dataclasses
import functools

import pytest

from sentinel_paper import theorems
from sentinel_paper.registry import EXPERIMENTS, find
from tests.paper import fakes
from tests.paper.reference import silent

# One pair of measures compiles four times as fast as ten, and has every kind of finding.
SMALLER = {"theorems": dataclasses.replace(theorems.SETTINGS, measures=("cvar:0.25",), more_pairs=())}


@pytest.fixture
def fake_training(monkeypatch):
    """No agent is trained in this test."""
    monkeypatch.setattr("sentinel_paper.trained.run_grid", fakes.fake_grid)


@pytest.fixture(scope="session")
def records_of(tmp_path_factory):
    """The records of an experiment by name: with the paper's settings where those are quick, else small or fake."""
    toys = {"fig-toy-wasserstein": fakes.toy_wasserstein_records, "fig-toy-laws": fakes.toy_laws_records}

    @functools.cache
    def compute(name):
        experiment = find(name)
        if name in toys:
            return toys[name]()
        if not experiment.grid:
            recipe = experiment.load()
            return recipe.run(SMALLER.get(name, recipe.SETTINGS), silent)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sentinel_paper.trained.run_grid", fakes.fake_grid)
            return fakes.grid_records(name, tmp_path_factory.mktemp("records"))

    return compute


@pytest.fixture(scope="session")
def results(records_of, tmp_path_factory):
    """A folder of results, with a function that renders an experiment there once."""
    base = tmp_path_factory.mktemp("results")

    @functools.cache
    def render(name):
        return _rendered(name, records_of(name), base / name)

    @functools.cache
    def everything():
        """The folder with all experiments, one of them a second time with another preset and number of runs."""
        for experiment in EXPERIMENTS:
            render(experiment.name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sentinel_paper.trained.run_grid", fakes.fake_grid)
            name = "table-ensemble-size"
            literal = fakes.grid_records(name, tmp_path_factory.mktemp("records"), preset="literal", runs=7)
        _rendered(name, literal, base / f"{name}-literal")
        return base

    render.everything = everything
    return render


def _rendered(name, records, out):
    out.mkdir()
    assert sorted(find(name).load().render(records, out)) == sorted(out.iterdir())
    return out
