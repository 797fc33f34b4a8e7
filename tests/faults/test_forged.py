"""Files that somebody made up, with right checksums: every entry is checked, and nothing in a file is obeyed."""

import dataclasses
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sentinel_rl import load_agent
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.api.parameters import load_replay, save_replay
from sentinel_rl.cli import main
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import CorruptError, IncompatibleError, SentinelError, SentinelWarning
from sentinel_rl.storage.archive import LARGEST_MANIFEST, save_archive
from sentinel_rl.storage.checkpoint import MANIFEST
from sentinel_rl.storage.manifest import _checksum
from sentinel_rl.study import Cell, Record, Store
from sentinel_rl.training.policy import load_policy, save_policy
from sentinel_rl.training.standing import Standing
from tests.training.pole import SIZES

HANDLE = resolve_env("CartPole-v0")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agent = make_agent("sentinel", HANDLE, **SIZES)
    state = jax.jit(lambda key: agent.init(HANDLE.spec, key))(jax.random.key(1))
    return save_policy(tmp_path_factory.mktemp("policy") / "a", agent, state, HANDLE, "sentinel", SIZES, 0, 5)


def forge(source: Path, target: Path, change: Any) -> Path:
    """A copy with another manifest, whose checksum is right."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == MANIFEST:
                manifest = json.loads(content)
                manifest.pop("checksum")
                change(manifest)
                content = json.dumps(manifest | {"checksum": _checksum(manifest)}).encode()
            new.writestr(name, content)
    return target


def put(place: str, value: Any) -> Any:
    """A change of one entry of a manifest, ``"about.spec.obs_size"``."""

    def change(manifest: dict[str, Any]) -> None:
        *parents, last = place.split(".")
        for parent in parents:
            manifest = manifest[int(parent) if parent.isdecimal() else parent]
        if value is DELETED:
            del manifest[last]
        else:
            manifest[last] = value

    return change


DELETED = object()


def shown(value: Any) -> str:
    """The name of a forged entry in a test's."""
    return "deleted" if value is DELETED else str(value)[:30]


POLICIES = [
    *[("about.spec.obs_size", value) for value in (-1, 0, 3, 2.5, "4", None, 10**9, 2**70, [4])],
    *[("about.spec.num_actions", value) for value in (-1, 0, 3, "2", 10**9)],
    *[("about.spec.name", value) for value in (7, None, "x" * 5000, "a\x00b")],
    *[("about.spec.gamma", value) for value in (2.0, -0.1, "x", "inf")],
    *[("about.spec.max_steps", value) for value in (0, -3, "x", 2**70)],
    *[("about.spec.reward_range", value) for value in ("x", [1], [2.0, 1.0], ["a", "b"], 5)],
    *[("about.spec.action_names", value) for value in (["a"], "ab", [1, 2])],
    *[("about.spec.obs_low", value) for value in ([0.0], 3)],
    ("about.spec.more", 1),
    ("about.spec", DELETED),
    ("about.spec", []),
    *[("about.obs_shape", value) for value in (7, [-1], [-4], [4, 4], "4", None, DELETED, [2**70])],
    *[("about.first_action", value) for value in ("a", None, 1.5, DELETED)],
    *[("about.seed", value) for value in ("a", -1, 2**70, None, True, DELETED)],
    *[("about.num_timesteps", value) for value in ("a", -1, 2**70, DELETED)],
    *[("about.needs", value) for value in ("a", [1], 3)],
    *[("about.options.monitor_dir", value) for value in ("/elsewhere/x", "")],
    *[("about.options", value) for value in ([], "x", None, DELETED)],
    *[("about.options.k", value) for value in (0, "x", 10**9, None)],
    *[("about.options.atoms", value) for value in (0, "x", 3)],
    *[("about.options.hidden", value) for value in ("x", [0], [10**9])],
    *[("about.options.aleatory", value) for value in ("cvar:9", "nobody", 3)],
    *[("about.options.tensorboard_log", value) for value in ("x",)],
    *[("about.agent", value) for value in ("nobody", 3, "x" * 5000)],
    *[("leaves.0.shape", value) for value in ([-1], "x", 7, [2**70], ["a"])],
    *[("leaves.0.dtype", value) for value in ("object", "nothing", 3)],
    *[("leaves.0.path", value) for value in (3, "x" * 5000)],
    *[("leaves", value) for value in ([], "x", None)],
    *[("step", value) for value in ("x", -1)],
]


@pytest.mark.attack("forged-policy")
@pytest.mark.parametrize(("place", "value"), POLICIES, ids=shown)
@pytest.mark.usefixtures("untyped")
def test_a_forged_policy_is_refused(place: str, value: Any, policy: Path, tmp_path: Path):
    forged = forge(policy, tmp_path / "forged.zip", put(place, value))
    with pytest.raises((CorruptError, IncompatibleError)) as caught:
        load_policy(forged)
    assert "forged.zip" in str(caught.value)
    assert len(str(caught.value)) < 3_000


