"""The page of the documentation is what the commands write."""

from pathlib import Path

import pytest

from sentinel_paper import registry

PAGE = (Path(__file__).parents[2] / "docs" / "paper.md").read_text()


@pytest.mark.parametrize("experiment", registry.available(), ids=lambda experiment: experiment.name)
def test_results_and_verdicts_are_on_the_page(experiment, records_of, tmp_path):
    recipe = experiment.load()
    recipe.render(records_of(experiment.name), tmp_path)
    lines = (tmp_path / f"{experiment.name}.md").read_text().splitlines()
    told = [line for line in lines if line.startswith(("|", ">", "**"))]
    assert told
    assert [line for line in told if line not in PAGE] == []


def test_what_is_still_to_come_is_listed():
    coming = PAGE.split("## Still to come")[1]
    listed = {experiment.name for experiment in registry.EXPERIMENTS if f"`{experiment.name}`" in coming}
    assert listed == {experiment.name for experiment in registry.EXPERIMENTS if not experiment.available}
