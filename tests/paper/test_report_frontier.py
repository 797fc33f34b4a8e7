"""The figure and the sentences that the report begins with: from the numbers of the folder, nothing else."""

import csv
import re
import shutil

import numpy as np
import pytest

from sentinel_paper.highway_agents import ADDITIVE, AGENTS, COMPOSITE, NEUTRAL
from sentinel_paper.highway_agents import CEILING as SEARCH
from sentinel_paper.output import csv_text
from sentinel_paper.report import collect, write_report
from sentinel_paper.report_frontier import CEILING, frontier, sentences
from sentinel_paper.statements import judge
from sentinel_rl.errors import CorruptError
from tests.paper.fakes import write_learner

TABLE = "table-highway"
SEARCHED = "32.91"


@pytest.fixture
def folder(results, tmp_path):
    """The results of the highway's table, and agents that learn."""
    shutil.copytree(results(TABLE), tmp_path / TABLE)
    write_learner(tmp_path)
    path = tmp_path / TABLE / f"{TABLE}.csv"
    path.write_text(csv_text([row | ({"mean": SEARCHED} if searched(row) else {}) for row in read(path)]))
    return tmp_path


def searched(row):
    """Whether a row has the value of the search with the exact model."""
    return (row["agent"], row["metric"]) == (SEARCH, "value")


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def told(folder):
    pages = collect(folder)
    drawn = frontier(folder, pages)
    return drawn, sentences(drawn, judge(pages))


def test_every_agent_has_its_point(folder):
    drawn, _ = told(folder)
    assert [group.kind for group in drawn.groups] == ["learner", "paper", "preset", "passive"]
    learner, paper, preset, passive = drawn.groups
    assert [point.agent for point in preset.points] == [agent.label for agent in AGENTS]
    assert {point.agent: point.value.mean for point in paper.points} == {
        agent.label: agent.printed["value"][0] for agent in AGENTS
    }
    rows = {row["agent"]: row for row in read(folder / TABLE / f"{TABLE}.csv") if row["metric"] == "crashes"}
    for point in (*preset.points, *passive.points):
        wanted = [float(rows[point.agent][end]) for end in ("mean", "low", "high")]
        assert [point.crashes.mean, point.crashes.low, point.crashes.high] == wanted
    runs = [float(row["crashes"]) for row in read(folder / "learner" / "risk.csv") if row["agent"] == "neutral"]
    assert learner.point(NEUTRAL).crashes.mean == pytest.approx(np.mean(runs))
    assert learner.point(NEUTRAL).crashes.low < np.mean(runs) < learner.point(NEUTRAL).crashes.high
    assert drawn.ceiling == float(SEARCHED)


def test_the_ceiling_is_known_where_no_table_has_it(folder):
    path = folder / TABLE / f"{TABLE}.csv"
    path.write_text(csv_text([row for row in read(path) if row["agent"] != SEARCH]))
    assert told(folder)[0].ceiling == CEILING


def test_three_sentences_follow_from_the_numbers(folder):
    drawn, (learner, constants, counted) = told(folder)
    preset, agents = drawn.of("preset"), drawn.of("learner")
    best = max(preset.points, key=lambda point: point.value.mean)
    assert f"the highest value is {best.value.told(2)} ({best.agent.removeprefix('SENTINEL-4 ')})" in constants
    assert "the paper prints up to 27.43 (composite)" in constants
    for agent in (NEUTRAL, ADDITIVE, COMPOSITE):
        assert agents.point(agent).value.told(2) in learner
    fewer = np.mean(agents.crashes[COMPOSITE] - agents.crashes[NEUTRAL])
    assert f"{fewer:+.0f} [" in learner
    assert SEARCHED in learner
    assert re.match(
        r"Of the 21 claims .* decide, \d+ holds?, .*; under `sound`, which was run for \d+ of them, ", counted
    )


def test_other_numbers_give_other_sentences(folder):
    before = told(folder)[1][0]
    path = folder / "learner" / "risk.csv"
    rows = read(path)
    path.write_text(csv_text([{**row, "crashes": "200"} for row in rows]))
    after = told(folder)[1][0]
    assert "not significant" not in before
    assert "+0 [+0, +0] against risk-neutral (not significant)" in after


def test_a_preset_that_is_not_the_papers_is_told_in_the_place_of_the_learner(folder):
    """Any number of presets: each is a group of its own."""
    shutil.copytree(folder / TABLE, folder / f"{TABLE}-other")
    path = folder / f"{TABLE}-other" / f"{TABLE}.json"
    path.write_text(path.read_text().replace('"preset": "sound"', '"preset": "other"'))
    drawn, (learner, _, _) = told(folder)
    assert {group.name for group in drawn.groups if group.kind == "preset"} == {"sound", "other"}
    assert learner.startswith("With a learner that learns (preset other, ")


def test_without_the_table_only_claims_are_counted(folder):
    shutil.rmtree(folder / "learner")
    (folder / TABLE / f"{TABLE}.csv").unlink()
    drawn, (counted,) = told(folder)
    assert drawn.groups == []
    assert counted.startswith("Of the 21 claims")
    write_report(folder)


FORGED = {
    "no column": "agent,seed\nneutral,1\n",
    "text": "agent,seed,value,crashes\nneutral,1,high,3\n",
    "infinite": "agent,seed,value,crashes\nneutral,1,inf,3\n",
    "huge": "agent,seed,value,crashes\nneutral,1,1e300,3\n",
    "short row": "agent,seed,value,crashes\nneutral,1\n",
    "long name": f"agent,seed,value,crashes\n{'x' * 5000},1,3,3\n",
    "control": "agent,seed,value,crashes\na\x00b,1,3,3\n",
    "bytes": b"\xff\xfe\x00",
}


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize("kind", FORGED)
def test_forged_numbers_are_refused(kind, folder):
    text = FORGED[kind]
    (folder / "learner" / "risk.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CorruptError, match=r"risk\.csv"):
        write_report(folder)


@pytest.mark.attack("bad-report")
def test_numbers_from_elsewhere_are_refused(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("secret") / "risk.csv"
    path = folder / "learner" / "risk.csv"
    path.rename(secret)
    path.symlink_to(secret)
    with pytest.raises(CorruptError, match="is a link to a file elsewhere"):
        write_report(folder)
