"""Where caution pays: the rules of the comparison on numbers whose answer is known, and the study from end to end."""

import csv
import dataclasses
import json

import jax
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sentinel_paper import caution, caution_cells, caution_looks, caution_page
from sentinel_paper.caution_cells import (
    ADDITIVE,
    CLIFF,
    COMPOSITE,
    GUARDED,
    HIGHWAY,
    LEVELS,
    LOGGED,
    NEUTRAL,
    SMALL,
    Arm,
    Measures,
    Settings,
    pieces,
    shard_of,
    situations,
)
from sentinel_paper.caution_findings import CLAIMS
from sentinel_paper.caution_verdicts import MATCH, Driven, Pays, choose, outcomes
from sentinel_paper.claims import Verdict
from sentinel_paper.cli import reproduce
from sentinel_paper.report import write_report
from sentinel_paper.trained import Execution, Unfinished
from sentinel_rl.envs import best_mean
from sentinel_rl.errors import UsageError
from sentinel_rl.study import Record
from sentinel_rl.study.run import run_cells
from tests.paper.fakes import ABOUT

RUNS = 14
SMALLER = Settings(runs=RUNS, steps=1_000, episodes=200, small_steps=500)
# Points of crashes that composite risk saves in a fake world, and metres per second that it is slower by.
SAVED = {"blocked": (30, 0.0), "braker": (-30, 0.0), "cutin": (0, 0.0)}


def driven(crashes, speed=30.0, runs=10):
    """Runs that differ a little, in the same way in every arm."""
    noise = np.linspace(-0.01, 0.01, runs)
    return Driven(crashes + noise, speed + noise, 40 - 40 * crashes + noise)


@pytest.mark.parametrize(
    ("crashes", "speed", "answer"),
    [
        (0.10, 30.0, Pays.PAYS),
        (0.10, 30.0 - 0.9 * MATCH, Pays.PAYS),
        (0.10, 30.0 - 1.1 * MATCH, Pays.UNDECIDED),
        (0.10, 31.0, Pays.PAYS),
        (0.30, 30.0, Pays.COSTS),
        (0.30, 31.0, Pays.UNDECIDED),
        (0.30, 29.0, Pays.COSTS),
        (0.20, 29.0, Pays.UNDECIDED),
    ],
)
def test_fewer_crashes_pay_unless_they_are_bought_with_speed(crashes, speed, answer):
    """The others crash in a fifth of their episodes at 30 m/s."""
    jitter = np.tile([0.001, -0.001], 5)
    ours = driven(crashes, speed)
    (one,) = outcomes({"road": ours._replace(crashes=ours.crashes + jitter)}, {"road": driven(0.2)})
    assert one.pays == answer
    assert one.crashes.difference == pytest.approx(crashes - 0.2)
    assert bool(one.why) == (answer == Pays.UNDECIDED)


def test_few_runs_decide_nothing_and_several_worlds_are_corrected_for():
    (few,) = outcomes({"road": driven(0.1, runs=5)}, {"road": driven(0.2, runs=5)})
    assert (few.pays, few.why) == (Pays.UNDECIDED, "5 runs are too few")
    alone = outcomes({"a": driven(0.1)}, {"a": driven(0.2)})[0]
    worlds = {name: driven(0.1) for name in "abc"}
    for one in outcomes(worlds, dict.fromkeys(worlds, driven(0.2))):
        assert one.crashes.p_holm == pytest.approx(3 * alone.crashes.p_holm)


def test_the_most_cautious_measures_of_equal_speed_are_chosen():
    speeds = {0.5: 30.1, 0.25: 29.8, 0.1: 29.0}
    candidates = {Measures(1.0, alpha): np.full(4, speed) for alpha, speed in speeds.items()}
    found = choose(candidates, np.full(4, 30.0))
    assert (found.measures.aleatory, found.is_match) == (0.25, True)
    assert found.gap == pytest.approx(-0.2)
    far = choose(candidates, np.full(4, 25.0))
    assert (far.measures.aleatory, far.is_match) == (0.1, False)


