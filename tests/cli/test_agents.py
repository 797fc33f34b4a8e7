"""``--agent``: every agent is trained, verified, evaluated and asked by the same commands."""

import json

import pytest

from sentinel_rl.api.classes import LEARNERS

SMALL = ("hidden=4", "samples=8", "batch=8", "capacity=64", "learn_every=20", "warmup=10")
SETTINGS = {
    "cdqn": (*SMALL, "atoms=5"),
    "vdqn": (*SMALL, "use_epsilon=true"),
    "vdqn-cvar": (*SMALL, "draws=5"),
    "uadqn": (*SMALL, "quantiles=5"),
    "random": ("action=1", "learn_every=20"),
}


# The agents share all of the path; the slow ones are run with the long tests.
@pytest.mark.usefixtures("quick_compile")
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
        (("--agent", "uadqn", "--set", "quantiles=0"), "quantiles must be a whole number"),
        (("--agent", "random", "--set", "action=7"), "action 7 does not exist"),
        (("--agent", "uadqn", "--gamma", "2"), "gamma must be in (0, 1]"),
    ],
)
def test_bad_input_is_told_before_anything_is_written(run, tmp_path, arguments, message):
    code, _, complaint = run("train", "--env", "CartPole-v1", "--out", tmp_path / "none", "--quiet", *arguments)
    assert (code, message in complaint) == (2, True), complaint
    assert not (tmp_path / "none").exists()
