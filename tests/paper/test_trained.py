"""From settings to cells to records."""

import csv
import dataclasses
import json

import jax
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sentinel_paper import (
    fig_ftrl_lambda,
    fig_highway_crashes,
    fig_risk_measures,
    table_compute,
    table_ensemble_size,
    table_highway,
    trained,
)
from sentinel_paper.claims import Verdict
from sentinel_paper.cli import reproduce
from sentinel_paper.highway_agents import CEILING, RULE
from sentinel_paper.metrics import against
from sentinel_paper.registry import EXPERIMENTS
from sentinel_paper.settings import CARTPOLE, HIGHWAY, PRESETS
from sentinel_paper.trained import FIRST_SEED, Contender, Execution, Settings
from sentinel_rl.agents.registry import fixed_names
from sentinel_rl.envs.registry import make_env
from sentinel_rl.errors import UsageError
from sentinel_rl.study import Store, compare, summarise
from tests.paper import fakes

app = typer.Typer(add_completion=False)
app.command()(reproduce)


def test_a_cell_has_the_papers_values():
    composite = next(agent for agent in table_highway.AGENTS if agent.label == table_highway.COMPOSITE)
    cell = trained.cell(HIGHWAY, composite, Settings(), table_highway.evaluations(Settings()))
    assert cell.seeds == tuple(range(FIRST_SEED, FIRST_SEED + 20))
    assert (cell.steps, cell.options["k"], cell.options["epistemic"]) == (100_000, 4, "cvar:0.25")
    assert [evaluation.name for evaluation in cell.evaluations] == ["frozen", "dense traffic", "faster others"]
    assert cell.env_settings == {}


def test_a_policy_that_plans_is_evaluated_in_a_tenth_of_the_episodes():
    settings = Settings(episodes=300)
    search, rule = (
        trained.cell(HIGHWAY, contender, settings, table_highway.evaluations(settings))
        for label in (CEILING, RULE)
        for contender in table_highway.CONTENDERS
        if contender.label == label
    )
    assert [evaluation.episodes for evaluation in search.evaluations] == [30] * 3
    assert [evaluation.episodes for evaluation in rule.evaluations] == [300] * 3


def test_every_cell_can_be_made(fake_training, tmp_path):
    """An agent, an environment and a plan come out of every cell of every grid, in all presets and quickly too."""
    grids = [
        (HIGHWAY, table_highway.CONTENDERS),
        (HIGHWAY, table_ensemble_size.DRIVERS),
        (CARTPOLE, table_ensemble_size.CONTENDERS),
        (CARTPOLE, fig_ftrl_lambda.CONTENDERS),
    ]
    sizes = [*(Settings(preset=preset) for preset in PRESETS), Settings().made_quick()]
    for task, contenders in grids:
        for settings in (*sizes, Settings(preset="tuned").made_quick()):
            env = trained.cell(task, contenders[0], settings).make_env()
            for contender in contenders:
                cell = trained.cell(task, contender, settings)
                agent = cell.make_agent(env)
                plan = cell.make_plan(agent)
                assert plan.learn_times.size > 0 or contender.agent in fixed_names()


def test_presets_and_sizes_are_different_cells():
    settings = Settings()
    changes = ({}, {"preset": "literal"}, {"preset": "tuned"}, {"runs": 21}, {"seed": 7})
    changed = [dataclasses.replace(settings, **change) for change in changes]
    assert len({trained.cell(HIGHWAY, table_highway.AGENTS[1], one).id for one in changed}) == 5


def test_experiments_share_cells(fake_training, tmp_path):
    """The crash figure needs no training beside that of the table, but for the long one; seconds are measured apart."""
    settings = fakes.small(table_highway)
    table_highway.run(settings, None, Execution(tmp_path))
    assert len(Store(tmp_path).records()) == 12
    fig_highway_crashes.run(settings, None, Execution(tmp_path))
    assert len(Store(tmp_path).records()) == 12 + 11
    table_compute.run(settings, None, Execution(tmp_path))
    assert len(Store(tmp_path).records()) == 12 + 11 + 2 * 4


