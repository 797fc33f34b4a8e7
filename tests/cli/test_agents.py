"""``--agent``: every agent is trained, verified, evaluated and asked by the same commands."""

import json

import jax
import numpy as np
import pytest

from sentinel_rl.agents import make_agent
from sentinel_rl.api import load_agent
from sentinel_rl.api.classes import LEARNERS
from sentinel_rl.envs import make_env
from sentinel_rl.training.evaluation import evaluate
from tests.own import AGENT, ENV, registered

# The agents of `tests.learners`.
SMALL = ("hidden=4", "samples=8", "batch=8", "capacity=64", "learn_every=20", "warmup=10")
SETTINGS = {
    "cdqn": (*SMALL, "atoms=5"),
    "vdqn": (*SMALL, "use_epsilon=true"),
    "vdqn-cvar": (*SMALL, "draws=5"),
    "uadqn": (*SMALL, "quantiles=5"),
    "random": ("action=1", "learn_every=20"),
}


# The agents share all of the path; the slow ones are run with the long tests.
@pytest.mark.parametrize(
    "agent", [pytest.param(each, marks=() if each in ("uadqn", "random") else pytest.mark.slow) for each in SETTINGS]
)
def test_every_agent_goes_through_all_commands(run, tmp_path, agent):
    settings = [part for setting in SETTINGS[agent] for part in ("--set", setting)]
    place = tmp_path / "run"
    command = ("train", "--env", "CartPole-v0", "--agent", agent, "--steps", "60", "--out", place, *settings)
    code, printed, complaint = run(*command)
    assert (code, f"{agent} on CartPole-v0" in printed) == (0, True), complaint
    code, printed, complaint = run("verify", place)
    assert (code, "bit for bit" in printed) == (0, True), complaint
    assert run("eval", place, "--episodes", "3")[0] == 0
    assert json.loads((place / "eval.json").read_text())["rows"]["all"]["episodes"] == 3
    code, printed, _ = run("assess", place, "--obs", "0,0,0.1,0", "--json")
    why = json.loads(printed)
    assert (code, len(why["actions"]), bool(why["note"])) == (0, 2, True)
    code, _, complaint = run("frontier", place)
    assert (code, f"agents of kind '{agent}'" in complaint) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--agent", "dqn"), f"--agent dqn: choose one of {', '.join(LEARNERS)}"),
        (("--agent", "cdqn", "--k", "4"), "unknown option k"),
        (("--agent", "cdqn", "--aleatory", "cvar:0.25"), "unknown option aleatory"),
        (("--agent", "vdqn", "--set", "nois=0.2"), "unknown option nois: did you mean noise?"),
        (("--agent", "vdqn", "--set", "noise=loud"), "noise must be a number"),
        (("--agent", "vdqn", "--set", "use_epsilon=2"), "use_epsilon must be true or false"),
        (("--agent", "vdqn", "--set", "layer_norm=true"), "there is none: give encoder='mlp' or preset='learner'"),
        (("--agent", "uadqn", "--set", "quantiles=0"), "quantiles must be a whole number"),
        (("--agent", "random", "--set", "action=7"), "action 7 does not exist"),
        (("--agent", "uadqn", "--gamma", "2"), "gamma must be in (0, 1]"),
    ],
)
def test_bad_input_is_told_before_anything_is_written(run, tmp_path, arguments, message):
    code, _, complaint = run("train", "--env", "CartPole-v1", "--out", tmp_path / "none", "--quiet", *arguments)
    assert (code, message in complaint) == (2, True), complaint
    assert not (tmp_path / "none").exists()


def test_a_policy_is_judged_by_the_discount_of_the_task(run, tmp_path):
    """Not by that which its agent learns with, unless that is asked for."""
    place = tmp_path / "run"
    arguments = ("--agent", "random", "--gamma", "0.95", "--set", "learn_every=20", "--steps", "60", "--quiet")
    assert run("train", "--env", "CartPole-v0", *arguments, "--out", place)[0] == 0
    agent = load_agent(place / "policy_seed_0.zip", env="CartPole-v0")
    assert agent.agent.gamma == 0.95
    lengths = evaluate(agent.agent, agent.state, agent.handle, 5, seed=8).length
    for given, gamma in (((), 0.99), (("--gamma", "0.9"), 0.9)):
        assert run("eval", place, "--episodes", "5", "--seed", "8", *given)[0] == 0
        told = json.loads((place / "eval.json").read_text())
        assert told["gamma"] == gamma
        assert told["rows"]["0"]["length"] == np.mean(lengths)
        assert told["rows"]["0"]["value"] == pytest.approx(np.mean((1 - gamma**lengths) / (1 - gamma)), rel=1e-5)
    assert run("eval", place, "--gamma", "1.5")[0] == 2


def test_an_agent_and_an_environment_of_ones_own_go_through_all_commands(run, tmp_path):
    place = tmp_path / "run"
    settings = ("--set", "learn_every=20", "--set", "warmup=10", "--set", "optimism=2")
    with registered():
        command = ("train", "--env", ENV, "--agent", AGENT, *settings, "--steps", "60", "--seeds", "2", "--out", place)
        code, printed, complaint = run(*command)
        assert (code, f"{AGENT} on {ENV}" in printed) == (0, True), complaint
        assert run("verify", place)[0] == 0
        assert run("eval", place, "--episodes", "3")[0] == 0
        assert json.loads((place / "eval.json").read_text())["rows"]["all"]["return"] == 4.0
        assert "> take" in run("assess", place, "--obs", "0")[1]
        code, _, complaint = run("train", "--env", ENV, "--agent", AGENT, "--set", "optimsm=2", "--out", tmp_path / "x")
        assert (code, "did you mean optimism" in complaint) == (2, True)
    code, _, complaint = run("eval", place)
    assert (code, f"unknown environment {ENV!r}" in complaint) == (2, True), complaint


def test_a_policy_that_needs_no_training_is_evaluated_by_its_name(run):
    code, printed, complaint = run("eval", "constant", "--env", "CartPole-v1", "--set", "action=1", "--episodes", "3")
    assert (code, complaint) == (0, "")
    assert "constant" in printed
    assert "CartPole-v1" in printed
    agent, env = make_agent("constant", "CartPole-v1", action=1), make_env("CartPole-v1")
    played = evaluate(agent, agent.init(env.spec, jax.random.key(0)), env, 3)
    assert f"{played.reward.mean():.2f}" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("highway-rule",), "or an environment with --env for the policy highway-rule"),
        (("highway-rule", "--env", "CartPole-v1"), "highway-rule drives on the highway, and CartPole-v1"),
        (("highway-roule", "--env", "CartPole-v1"), "did you mean 'highway-rule'?"),
        (("sentinel", "--env", "CartPole-v1"), "sentinel must learn before it can be evaluated"),
        (("constant", "--env", "CartPole-v1", "--on", "CartPole-v0"), "use --on"),
        ((".", "--env", "CartPole-v1"), "to play the run . elsewhere, use --on"),
        (("runs/pole", "--set", "action=1"), "a run keeps its options"),
        (("constant", "--env", "CartPole-v1", "--set", "action"), "write it as name=value"),
    ],
)
def test_what_cannot_be_evaluated_without_training(run, arguments, message):
    code, _, complaint = run("eval", *arguments)
    assert (code, message in complaint) == (2, True), complaint


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["highway-rule", "highway-search"])
def test_reference_drivers_are_evaluated_by_their_names(run, driver):
    code, printed, complaint = run("eval", driver, "--env", "sentinel/highway-v1", "--episodes", "4")
    assert (code, complaint) == (0, "")
    assert driver in printed