def test_arms_have_their_kinds_and_own_measures_among_the_levels():
    assert [Arm(measures).kind for measures in (NEUTRAL, ADDITIVE, COMPOSITE)] == list(caution_cells.KINDS)
    assert {arm.measures for arm in HIGHWAY.arms} <= set(LEVELS)
    assert min(Settings().seeds) == 4_000
    assert len(Settings().seeds) == 30


def test_every_cell_can_be_made_and_few_programs_serve_them():
    for settings in (SMALLER, SMALLER.made_quick()):
        for piece in pieces(settings):
            kinds = set()
            for (world, _), cell in piece.cells.items():
                agent = cell.make_agent(cell.make_env())
                assert cell.make_plan(agent).learn_times.size > 0
                kinds.add((world, str(jax.tree.structure(agent))))
            assert len(kinds) <= 2 * len({world for world, _ in piece.cells})


def test_pieces_are_shards():
    parts = pieces(SMALLER)
    assert [shard_of(parts, (i, 5)) for i in range(1, 6)] == [(part,) for part in parts]
    assert shard_of(parts, (1, 2)) + shard_of(parts, (2, 2)) == shard_of(parts, None) == parts
    with pytest.raises(UsageError, match="5 pieces"):
        shard_of(parts, (1, 6))


def fake(cell):
    """Drivers of equal speed; composite ones crash less often in one scenario and more often in another."""
    rng, runs = np.random.default_rng(7), len(cell.seeds)
    kind = Measures(*(float(cell.options[name].partition(":")[2]) for name in ("epistemic", "aleatory"))).kind
    arrays = {"steps": np.array([1]), "terminations": rng.integers(200, 240, runs) - 60.0 * (kind != "neutral")}
    for evaluation in cell.evaluations:
        scenario = evaluation.name.split()[0]
        rng = np.random.default_rng(len(scenario))  # all arms have the same luck
        saved, slower = SAVED.get(scenario, (0, 0.0)) if kind == "composite" else (0, 0.0)
        crashes = np.arange(evaluation.episodes)[None] < evaluation.episodes * (0.4 - saved / 100)
        stem = f"eval/{evaluation.name}"
        arrays[f"{stem}/terminated"] = crashes ^ (rng.random((runs, evaluation.episodes)) < 0.05)
        arrays[f"{stem}/reward"] = rng.normal(30, 1, (runs, evaluation.episodes))
        arrays[f"{stem}/mean_speed"] = 29.0 - slower + rng.normal(0, 0.05, runs)
    if "Guarded" in cell.label or "cliff" in cell.label:
        env = cell.make_env()
        best = best_mean(env).policy[0, 0]
        arrays["look/greedy"] = np.repeat(best[None], runs, axis=0).astype(float)
    if "gap" in cell.env.lower():
        arrays |= {f"look/{name}": rng.uniform(0.92, 0.99, runs) for name in caution_looks.SCORES}
        arrays["look/epistemic"] = rng.uniform(0.92, 0.99, runs) if kind == "composite" else np.full(runs, 0.5)
        arrays |= {f"look/{name}": rng.random(runs) for name in ("inside", "return_open")}
        arrays["eval/closed/reward"] = rng.random((runs, 3))
        arrays["look/entered"] = rng.uniform(0, 0.1, runs) + 0.5 * (kind == "additive")
    return Record(cell, arrays, ABOUT)


@pytest.fixture
def faked(monkeypatch):
    """No agent is trained in this test."""

    def grid(cells, store, report=None, examine=None, save_seconds=0.0):
        for cell in cells:
            if cell not in store:
                store.put(fake(cell))

    monkeypatch.setattr(caution, "run_grid", grid)
    monkeypatch.setattr("sentinel_rl.study.statistics._RESAMPLES", 99)
    monkeypatch.setattr(caution_cells, "STRENGTHS", (2.0,))
    monkeypatch.setattr(caution_cells, "LEVELS", (NEUTRAL, ADDITIVE, Measures(0.5, 0.5), COMPOSITE))
    monkeypatch.setattr(caution, "logged_record", lambda world, cell, quick: fake(cell))


