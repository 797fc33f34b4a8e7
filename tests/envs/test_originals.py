"""Originals of the twins: a word on what to install where they are not there, and the real one where it is."""

import importlib
import json
import sys

import numpy as np
import pytest

from sentinel_rl import Sentinel
from sentinel_rl.cli import main
from sentinel_rl.envs import resolve_env
from sentinel_rl.errors import UsageError

SMALL = (
    "--preset",
    "paper",
    "--k",
    "2",
    "--set",
    "hidden=8",
    "--set",
    "capacity=200",
    "--set",
    "samples=8",
    "--set",
    "batch=8",
    "--quiet",
)


def test_without_the_package_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "highway_env", None)
    with pytest.raises(UsageError, match=r"pip install 'sentinel-rl\[highway\]'. Its twin sentinel/highway-v1"):
        resolve_env("highway-v0")


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_trained_on_the_twin_is_played_in_the_original_and_the_other_way_round(tmp_path, capsys):
    importlib.import_module("highway_env")
    course = (*SMALL, "--steps", "60", "--set", "learn_every=20")
    twin, original = tmp_path / "twin", tmp_path / "original"
    assert call("train", "--env", "sentinel/highway-v1", *course, "--out", twin) == 0
    assert call("eval", twin, "--on", "highway-env", "--episodes", "2") == 0
    rows = json.loads((twin / "eval_highway-env.json").read_text())["rows"]
    assert rows["all"]["episodes"] == 2
    assert 0 < rows["all"]["return"] <= 40
    assert call("train", "--env", "highway-v0", *course, "--out", original) == 0
    assert call("eval", original, "--on", "sentinel/highway-v1", "--episodes", "20") == 0
    assert "played on sentinel/highway-v1" in capsys.readouterr().out
    policy = Sentinel.load(original / "policy_seed_0.zip", env="highway-v0")
    assert policy.predict(np.zeros((5, 5)))[0] in range(5)
    assert policy.agent.support.high == pytest.approx(Sentinel.load(twin / "policy_seed_0.zip").agent.support.high)
