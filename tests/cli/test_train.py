"""``sentinel train`` and the commands that read its runs, in this process and with small agents."""

import json
import shutil
import signal

import numpy as np
import pytest

from sentinel_rl import Sentinel
from sentinel_rl.agents import make_agent
from sentinel_rl.cli import main
from sentinel_rl.cli import train as train_command
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.checkpoint import STATE
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.metrics import metric_names
from tests.tiny import tiny

# The agent of `tests.tiny`.
SETTINGS = ("atoms=5", "hidden=4", "samples=8", "batch=8", "capacity=64", "learn_every=20", "warmup=10")
SMALL = (
    "--k",
    "2",
    "--preset",
    "paper",
    *(word for setting in SETTINGS for word in ("--set", setting)),
    "--steps",
    "120",
    "--quiet",
)
POLE = ("--env", "CartPole-v0", *SMALL, "--save-every", "40")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run of two seeds."""
    path = tmp_path_factory.mktemp("runs") / "pole"
    with pytest.raises(SystemExit) as ended:
        main(["train", *POLE, "--seeds", "3,7", "--out", str(path)])
    assert ended.value.code == 0
    return path


@pytest.fixture
def copied(trained, tmp_path):
    """The same run, to be spoilt."""
    return shutil.copytree(trained, tmp_path / "copy")


def test_a_finished_run_has_policies_episodes_and_a_result(trained):
    found = status(trained)
    assert (found.state, found.step) == ("finished", 120)
    assert [line["seed"] for line in found.result["seeds"]] == [3, 7]
    for seed in (3, 7):
        agent = Sentinel.load(trained / f"policy_seed_{seed}.zip")
        assert (agent.seed, agent.num_timesteps, agent.agent.k) == (seed, 120, 2)
        assert agent.predict(np.zeros(4))[0] in (0, 1)
        lines = (trained / f"seed_{seed}.monitor.csv").read_text().splitlines()
        lengths = [int(line.split(",")[1]) for line in lines[2:]]
        assert 60 < sum(lengths) <= 120
        assert len(lengths) == next(line["episodes"] for line in found.result["seeds"] if line["seed"] == seed)
    curves = (trained / "curves.csv").read_text().splitlines()
    assert {"seed", "step", "return", "terminations", "loss", "epistemic"} <= set(curves[0].split(","))
    assert len(curves) == 1 + 2 * 120


def test_the_folder_says_what_was_asked_for_and_what_it_is(trained):
    """The request is what commands make the run again from; the configuration names every default."""
    found = status(trained)
    assert {name: found.about[name] for name in ("agent", "env", "steps", "seeds")} == {
        "agent": "sentinel",
        "env": "CartPole-v0",
        "steps": 120,
        "seeds": [3, 7],
    }
    assert found.about["options"]["hidden"] == [4]
    assert found.configuration["agent"]["learning_rate"] == 2.5e-4
    assert found.configuration["plan"]["learn"]["period"] == 20
    assert (found.configuration["env"]["max_steps"], found.configuration["seeds"]) == (200, [3, 7])


def test_the_policy_is_that_of_the_class(trained):
    """The command trains what ``Sentinel.learn_many`` trains."""
    direct = tiny().learn_many(120, [3, 7])[1]
    np.testing.assert_array_equal(
        Sentinel.load(trained / "policy_seed_7.zip").assess(np.ones(4)).probs, direct.assess(np.ones(4)).probs
    )


def test_a_finished_or_other_run_is_not_touched(run, trained):
    code, _, complaint = run("train", *POLE, "--seeds", "3,7", "--out", trained)
    assert code == 2
    assert "finished" in complaint
    code, _, complaint = run("train", *POLE, "--seeds", "2", "--lam", "2", "--out", trained)
    assert code == 2
    assert "another configuration" in complaint
    assert "agent.lam" in complaint
    assert "[0,1]" in complaint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "gama=0.9"), "unknown option gama: did you mean gamma?"),
        (("--set", "gamma"), "write it as name=value"),
        (("--set", "batch=big"), "batch must be a whole number, got 'big'"),
        (("--set", "lam=big"), "lam must be a number"),
        (("--set", "hidden=big"), "hidden must be sizes"),
        (("--set", "mask=dice"), "mask must be one of"),
        (("--set", "layer_norm=yes"), "layer_norm must be true or false, got 'yes'"),
        (("--set", "layer_norm=1"), "layer_norm must be true or false, got 1"),
        (("--set", "layer_nrm=true"), "unknown option layer_nrm: did you mean layer_norm?"),
        (("--set", "layer_norm=true", "--preset", "paper"), "layer_norm needs one of the encoders mlp, set, cnn"),
        (("--set", "learn_every=0"), "learn_every is a number of steps of at least 1"),
        (("--k", "0"), "k must be"),
        (("--aleatory", "cvr:0.25"), "did you mean 'cvar'"),
        (("--preset", "other"), "unknown preset"),
        (("--preset", "literal"), "unknown preset 'literal': that is a reading, reading='literal'"),
        (("--reading", "other"), "unknown reading 'other': choose one of sound, literal"),
        (("--csv", "x.csv", "--agent", "cdqn", "--reading", "loud"), "unknown reading 'loud'"),
        (("--seeds", "0"), "--seeds 0"),
        (("--seeds", "1,1"), "list of different ones"),
        (("--seeds", "x"), "--seeds x"),
        (("--env", "CartPole-v9"), "unknown environment"),
        (("--env", "Pendulum-v1"), "Discrete"),
    ],
)
def test_bad_input_is_told_before_anything_is_written(run, tmp_path, arguments, message):
    code, _, complaint = run("train", "--env", "CartPole-v1", "--out", tmp_path / "none", "--quiet", *arguments)
    assert (code, message in complaint) == (2, True), complaint
    assert not (tmp_path / "none").exists()


class EnoughError(UsageError):
    """The command has asked for what it should."""


@pytest.mark.parametrize(("text", "value"), [("true", True), ("True", True), ("false", False), ("None", None)])
@pytest.mark.parametrize("agent", ["sentinel", "uadqn"])
def test_layer_norm_is_set_as_other_options_are(run, tmp_path, monkeypatch, agent, text, value):
    asked = {}

    def noted(*arguments, **how):
        asked.update(how)
        raise EnoughError("noted")

    monkeypatch.setattr(train_command, "train", noted)
    given = ("--agent", agent, "--set", f"layer_norm={text}", "--set", "encoder=mlp", "--quiet", "--out", tmp_path)
    code, _, complaint = run("train", "--env", "CartPole-v1", *given)
    assert (code, "noted" in complaint) == (2, True), complaint
    assert asked["layer_norm"] is value
    made = make_agent(agent, "CartPole-v1", **{name: asked[name] for name in ("layer_norm", "encoder")})
    assert made.layer_norm is (value or None)


def test_the_help_of_a_command_teaches_layer_norm(run):
    code, printed, _ = run("train", "--help")
    assert (code, "--set layer_norm=true" in printed) == (0, True)


def test_a_stop_saves_and_names_the_command_that_resumes(run, trained, tmp_path, monkeypatch):
    whole = train_command.train

    def interrupted(*args, **how):
        return whole(*args, callbacks=lambda progress: signal.raise_signal(signal.SIGTERM), **how)

    monkeypatch.setattr(train_command, "train", interrupted)
    arguments = ("train", *POLE, "--seeds", "3,7", "--out", tmp_path / "run")
    code, _, told = run(*arguments, "--overwrite")
    assert code == 75
    assert "stopped after 40 of 120 steps, and saved" in told
    assert f"resume with: sentinel train --env CartPole-v0 --k 2 {' '.join(SMALL[2:])}" in told
    assert "--overwrite" not in told
    assert status(tmp_path / "run").step == 40
    monkeypatch.setattr(train_command, "train", whole)
    assert run(*arguments)[0] == 0
    for seed in (3, 7):
        assert_same_policy(tmp_path / "run", trained, seed)
    assert status(tmp_path / "run").result == status(trained).result


def assert_same_policy(one, other, seed):
    one, other = (Sentinel.load(path / f"policy_seed_{seed}.zip").assess(np.ones(4)).probs for path in (one, other))
    np.testing.assert_array_equal(one, other)


def test_verify(run, copied):
    code, out, _ = run("verify", copied)
    assert code == 0
    assert "from step 80 to 120" in out
    assert "bit for bit" in out


def test_verify_from_the_beginning_and_with_nothing(run, copied):
    shutil.rmtree(copied / "checkpoints" / "step_000000080")
    code, out, _ = run("verify", copied)
    assert code == 0
    assert "from step 0 to 120" in out
    shutil.rmtree(copied / "checkpoints")
    assert run("verify", copied)[0] == 2


def test_verify_sees_a_state_of_another_history(run, copied, tmp_path):
    run("train", *POLE, "--set", "learning_rate=0.1", "--seeds", "3,7", "--out", tmp_path / "other")
    newest = copied / "checkpoints" / "step_000000120"
    shutil.rmtree(newest)
    shutil.copytree(tmp_path / "other" / "checkpoints" / "step_000000120", newest)
    code, _, complaint = run("verify", copied)
    assert code == 3
    assert "arrays differ" in complaint
    (newest / STATE).write_bytes(b"nonsense")
    assert run("verify", copied)[0] == 3


def test_eval(run, copied):
    code, out, _ = run("eval", copied, "--episodes", "20")
    assert code == 0
    assert "terminations" in out
    rows = json.loads((copied / "eval.json").read_text())["rows"]
    assert list(rows) == ["3", "7", "all"]
    assert rows["all"]["episodes"] == 40
    assert rows["all"]["return"] == pytest.approx((rows["3"]["return"] + rows["7"]["return"]) / 2)
    assert rows["3"]["tail"] <= rows["3"]["value"]
    assert {"episodes", *metric_names()} == set(rows["all"])
    assert (copied / "eval.csv").read_text().count("\n") == 4


def test_frontier(run, copied):
    code, out, _ = run("frontier", copied, "--episodes", "10", "--alphas", "0.05,1")
    assert code == 0
    assert "0.05" in out
    assert "runs" in out
    rows = json.loads((copied / "frontier.json").read_text())["rows"]
    assert [(row["runs"], row["episodes"]) for row in rows] == [(2, 20), (2, 20)]
    code, _, complaint = run("frontier", copied, "--episodes", "10", "--gain", "speed")
    assert (code, "does not tell a speed" in complaint) == (2, True)
    assert {path.suffix for path in copied.glob("frontier.*")} == {".json", ".csv", ".png", ".svg"}


def test_assess(run, trained, tmp_path):
    code, out, _ = run("assess", trained, "--obs", "0,0,0.1,0", "--plot", tmp_path / "why.png")
    assert code == 0
    assert "ignorance" in out
    assert max(map(len, out.splitlines())) <= 80
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run("assess", trained, "--seed-index", "1", "--json")
    assert json.loads(out)["action"] in (0, 1)
    for arguments in (("--obs", "1,2"), ("--obs", "a"), ("--seed-index", "2"), ("--plot", "why.txt")):
        assert run("assess", trained, *arguments)[0] == 2


def test_folders_without_a_finished_run(run, copied, tmp_path):
    for command in ("eval", "assess", "verify", "frontier", "stress"):
        code, _, complaint = run(command, tmp_path / "nothing")
        assert code == 2
        assert "holds no training run" in complaint
    (copied / "policy_seed_7.zip").unlink()
    code, _, complaint = run("eval", copied)
    assert code == 2
    assert "no policy of seed 7" in complaint


# Agents share the path: SENTINEL, which takes longest to compile, is run with the long tests.
@pytest.mark.parametrize("agent", ["random", pytest.param("sentinel", marks=pytest.mark.slow)])
def test_an_environment_without_a_jax_form(run, tmp_path, monkeypatch, agent):
    own = ("--set", "reward_range=-1,0", *SMALL) if agent == "sentinel" else ("--set", "learn_every=20", "--quiet")
    place = tmp_path / "run"
    arguments = ("--env", "Acrobot-v1", "--agent", agent, *own, "--steps", "60", "--seeds", "2", "--out", place)
    assert run("train", *arguments)[0] == 0
    assert status(place).state == "finished"
    curves = (place / "curves.csv").read_bytes()
    (place / "finished.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(HostRun, "step", lambda self: pytest.fail("a seed that is done is not trained again"))
        assert run("train", *arguments)[0] == 0
    assert (place / "curves.csv").read_bytes() == curves
    code, out, _ = run("assess", place)
    assert code == 0, out
    assert run("verify", place)[0] == 2


def test_demo_trains_and_explains(run, tmp_path):
    code, out, complaint = run("demo", "--quick", "--out", tmp_path)
    assert code == 0, complaint
    for words in ("100 Gaussian models", "How sure is it?", "ignorance", "decision.png"):
        assert words in out
    assert (tmp_path / "decision.png").exists()
    assert (tmp_path / "watch.html").read_text().startswith("<!doctype html>")
    assert str(tmp_path / "watch.html") in out


def test_periodic_evaluations_keep_the_best_policy(run, tmp_path):
    place, scalars = tmp_path / "run", tmp_path / "logs" / "scalars.csv"
    asked = ("--seeds", "3,7", "--evaluate-every", "40", "--evaluate", "3", "--csv", scalars, "--out", place)
    assert run("train", *POLE, *asked)[0] == 0
    assert status(place).configuration["evaluation"]["every"] == 40
    for seed in (3, 7):
        best, last = (Sentinel.load(place / f"{name}_seed_{seed}.zip") for name in ("best", "policy"))
        assert best.num_timesteps in (40, 80, 120)
        assert last.num_timesteps == 120
    head, *rows = scalars.read_text().splitlines()
    assert head == "step,seed,name,value"
    named = {tuple(row.split(",")[:3]) for row in rows}
    assert {(str(step), seed, "train/loss") for step in (40, 80, 120) for seed in "37"} <= named
    code, _, complaint = run("train", *POLE, "--seeds", "3,7", "--out", place)
    assert (code, "evaluation" in complaint) == (2, True), "evaluations are part of what a run is"


def test_options_reach_the_training_and_the_sinks(run, tmp_path, monkeypatch):
    asked = []

    def far_enough(*args, **how):
        asked.append(how)
        raise UsageError("far enough")

    monkeypatch.setattr(train_command, "train", far_enough)
    options = ("--preset", "learner", "--k", "3", "--reading", "literal")
    arguments = (*options, "--evaluate-every", "50", "--evaluate", "7", "--strict-support")
    run("train", "--env", "CartPole-v0", "--out", tmp_path, *arguments, "--csv", tmp_path / "log.csv")
    run("train", "--env", "CartPole-v0", "--out", tmp_path, "--evaluate", "7")
    first, second = asked
    assert (first["preset"], first["reading"], first["k"]) == ("learner", "literal", 3)
    assert (first["evaluate"], first["evaluate_every"], first["strict"]) == (7, 50, True)
    assert [type(sink).__name__ for sink in first["sinks"]] == ["CSVSink"]
    assert (second["evaluate"], second["evaluate_every"], "reading" in second) == (0, None, False)
