"""What an experiment writes."""

import csv

import pytest

from sentinel_paper import registry
from sentinel_paper.claims import Verdict, mostly, share_interval
from sentinel_paper.output import command, csv_text, table


@pytest.fixture(scope="module", params=registry.EXPERIMENTS, ids=lambda experiment: experiment.name)
def written(request, records_of, results):
    """An experiment, its findings and its folder."""
    recipe = request.param.load()
    return request.param, recipe, recipe.findings(records_of(request.param.name)), results(request.param.name)


def test_files(written):
    experiment, _, _, out = written
    names = {path.name for path in out.iterdir()}
    assert names >= {f"{experiment.name}.{kind}" for kind in ("csv", "json", "md", "png", "svg")}
    assert all(name.startswith(experiment.name) for name in names)
    assert (out / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / f"{experiment.name}.svg").read_text()


def test_the_page_tells_every_claim_with_verdict_and_reason(written, records_of):
    experiment, recipe, findings, out = written
    page = (out / f"{experiment.name}.md").read_text()
    assert {finding.claim for finding in findings} == set(recipe.PAPER.values())
    for finding in findings:
        assert f"> {finding.claim.text} ({finding.claim.where})" in page
        assert f"**{finding.verdict.capitalize()}**, {finding.setting}: {finding.reason}" in page
    assert f"`{command(experiment.name, records_of(experiment.name).settings)}`" in page
    assert f"({experiment.name}.png)" in page


def test_numbers_are_a_table(written):
    experiment, _, _, out = written
    header, *rows = csv.reader((out / f"{experiment.name}.csv").read_text().splitlines())
    assert rows
    assert all(len(row) == len(header) for row in rows)
    assert not any("nan" in cell for row in rows for cell in row)


@pytest.mark.parametrize("name", ["gauss-mix-cvar", "table-ensemble-size"])
def test_rendering_again_gives_the_same_bytes(name, results, records_of, tmp_path):
    registry.find(name).load().render(records_of(name), tmp_path)
    for path in results(name).iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_cells():
    rows = [{"name": "a, b", "count": 3, "value": 1 / 3}]
    assert csv_text(rows) == 'name,count,value\n"a, b",3,0.3333333333\n'
    assert table(rows).splitlines()[-1] == "| a, b | 3 | 0.333 |"


@pytest.mark.parametrize(
    ("successes", "verdict"),
    [
        ([100, 80], Verdict.HOLDS),
        ([0, 20], Verdict.FAILS),
        ([50], Verdict.UNDECIDED),
        ([100, 0], Verdict.UNDECIDED),
        ([55], Verdict.UNDECIDED),
    ],
)
def test_most_runs(successes, verdict):
    assert mostly(successes, runs=100) == verdict


def test_share_interval_by_hand():
    low, high = share_interval(0, 10, z=2.0)
    assert low == pytest.approx(0)
    assert high == pytest.approx(4 / 14)
