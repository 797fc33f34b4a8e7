"""The page of the documentation is what the commands write."""

from pathlib import Path

import pytest

from sentinel_paper import registry
from tests.paper.conftest import SMALLER
from tests.paper.reference import silent

ANALYTIC = ("theorems", "gauss-mix-cvar", "gaussian-estimators", "ftrl-gaussians")
ROOT = Path(__file__).parents[2]
PAGE, RESULTS = (ROOT / "docs" / "paper.md").read_text(), ROOT / "results"


def told(folder, experiment):
    """The lines of results and verdicts."""
    lines = (folder / f"{experiment}.md").read_text().splitlines()
    return [line for line in lines if line.startswith(("|", ">", "**"))]


@pytest.mark.parametrize("experiment", ANALYTIC)
def test_results_and_verdicts_are_on_the_page(experiment, results):
    """The committed ones where computing them takes long."""
    lines = told(results(experiment) if experiment not in SMALLER else RESULTS / experiment, experiment)
    assert lines
    assert [line for line in lines if line not in PAGE] == []


@pytest.mark.slow
@pytest.mark.parametrize("experiment", SMALLER)
def test_what_is_committed_is_what_is_computed(experiment, tmp_path):
    recipe = registry.find(experiment).load()
    recipe.render(recipe.run(recipe.SETTINGS, silent), tmp_path)
    assert told(tmp_path, experiment) == told(RESULTS / experiment, experiment)


def test_every_experiment_has_its_command_on_the_page():
    assert [one.name for one in registry.EXPERIMENTS if f"sentinel reproduce {one.name}" not in PAGE] == []
