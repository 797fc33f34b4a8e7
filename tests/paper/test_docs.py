"""The page of the documentation is what the commands write."""

from pathlib import Path

import pytest

from sentinel_paper import registry
from tests.paper.conftest import SMALLER
from tests.paper.reference import silent

ANALYTIC = ("theorems", "gauss-mix-cvar", "gaussian-estimators", "ftrl-gaussians")
PAGE = (Path(__file__).parents[2] / "docs" / "paper.md").read_text()


@pytest.mark.parametrize("experiment", ANALYTIC)
def test_results_and_verdicts_are_on_the_page(experiment, results, tmp_path):
    out = results(experiment) if experiment not in SMALLER else tmp_path
    if out == tmp_path:
        recipe = registry.find(experiment).load()
        recipe.render(recipe.run(recipe.SETTINGS, silent), tmp_path)
    lines = (out / f"{experiment}.md").read_text().splitlines()
    told = [line for line in lines if line.startswith(("|", ">", "**"))]
    assert told
    assert [line for line in told if line not in PAGE] == []


def test_every_experiment_has_its_command_on_the_page():
    assert [one.name for one in registry.EXPERIMENTS if f"sentinel reproduce {one.name}" not in PAGE] == []
