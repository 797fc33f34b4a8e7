"""``sentinel stress`` and ``sentinel frontier`` on what is quick to play; real drivers are played in the long tests."""

import json

import numpy as np
import pytest

from sentinel_rl.cli import frontier as frontier_command
from sentinel_rl.study import scenarios
from sentinel_rl.training.metrics import Episodes


@pytest.fixture
def quick(monkeypatch):
    """Made-up episodes: crashes grow with what differs from the paper's highway, alpha is safer when small."""
    asked = []

    def play(agent, state, env, episodes=100, seed=0, gamma=None):
        asked.append(env)
        rng, shape = np.random.default_rng(seed), episodes
        road = getattr(env, "env", env)
        danger = (
            0.05 + 0.2 * (road.vehicles_density > 1) + 0.1 * float(road.shift is not None and road.shift.wrecks > 0)
        )
        level = getattr(getattr(agent, "aleatory", None), "alpha", 0.5)
        crashed = rng.random(shape) < danger * float(level)
        reward = 40.0 * ~crashed + 5 * float(level)
        return Episodes(reward, reward, np.full(shape, 40), crashed), {
            "mean_speed": np.full(shape, 20 + 5 * float(level))
        }

    monkeypatch.setattr(scenarios, "evaluate_watched", play)
    monkeypatch.setattr(frontier_command, "evaluate_watched", play)
    return asked


def test_stress_plays_all_scenarios_and_tells_the_split(run, quick, tmp_path):
    arguments = ("highway-rule", "highway-search", "--episodes", "50", "--strengths", "1,3", "--out", tmp_path)
    code, out, complaint = run("stress", *arguments)
    assert code == 0, complaint
    for words in ("traffic as trained", "calibration scenarios", "test scenarios", "standstill", "cutin"):
        assert words in out
    assert out.index("standstill") < out.index("test scenarios") < out.index("braker")
    assert {path.suffix for path in tmp_path.glob("stress.*")} == {".json", ".csv", ".png", ".svg"}
    rows = json.loads((tmp_path / "stress.json").read_text())["rows"]
    assert len(rows) == 2 * (1 + 6 * 2) == len(quick)
    assert {row["split"] for row in rows if row["scenario"] in ("blocked", "braker", "cutin")} == {"test"}
    dense = next(row for row in rows if row["scenario"] == "dense")
    assert dense["crash_low"] < dense["crash"] < dense["crash_high"]


def test_stress_may_leave_the_test_scenarios_alone(run, quick, tmp_path):
    code, out, _ = run("stress", "highway-rule", "--split", "calibration", "--strengths", "2", "--out", tmp_path)
    assert code == 0
    assert "test scenarios" not in out
    assert len(quick) == 1 + 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("highway-rule", "--strengths", "0"), "--strengths 0: give different numbers above 0, at most 3.5"),
        (("highway-rule", "--strengths", "a"), "--strengths a"),
        (("nothing",), "nothing holds no training run"),
    ],
)
def test_what_stress_refuses(run, arguments, message):
    code, _, complaint = run("stress", *arguments)
    assert (code, message in complaint) == (2, True), complaint


def test_frontier_of_one_agent(run, quick, tmp_path):
    arguments = ("--risk", "crash", "--gain", "speed", "--alphas", "0.1,0.5,1", "--episodes", "400")
    code, out, complaint = run(
        "frontier", "highway-composite", *arguments, "--on", "sentinel/highway-dense-v1", "--out", tmp_path
    )
    assert code == 0, complaint
    assert "terminated episodes" in out
    assert "separated" in out
    content = json.loads((tmp_path / "frontier.json").read_text())
    assert [row["policy"] for row in content["rows"]] == ["α = 0.1", "α = 0.5", "α = 1"]
    assert [row["gain"] for row in content["rows"]] == pytest.approx([20.5, 22.5, 25.0])
    assert not any(row["dominated"] for row in content["rows"]), "each is safer or faster"
    assert [pair["separated"] for pair in content["neighbours"]] == [True, True]
    assert {path.suffix for path in tmp_path.glob("frontier.*")} == {".json", ".csv", ".png", ".svg"}


def test_frontier_of_several_agents_as_they_were_trained(run, quick, tmp_path):
    code, out, complaint = run("frontier", "highway-neutral", "highway-composite", "--risk", "crash", "--out", tmp_path)
    assert code == 0, complaint
    rows = json.loads((tmp_path / "frontier.json").read_text())["rows"]
    assert [row["policy"] for row in rows] == ["highway-neutral", "highway-composite"]
    assert "highway-neutral and highway-composite: crash differs by" in out


def test_frontier_refuses_levels_that_do_not_exist(run):
    code, _, complaint = run("frontier", "highway-composite", "--alphas", "0,1")
    assert (code, "--alphas 0,1: give different numbers above 0, at most 1" in complaint) == (2, True)


@pytest.mark.slow
def test_a_real_driver_in_real_scenarios(run, tmp_path):
    code, _, complaint = run("stress", "highway-neutral", "--episodes", "100", "--strengths", "3", "--out", tmp_path)
    assert code == 0, complaint
    rows = {row["scenario"]: row for row in json.loads((tmp_path / "stress.json").read_text())["rows"]}
    assert rows["as trained"]["crash"] < 0.05
    assert rows["dense"]["crash"] > 0.3
    assert 20 <= rows["as trained"]["speed"] <= 30