def test_verdicts_follow_the_records(records_of):
    """The fake ensembles fall less with every size, and nowhere near the paper's numbers."""
    found = table_ensemble_size.findings(records_of("table-ensemble-size"))
    assert [(finding.claim.name, finding.verdict) for finding in found] == [
        *[("printed-falls", Verdict.FAILS)] * 4,
        ("better-with-size", Verdict.HOLDS),
        ("slower-with-size", Verdict.FAILS),
    ]


@pytest.mark.parametrize("change", [{"runs": 1}, {"preset": "louder"}])
def test_settings_that_cannot_be(change):
    with pytest.raises(UsageError):
        Settings(**change)


def test_shards_fill_the_store_and_the_rest_renders(fake_training, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["table-ensemble-size", "--runs", "6", "--quick", "--out", "out/table"]
    first = CliRunner().invoke(app, [*common, "--shard", "1/2"])
    assert first.exit_code == 0
    assert "3 of 6 cells are done" in first.output
    assert list((tmp_path / "out" / "table").iterdir()) == []
    second = CliRunner().invoke(app, [*common, "--shard", "2/2"])
    assert second.exit_code == 0
    page = json.loads((tmp_path / "out" / "table" / "table-ensemble-size.json").read_text())
    assert page["command"].startswith("sentinel reproduce table-ensemble-size --quick --runs 6 --steps 400")
    assert len(Store(tmp_path / "out" / "records").records()) == 6


def test_a_policy_that_is_only_evaluated_has_the_numbers_of_a_training(fake_training, tmp_path):
    """Its episodes end as often per step as in its evaluation, and it does not drive all the steps."""
    (search,) = (one for one in table_highway.CONTENDERS if one.label == CEILING)
    settings = fakes.small(table_highway, steps=1_000)
    found = trained.run(HIGHWAY, [search], settings, None, Execution(tmp_path)).found[CEILING]
    assert found.cell.steps == 1
    played = {part: found.arrays[f"eval/frozen/{part}"] for part in ("terminated", "length", "discounted")}
    rate = played["terminated"].sum(axis=1) / played["length"].sum(axis=1)
    np.testing.assert_allclose(found.arrays["terminations"], 1_000 * rate)
    np.testing.assert_allclose(found.arrays["terminations_curve"][:, -1], 1_000 * rate)
    np.testing.assert_array_equal(found.arrays["steps"], [200, 400, 600, 800, 1_000])
    np.testing.assert_allclose(found.arrays["train_discounted_mean"], played["discounted"].mean(axis=1))
    assert np.all(found.arrays["train_discounted_tail"] < found.arrays["train_discounted_mean"])


def require_references(folder, name):
    """All reference drivers stand in one table of a page, and the ceiling is drawn."""
    page = json.loads((folder / f"{name}.json").read_text())
    tables = [page["results"], *(section["rows"] for section in page["sections"])]
    wanted = {"random", "always SLOWER", "rule of seven numbers", "model search"}
    assert any(wanted <= {row.get("agent") for row in rows} for rows in tables)
    assert "model search" in "".join(path.read_text() for path in folder.glob("*.svg"))
    return page


@pytest.mark.parametrize("name", ["table-highway", "fig-highway-crashes"])
def test_reference_drivers_stand_beside_the_agents(name, results):
    assert "Every agent learns with the paper's constants" in require_references(results(name), name)["setup"]


def test_ensemble_sizes_are_tried_on_the_highway_where_agents_drive(records_of, fake_training, tmp_path):
    assert records_of("table-ensemble-size").highway is None
    settings = fakes.small(table_ensemble_size, preset="tuned")
    found = table_ensemble_size.run(settings, None, Execution(tmp_path / "records"))
    assert [record.cell.options.get("k") for record in found.highway.found.values()][:4] == [1, 2, 4, 8]
    assert {one.claim.name for one in table_ensemble_size.findings(found)} == set(table_ensemble_size.PAPER)
    (tmp_path / "page").mkdir()
    assert sorted(table_ensemble_size.render(found, tmp_path / "page")) == sorted((tmp_path / "page").iterdir())
    page = require_references(tmp_path / "page", table_ensemble_size.NAME)
    assert "the library's default learner" in page["setup"]
    assert "the paper's constants are not used" in page["setup"]


def test_a_tiny_grid_is_trained_and_kept(tmp_path):
    """One real cell, from settings to a record that is not computed again."""
    settings = dataclasses.replace(Settings().made_quick(), steps=60, episodes=3, points=4)
    told = []
    contenders = [Contender("random", "random")]
    found = trained.run(CARTPOLE, contenders, settings, told.append, Execution(tmp_path))
    assert found.found["random"].arrays["eval/frozen/discounted"].shape == (2, 3)
    assert np.all(found.found["random"].arrays["terminations"] > 0)
    heard = len(told)
    again = trained.run(CARTPOLE, contenders, settings, told.append, Execution(tmp_path))
    assert heard > 0
    assert len(told) == heard
    assert again.found["random"].about == found.found["random"].about


def test_risk_neutral_agents_share_their_program_with_the_others():
    """They are written as CVaR 1: the same kind of agent with another number, and the same cell wherever it stands."""
    cells = {
        one.label: trained.cell(HIGHWAY, one, Settings()) for one in table_highway.AGENTS if one.agent == "sentinel"
    }
    env = make_env(HIGHWAY.env)
    kinds = {str(jax.tree.structure(cell.make_agent(env))) for cell in cells.values()}
    assert len(cells) == 3
    assert len(kinds) == 1
    size, lam, pair = (
        next(one for one in recipe.CONTENDERS if one.label == label)
        for recipe, label in (
            (table_ensemble_size, "K = 4"),
            (fig_ftrl_lambda, "risk-neutral, λ = 1"),
            (fig_risk_measures, "risk-neutral"),
        )
    )
    assert len({trained.cell(CARTPOLE, one, Settings()).id for one in (size, lam, pair)}) == 1


def test_the_numbers_of_single_runs_are_enough_for_the_statistics(results, records_of):
    """What is committed of a table: mean, interval and paired test come out of its CSV alone."""
    with open(results("table-highway") / "table-highway-runs.csv") as file:
        rows = list(csv.DictReader(file))
    records = records_of("table-highway")
    assert len(rows) == len(records.found) * records.settings.runs
    metrics = [name for name in rows[0] if name not in ("agent", "seed")]
    assert {"value", "tail", "crashes", "training_value", "value, dense traffic"} <= set(metrics)
    of = {label: np.array([float(row["crashes"]) for row in rows if row["agent"] == label]) for label in records.found}
    ours, rivals = of.pop(table_highway.COMPOSITE), {label: of[label] for label in table_highway.RIVALS}
    told = compare(ours, rivals, better="low")
    shown = against(records, table_highway.CRASHES, table_highway.COMPOSITE, table_highway.RIVALS)
    assert told == shown
    page = (results("table-highway") / "table-highway.json").read_text()
    assert f"{summarise(ours, worse='high').mean:.1f} crashes" in page


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Records that experiments share."""
    return tmp_path_factory.mktemp("kept")


@pytest.mark.slow
@pytest.mark.parametrize("name", [experiment.name for experiment in EXPERIMENTS if experiment.grid])
def test_every_experiment_runs_with_the_tuned_preset(name, kept, tmp_path):
    """Nothing is fake here: all agents and reference drivers are trained and evaluated, all files are written."""
    common = ["--preset", "tuned", "--quick", "--records", str(kept), "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [name, *common])
    assert done.exit_code == 0, done.output
    page = json.loads((tmp_path / f"{name}.json").read_text())
    assert (page["options"]["preset"], page["quick"]) == ("tuned", True)
