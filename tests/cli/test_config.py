"""``sentinel train``: environments with settings and wrappers, configurations as files, and whom to trust."""

import json

import gymnasium
import pytest

from sentinel_rl.cli.environments import EnvRequest, load_wrapper, parse_env_settings
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.run_folder import status

SETTINGS = ("atoms=5", "hidden=4", "samples=8", "batch=8", "capacity=64", "learn_every=20", "warmup=10")
SMALL = ("--set", "k=2", *(word for setting in SETTINGS for word in ("--set", setting)), "--steps", "60", "--quiet")

OWN = """
import gymnasium

class Half(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward / 2

def nothing(env):
    return 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file of wrappers, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


@pytest.fixture
def wrapped(run, here):
    """A run with settings and a wrapper."""
    code, _, complaint = run(
        *("train", "--env", "CartPole-v1", "--env-kwargs", "sutton_barto_reward=True", "--wrapper", "mine.py:Half"),
        *(*SMALL, "--set", "v_min=-1", "--set", "v_max=1", "--out", "run"),
    )
    assert code == 0, complaint
    return here / "run"


def test_settings_and_wrappers_make_the_environment(run, wrapped):
    """Sutton and Barto's reward is -1 at the end and 0 before; the wrapper halves it."""
    about = status(wrapped).about
    assert (about["env"], about["env_kwargs"], about["wrappers"]) == (
        "CartPole-v1",
        {"sutton_barto_reward": True},
        ["mine.py:Half"],
    )
    episodes = (wrapped / "seed_0.monitor.csv").read_text().splitlines()[2:]
    assert episodes
    assert {line.split(",")[0] for line in episodes} == {"-0.5"}


def test_code_that_a_run_names_is_imported_only_when_trusted(run, wrapped, here):
    (here / "mine.py").write_text(f"open({str(here / 'ran')!r}, 'w').close()\n{OWN}")
    for command in (
        ("eval", wrapped, "--episodes", 2),
        ("assess", wrapped),
        ("watch", wrapped),
        ("frontier", wrapped, "--episodes", 2),
        ("train", "--config", wrapped, "--out", "other"),
        ("train", "--config", wrapped, "--env", "CartPole-v1", "--out", "other"),
    ):
        code, _, complaint = run(*command)
        assert code == 2
        assert "names code to import: mine.py:Half" in complaint
        assert "--trust" in complaint
    assert not (here / "ran").exists()
    code, out, complaint = run("eval", wrapped, "--episodes", 2, "--trust")
    assert code == 0, complaint
    assert (here / "ran").exists()
    assert "-0.5" in out


def test_the_configuration_of_a_run_is_a_valid_one_and_typed_options_win(run, wrapped):
    code, _, complaint = run("train", "--config", wrapped, "--trust", "--seeds", "4,", "--quiet", "--out", "again")
    assert code == 0, complaint
    first, second = status(wrapped), status("again")
    assert second.about == {**first.about, "seeds": [4]}
    assert second.configuration["agent"] == first.configuration["agent"]


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_a_file_of_ones_own(run, here, kind):
    """Its wrappers are the user's own: nothing needs to be trusted."""
    asked = {"env": "CartPole-v1", "agent": "sentinel", "steps": 60, "seeds": [1, 2]}
    asked["options"] = {"k": 2, "atoms": 5, "hidden": [4], "samples": 8, "batch": 8, "capacity": 64, "warmup": 10}
    text = json.dumps(asked | {"wrappers": ["mine:Half"]})
    if kind == "toml":
        options = "\n".join(f"{name} = {value}" for name, value in asked["options"].items())
        text = f'env = "CartPole-v1"\nsteps = 60\nseeds = 2\nwrappers = ["mine:Half"]\n[options]\n{options}\n'
    (here / f"asked.{kind}").write_text(text)
    code, _, complaint = run("train", "--config", f"asked.{kind}", "--set", "k=3", "--quiet", "--out", "run")
    assert code == 0, complaint
    about = status("run").about
    assert (about["options"]["k"], about["options"]["hidden"], about["wrappers"]) == (3, [4], ["mine:Half"])
    assert about["seeds"] == ([1, 2] if kind == "json" else [0, 1])


def test_another_environment_or_agent_does_not_inherit(run, here):
    (here / "asked.json").write_text(json.dumps({"env": "CartPole-v1", "env_kwargs": {"x": 1}, "options": {"k": 2}}))
    code, _, complaint = run(
        *("train", "--config", "asked.json", "--env", "CartPole-v0", "--agent", "random", "--steps", 30, "--quiet"),
        *("--out", "run"),
    )
    assert code == 2  # a file without an agent speaks of any agent: k is none of this one's
    assert "unknown option k" in complaint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not readable as JSON"),
        ('{"evn": "CartPole-v1"}', "did you mean env?"),
        ('{"env": 3}', "env must be a text"),
        ('{"steps": true, "env": "CartPole-v1"}', "steps must be a whole number"),
        ('{"agent": "sentinel"}', "which environment?"),
        ("[]", "expected an object"),
        ('{"env": "CartPole-v1", "agent": "wizard"}', "--agent wizard"),
    ],
)
def test_a_file_that_says_something_else_is_refused(run, here, content, words):
    (here / "asked.json").write_text(content)
    code, _, complaint = run("train", "--config", "asked.json", "--out", "run")
    assert code == 2
    assert words in complaint


def test_a_missing_file_is_named(run, here):
    code, _, complaint = run("train", "--config", "nowhere.json", "--out", "run")
    assert code == 2
    assert "nowhere.json" in complaint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine", "module:name"),
        ("mine:Missing", "has no class or function Missing"),
        ("nowhere:Half", "cannot import nowhere"),
        ("nowhere.py:Half", "there is no such file"),
        ("mine:nothing", "it gave int"),
        ("math:sqrt", "it cannot wrap CartPole-v1"),
    ],
)
def test_a_wrapper_that_is_none(here, text, words):
    with pytest.raises(UsageError, match=words):
        EnvRequest("CartPole-v1", {}, (text,)).make()


def test_settings_of_environments():
    handle = EnvRequest("sentinel/highway-v1", {"lanes_count": 4}).make()
    assert (handle.is_jax, handle.env.lanes_count) == (True, 4)
    assert load_wrapper("gymnasium.wrappers:FlattenObservation") is gymnasium.wrappers.FlattenObservation
    assert parse_env_settings(['{"a": [1, 2]}', "b=x"]) == {"a": [1, 2], "b": "x"}
    for wrong in ("novalue", "{", "1=2"):
        with pytest.raises(UsageError, match="--env-kwargs"):
            parse_env_settings([wrong])
    with pytest.raises(UsageError, match="lanes"):
        EnvRequest("sentinel/highway-v1", {"lanes": 4}).make()


def test_the_shell_can_complete(sentinel):
    shown = sentinel("--show-completion", "bash")
    assert shown.returncode == 0, shown.stderr
    assert "_SENTINEL_COMPLETE" in shown.stdout