@pytest.mark.attack("forged-policy")
def test_the_command_line_says_so_and_ends_with_3(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    forged = forge(policy, tmp_path / "forged.zip", put("about.options.monitor_dir", str(tmp_path / "mine")))
    with pytest.raises(SystemExit) as ended:
        main(["eval", str(forged), "--episodes", "1"])
    assert ended.value.code == 3
    assert "options must be a dictionary of known entries, got 'monitor_dir'" in capsys.readouterr().err.replace(
        "\n", " "
    )
    assert not (tmp_path / "mine").exists()


@pytest.mark.attack("forged-policy")
def test_weights_that_are_not_finite_are_refused(policy: Path, tmp_path: Path):
    saved = load_policy(policy)
    for wrong in (np.nan, np.inf):
        networks = jax.tree.map(lambda leaf, wrong=wrong: leaf.at[(0,) * leaf.ndim].set(wrong), saved.state.online)
        state = saved.agent.with_policy(networks)
        path = save_policy(tmp_path / "nan", saved.agent, state, HANDLE, "sentinel", SIZES, 0, 5)
        with pytest.raises(CorruptError, match="weights that are not finite"):
            load_agent(path)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy with its training."""
    agent = make_agent("sentinel", HANDLE, **SIZES)
    state = jax.jit(lambda key: agent.init(HANDLE.spec, key))(jax.random.key(1))
    folder = tmp_path_factory.mktemp("training")
    standing = Standing(state, 5)
    return save_policy(folder / "a", agent, state, HANDLE, "sentinel", SIZES, 0, 5, training=standing)


TRAININGS = [
    *[("about.training", value) for value in ([], "x", {}, None)],
    *[
        (f"about.training.{name}", value)
        for name in ("t", "before", "horizon", "episode")
        for value in (-1, "x", 2**70)
    ],
    *[("about.training.t", value) for value in (DELETED, 10**9, True)],
    *[("leaves.8.shape", value) for value in ([10**9, 10**9], [10**9], [-1])],
]


@pytest.mark.attack("forged-policy")
@pytest.mark.parametrize(("place", "value"), TRAININGS, ids=shown)
@pytest.mark.usefixtures("untyped")
def test_a_forged_training_is_refused(place: str, value: Any, training: Path, tmp_path: Path):
    assert load_policy(training).training is not None
    forged = forge(training, tmp_path / "forged.zip", put(place, value))
    with pytest.raises((CorruptError, IncompatibleError)) as caught:
        load_policy(forged)
    assert "forged.zip" in str(caught.value)


@pytest.mark.attack("forged-policy")
def test_a_training_whose_weights_are_not_finite_is_refused(training: Path, tmp_path: Path):
    """Also where the networks that act are: training would go on with the others."""
    saved = load_policy(training)
    assert saved.training is not None
    wrong = jax.tree.map(lambda leaf: leaf.at[(0,) * leaf.ndim].set(np.nan), saved.state.online)
    standing = Standing(dataclasses.replace(saved.training.state, online=wrong), 5)
    path = save_policy(tmp_path / "nan", saved.agent, saved.state, HANDLE, "sentinel", SIZES, 0, 5, training=standing)
    with pytest.raises(CorruptError, match="weights that are not finite"):
        load_agent(path)


@pytest.mark.attack("forged-policy")
def test_a_forged_replay_is_refused(training: Path, tmp_path: Path):
    saved = load_policy(training)
    path = save_replay(tmp_path / "replay", saved.state, 5)
    load_replay(path, saved.agent, HANDLE.spec, saved.state)
    for value in (-1, "x", 2**70, None, True):
        forged = forge(path, tmp_path / "forged.zip", put("about.replay.clock", value))
        with pytest.raises(IncompatibleError, match="holds no replay"):
            load_replay(forged, saved.agent, HANDLE.spec, saved.state)
    replay = saved.state.replay
    wrong = dataclasses.replace(saved.state, replay=dataclasses.replace(replay, rows=replay.rows.at[0, 0].set(np.nan)))
    with pytest.raises(CorruptError, match="transitions that are not finite"):
        load_replay(save_replay(tmp_path / "nan", wrong, 5), saved.agent, HANDLE.spec, saved.state)


@pytest.mark.attack("zip-bomb")
def test_a_manifest_is_measured_before_it_is_read(tmp_path: Path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, b" " * (LARGEST_MANIFEST + 1))
    with pytest.raises(CorruptError, match=f"{LARGEST_MANIFEST + 1} bytes, at most {LARGEST_MANIFEST} are read"):
        load_policy(bomb)


CELL = Cell("random", "CartPole-v0", 10, (4, 5))
RECORDS = [
    ("about.record", "x"),
    ("about.record", DELETED),
    ("about.record.failures", "x"),
    ("about.record.failures", {"a": "b"}),
    ("about.record.failures", {"4": 3}),
    ("about.record.seconds", "x"),
    ("about.record.seconds", {"wall": "x"}),
    ("about.arrays", DELETED),
    ("about.arrays", "x"),
    ("about.arrays", []),
    ("about.arrays", ["episodes"]),
    ("about.arrays", ["nobody", "steps"]),
    ("about.cell", "x"),
    ("about.cell", DELETED),
    ("about.id", "another"),
    ("leaves.0.shape", [-1]),
    ("leaves.0.shape", ["x"]),
    ("leaves.0.dtype", "nothing"),
    ("leaves", []),
]


@pytest.mark.attack("forged-record")
@pytest.mark.parametrize(("place", "value"), RECORDS, ids=shown)
def test_a_forged_record_is_put_into_quarantine(place: str, value: Any, tmp_path: Path):
    store = Store(tmp_path)
    path = store.put(Record(CELL, {"steps": np.arange(3), "episodes": np.ones(2)}, {"failures": {}, "seconds": {}}))
    assert store.get(CELL) is not None
    shutil.move(path, tmp_path / "whole")
    forge(tmp_path / "whole", path, put(place, value))
    with pytest.warns(SentinelWarning, match="quarantine/"):
        assert store.get(CELL) is None
    assert len(store.status([CELL]).quarantined) == 1


@pytest.mark.attack("forged-policy")
def test_other_archives_are_no_policies(tmp_path: Path):
    path = save_archive(tmp_path / "a.zip", {"x": np.zeros(3)})
    with pytest.raises(SentinelError, match="holds no policy"):
        load_policy(path)
