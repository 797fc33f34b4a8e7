"""The tuning: as many settings for every agent, on seeds that no result is reported on, and a page that says so."""

import csv
import re
from pathlib import Path

from benchmarks import highway_tuning as tuning
from sentinel_paper.settings import HIGHWAY, options_for
from sentinel_paper.trained import FIRST_SEED
from sentinel_rl.envs.registry import make_env
from sentinel_rl.study import Record
from tests.paper.fakes import fake

ROOT = Path(__file__).parents[2]


def test_every_agent_has_as_many_settings():
    counts = {agent: len(tuning.settings_of(agent)) for agent in tuning.OWN}
    assert set(counts) == {"sentinel", "cdqn", "vdqn", "vdqn-cvar", "uadqn"}
    assert set(counts.values()) == {14}
    page = (ROOT / "docs" / "tuning.md").read_text()
    assert [name for agent in tuning.OWN for name in tuning.settings_of(agent) if f"`{name}`" not in page] == []


def test_settings_begin_with_the_preset_and_differ():
    env = make_env(HIGHWAY.env)
    for agent in tuning.OWN:
        found = tuning.cells(agent, 1_000, (100, 101), 5)
        assert found[0].options == {"preset": "learner"} | (tuning.RISK if agent == "sentinel" else {})
        made = [cell.make_agent(env) for cell in found]
        plans = [cell.make_plan(one) for cell, one in zip(found, made, strict=True)]
        assert len(set(zip(map(str, made), map(str, plans), strict=True))) == len(found)
        assert {plan.learn.period for plan in plans} == {2}
    assert tuning.FIRST_REPORTED == FIRST_SEED


def test_the_preset_has_what_was_best():
    """Of every agent whose settings were run, the one of the highest mean value, and nothing else."""
    single = tuning.read(ROOT / "results" / "tuning" / "runs.csv")
    agents = set(tuning.OWN) - {"sentinel"}
    assert {row["agent"] for row in single} == agents
    assert len(single) == len(agents) * 14 * 12
    for agent in agents:
        best = tuning.chosen([row for row in single if row["agent"] == agent])
        assert options_for(HIGHWAY, agent, "tuned") == {"preset": "learner", **tuning.settings_of(agent)[best]}


def test_what_is_there_is_not_trained_again(tmp_path, monkeypatch, capsys):
    """The file is written after every batch, and a second run makes only what is missing."""
    trained: list[str] = []

    def run_cells(cells: list[tuning.Cell]) -> list[Record]:
        trained.extend(cell.label for cell in cells)
        return [fake(cell) for cell in cells]

    monkeypatch.setattr(tuning, "run_cells", run_cells)
    wanted, out = tuning.cells("uadqn", 1_000, (100, 101), 5), tmp_path / "new" / "runs.csv"
    tuning.run(wanted[:3], out, at_once=2)
    assert trained == [cell.label for cell in wanted[:3]]
    tuning.run(wanted, out, at_once=2)
    assert trained == [cell.label for cell in wanted]
    with out.open() as file:
        assert len(list(csv.DictReader(file))) == 2 * 14
    tuning.show(tuning.read(out))
    assert len(re.findall(r"^\| \*\*", capsys.readouterr().out, re.MULTILINE)) == 1