def test_the_page_says_what_the_numbers_say(faked, tmp_path):
    records = caution.run(SMALLER, None, Execution(tmp_path / "records"))
    out = tmp_path / "results" / "caution"
    out.mkdir(parents=True)
    assert sorted(caution.render(records, out)) == sorted(out.iterdir())
    verdicts = {}
    for finding in caution.findings(records):
        verdicts.setdefault(finding.claim.name, {})[finding.setting] = finding.verdict
    assert set(verdicts) == set(CLAIMS)
    driving = verdicts["pays-under-shift"]
    assert driving["blocked: composite .25 against neutral"] == Verdict.HOLDS
    assert driving["braker: composite .25 against neutral"] == Verdict.FAILS
    assert driving["cutin: composite .25 against neutral"] == Verdict.UNDECIDED
    assert set(verdicts["additive-pays-under-shift"].values()) == {Verdict.UNDECIDED}
    assert set(verdicts["gap-is-known"].values()) == {Verdict.HOLDS}
    assert set(verdicts["gap-is-avoided"].values()) == {Verdict.HOLDS}
    assert set(verdicts["pays-in-training"].values()) == {Verdict.HOLDS}
    assert set(verdicts["tail-is-better"].values()) == {Verdict.UNDECIDED}, "all have the same policy"
    page = json.loads((out / "caution.json").read_text())
    answer = "At equal speed, caution pays in some traffic that was never seen and costs in other"
    assert page["answer"].startswith(answer)
    assert (out / "caution.md").read_text().split("\n\n")[2].startswith(answer), "the answer comes first"
    assert "What tells a gap best, by mean AUROC: logged maze: " in page["words"]
    row = next(row for row in page["results"] if row["world"] == "blocked")
    assert (row["verdict"], row["acting"]) == ("pays", "composite .25 against neutral")
    rows = list(csv.DictReader((out / "caution-runs.csv").read_text().splitlines()))
    assert len(rows) == len(records.arms(HIGHWAY)) * 4 * RUNS
    assert len([name for name in rows[0] if name.startswith("crashes, ")]) == len(situations(SMALLER))
    text = (out / "caution.md").read_text()
    assert "3.65" in text, "the exact optimum of the Guarded Maze"
    assert "Beyond the paper. Made by `sentinel reproduce caution --runs 14 --steps 1000 --seed 4000`" in text
    write_report(tmp_path / "results")
    html, twin = ((tmp_path / "results" / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert "0 results of the SENTINEL paper's experiments (UAI 2022) and 1 study beyond the paper" in twin
    assert "21 are not run yet" in twin, "no claim of the paper follows from it"
    assert html.count('<h2 id="beyond">Beyond the paper</h2>') == twin.count("## Beyond the paper\n") == 1


def test_pieces_are_kept_and_the_page_says_which_are_missing(faked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["--runs", "14", "--steps", "1000", "--shard", "3/5", "--preset", "tuned"]
    app = typer.Typer(add_completion=False)
    app.command()(reproduce)
    done = CliRunner().invoke(app, ["caution", *command])
    assert done.exit_code == 0, done.output
    assert "22 of 31 cells are done, and the first piece is not" in done.output
    assert "caution has no presets" in done.output
    settings = dataclasses.replace(Settings(), runs=14, steps=1_000)
    found = caution.run(settings, None, Execution(tmp_path / "results" / "records", shard=(1, 5)))
    assert [name.split(",")[0] for name in found.missing] == ["highway", "highway with a gap", "highway with a gap"]
    assert f"Not run yet: {'; '.join(found.missing)}." in caution_page.setup(found)
    findings = caution.findings(found)
    assert {one.claim.name for one in findings} == set(CLAIMS)
    compared = [one for one in findings if one.claim.name.endswith("under-shift") and one.setting != "not run"]
    assert f"of {len(compared)} comparisons pay" in caution_page.advice(findings), "what was not run is not counted"
    assert len(compared) == 9
    with pytest.raises(Unfinished):
        caution.run(SMALLER, None, Execution(tmp_path / "elsewhere", shard=(2, 5)))
    with pytest.raises(UsageError, match="engine local"):
        caution.run(SMALLER, None, Execution(tmp_path / "elsewhere", engine="ray"))


def tiny(world, measures):
    return caution_cells.cell(world, Arm(measures), dataclasses.replace(SMALLER.made_quick(), runs=2, small_steps=60))


def test_a_penalty_that_is_always_nothing_tells_nothing():
    """A neutral agent has no epistemic penalty: AUROC .5; the distance to the log is another matter."""
    record = caution_looks.logged_record(LOGGED, tiny(LOGGED, NEUTRAL), quick=True)
    assert record.arrays["look/epistemic"].tolist() == [0.5, 0.5]
    assert np.all(record.arrays["look/observations"] > 0.9)
    assert np.all((record.arrays["look/entered"] >= 0) & (record.arrays["look/entered"] <= 1))


def test_actions_in_all_cells_have_an_exact_law():
    cell = tiny(GUARDED, COMPOSITE)
    record = run_cells([cell], examine=caution_looks.cells_look)[0]
    records = caution.Records(SMALLER, {(GUARDED.name, Arm(COMPOSITE).label): record})
    laws = records.laws(GUARDED, Arm(COMPOSITE))
    assert set(laws) == {"mean", "CVaR .25", "CVaR .05"}
    best = best_mean(GUARDED.made()).value
    assert np.all(laws["mean"] <= best + 1e-9)
    assert np.all(laws["CVaR .05"] <= laws["CVaR .25"] + 1e-9)


@pytest.mark.parametrize("jumping", [0, 14, 19])
def test_a_world_that_most_neutral_agents_do_not_learn_is_named(jumping, monkeypatch):
    """Of 30 agents some jump off the cliff, for -21; the best mean is 6.72."""
    means = np.repeat([-21.0, 6.72], [jumping, 30 - jumping])
    monkeypatch.setattr(caution.Records, "laws", lambda records, world, arm: {"mean": means})
    records = caution.Records(SMALLER, {(CLIFF.name, Arm(NEUTRAL).label): None})
    told = records.unlearnt(CLIFF)
    assert told.startswith(" Only 11 of 30 neutral agents come near the best mean of the windy cliff (6.72)") == (
        jumping == 19
    )
    assert bool(told) == (jumping == 19)
    assert caution.Records(SMALLER, {}).unlearnt(CLIFF) == "", "nothing was run"


def test_a_log_never_shows_the_gap():
    env = LOGGED.made()
    opened = caution_looks._outside(LOGGED, tiny(LOGGED, NEUTRAL))
    log = caution_looks.logged(opened, seed=1)
    unseen = caution_looks.observed_cells(opened)[[kind == "?" for kind in opened.tables.kinds]]
    for seen in (log.obs, log.next_obs):
        assert not (np.asarray(seen)[:, None] == unseen[None]).all(axis=-1).any()
    assert env.walled


@pytest.mark.slow
def test_the_quick_command_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer(add_completion=False)
    app.command()(reproduce)
    done = CliRunner().invoke(app, ["caution", "--quick"])
    assert done.exit_code == 0
    page = json.loads((tmp_path / "results" / "caution" / "caution.json").read_text())
    assert page["quick"]
    assert {one["name"] for one in page["findings"]} == set(CLAIMS)
    assert {row["world"] for part in page["sections"] for row in part["rows"]} >= {world.name for world in SMALL}
