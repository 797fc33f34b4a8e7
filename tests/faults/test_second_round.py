"""Attacks that were thought of later, each on a promise of docs/reliability.md; what broke is told there."""

import contextlib
import json
import os
import sys
import time
import warnings
import zipfile

import numpy as np
import pytest

from sentinel_rl import load_agent
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.cli import main
from sentinel_rl.cli.options import parse_observation, parse_seeds, parse_settings
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import SentinelError, SentinelWarning, StorageError, UsageError
from sentinel_rl.risk import EVaR, MeanSemideviation, parse_risk
from sentinel_rl.storage.archive import load_archive, save_archive
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.storage.run_folder import CONFIG, FINISHED, LOCK, open_run, status
from sentinel_rl.training.episodes import EpisodeCounter, read_monitor
from sentinel_rl.training.schedule import require_seed, require_seeds

pytestmark = pytest.mark.attack("round-2")
POLE = EnvSpec("CartPole-v0", 4, 2, (1.0, 1.0), 200)
NESTED = "[" * 100_000


@pytest.fixture
def run(tmp_path):
    with open_run(tmp_path / "run", {"k": 4}, about={"env": "World"}) as folder:
        folder.finish({"steps": 5})
    return tmp_path / "run"


def code_of(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return ended.value.code


@pytest.mark.parametrize("seed", [2**32, 2**32 + 7, 2**40, 2**63])
def test_seeds_of_which_jax_would_keep_another(seed):
    """JAX keeps 32 bits: seed 2**32 was the run of seed 0 under another name."""
    with pytest.raises(UsageError, match="from 0 to 4294967295"):
        require_seed(seed)
    with pytest.raises(UsageError):
        require_seeds([0, seed])


def test_an_endless_source_of_seeds():
    def endless():
        number = 0
        while True:
            yield (number := number + 1)

    with pytest.raises(UsageError, match="at most 100000"):
        require_seeds(endless())


def test_returns_do_not_depend_on_how_the_steps_were_cut():
    """Another --save-every cuts them elsewhere; the last bit of a return differed."""
    rng = np.random.default_rng(0)
    reward = rng.normal(size=(2, 500)).astype(np.float32)
    terminated, truncated = rng.random((2, 2, 500)) < 0.02
    tables = []
    for size in (500, 100, 7, 1):
        counter = EpisodeCounter(2, 0.97)
        parts = [slice(at, at + size) for at in range(0, 500, size)]
        found = [counter.extend(reward[:, p], terminated[:, p], truncated[:, p], 0.0) for p in parts]
        columns = [
            np.concatenate([getattr(each, name) for each in found]) for name in ("run", "end", "reward", "discounted")
        ]
        order = np.lexsort(columns[1::-1])
        tables.append([column[order].tobytes() for column in columns])
    assert tables[0] == tables[1] == tables[2] == tables[3]


def test_returns_are_the_sums_of_the_rewards():
    reward = np.array([[0.1, 0.2, 0.3, 0.4]])
    ends = np.array([[False, True, False, True]])
    table = EpisodeCounter(1, 0.5).extend(reward, ends, ~ends & False, 0.0)
    np.testing.assert_allclose(table.reward, [0.3, 0.7])
    np.testing.assert_allclose(table.discounted, [0.2, 0.5])


def test_half_written_checkpoints_of_every_seed_are_swept(run):
    left = run / "checkpoints" / "seed_1" / f".step_5.x{ENDING}"
    left.mkdir(parents=True)
    (run / FINISHED).unlink()
    with open_run(run, {"k": 4}):
        assert not left.exists()


@pytest.mark.parametrize("name", [CONFIG, FINISHED, LOCK])
@pytest.mark.parametrize(
    "content", [NESTED, '{"a":' * 50_000, "null", "\x00" * 50, "1e999", '{"pid": 1e999, "host": 3}', "NaN"]
)
@pytest.mark.filterwarnings("ignore:.*is damaged:sentinel_rl.errors.SentinelWarning")
def test_small_files_of_a_run_with_anything_in_them(run, name, content):
    (run / name).write_text(content)
    assert status(run).state in ("foreign", "unfinished", "finished")


@pytest.mark.parametrize(
    "content", ["#" + NESTED, '#{"t_start": 1, "env_id": {}}\nr,l,t,terminated\n1,1e999,0,1\n', "#{}\n", "\x00"]
)
def test_monitors_with_anything_in_them(tmp_path, content):
    path = tmp_path / "seed_0.monitor.csv"
    path.write_text(content)
    with pytest.warns(SentinelWarning, match="the episodes before step 9 are lost"):
        assert len(read_monitor(path, 0, 9).run) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("command", ["eval", "assess", "watch", "frontier", "verify"])
@pytest.mark.parametrize("kind", ["pipe", "loop", "folder", "device"])
def test_policies_that_are_no_files(tmp_path, command, kind):
    """A pipe that nobody writes to would be waited for."""
    path = tmp_path / "policy.zip"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    began = time.perf_counter()
    assert code_of(command, path) in (2, 3, 74)
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize("out", ["/dev/null", "x" * 300, "a\x00b", "/proc/none/x"])
def test_folders_that_cannot_be(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = ("train", "--env", "CartPole-v0", "--agent", "random", "--steps", "5", "--quiet", "--set", "warmup=1")
    assert code_of(*line, "--out", out) in (2, 74)


@pytest.mark.parametrize(
    "text", ["9**9**9", "[1]*10**9", "(" * 5_000, "__import__('os')", "lambda: 1", "{}" * 999, "-" * 9_999]
)
def test_settings_are_never_evaluated(text):
    began = time.perf_counter()
    for name in ("hidden", "k", "gamma", "aleatory"):
        try:
            parse_settings([f"{name}={text}"])
        except UsageError as refusal:
            assert name in str(refusal)  # noqa: PT017 (text is taken where text may stand)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "text", ["1e999,0,0,0", "nan,0,0,0", "1_0,0,0,0,0", "0x1,0,0,0", "٣,0,0,x", "," * 9_999, "0," * 99_999]
)
def test_observations_on_the_command_line(text):
    with pytest.raises(UsageError, match="--obs"):
        parse_observation(text, 4)


@pytest.mark.parametrize("text", ["١٢", "1_000_000", " 7 ", "+5", "1e3"])
def test_numbers_in_other_writing(text):
    """Python reads some of these as whole numbers: what is taken is small and right."""
    try:
        assert len(parse_seeds(text)) <= 100_000
    except UsageError as refusal:
        assert "give how many" in str(refusal)  # noqa: PT017


@pytest.mark.parametrize(
    "option", [{"hidden": [8, 8]}, {"hidden": [8, 8], "noise": np.float32(1)}, {"draws": np.int64(5)}]
)
@pytest.mark.usefixtures("untyped")
def test_lists_and_numbers_of_numpy_can_be_compiled_for(option):
    """A field that programs are compiled for must be hashable: a list was refused by JAX with a raw error."""
    hash(tuple(value for value in vars(make_agent("vdqn", POLE, **option)).values() if isinstance(value, tuple | int)))


@pytest.mark.parametrize("option", [{"action": 1.0}, {"action": True}, {"action": np.array([0, 1])}, {"action": "0"}])
@pytest.mark.usefixtures("untyped")
def test_actions_that_only_look_like_one(option):
    with pytest.raises(UsageError, match="does not exist"):
        make_agent("random", POLE, **option)


@pytest.mark.parametrize(
    "bound", [{"v_min": 0, "v_max": 1e-40}, {"v_min": 1e9, "v_max": 1e9 + 1}, {"reward_range": (0, 1e29)}]
)
def test_supports_whose_atoms_are_one_number_in_float32(bound):
    with pytest.raises(UsageError, match="cannot be told apart in float32"):
        make_agent("sentinel", POLE, preset="paper", **bound)


def test_a_semideviation_of_the_largest_numbers():
    """XLA multiplied by an inverse that is rounded to zero: the deviation was 0, in silence."""
    found = MeanSemideviation(1.0, 2.0).of(np.array([-1.7e308, 1.7e308]))
    assert found == pytest.approx(-1.7e308 * np.sqrt(0.5))


def test_evar_where_the_worst_atom_is_likelier_than_alpha():
    """It is that atom, and not a ten-million-millionth of the span beside it."""
    assert EVaR(0.3).of(np.array([0, 0, 0, 3e38], np.float32)) == 0.0


@pytest.mark.parametrize(
    "text", ["cvar:" + "9" * 5_000, "cvar:1e-400", "o" * 9_999, "cvar:0.25 o " * 500, "cvar:0x1p-2"]
)
def test_measures_of_strange_text(text):
    with pytest.raises(ValueError, match=r".+") as refusal:
        parse_risk(text)
    assert len(str(refusal.value)) < 60_000


@pytest.mark.parametrize("name", ["../out.npy", "/abs.npy", "a\\..\\b.npy", "00000.npy\x00", "arrays.npz"])
def test_members_of_other_names(tmp_path, name):
    path = save_archive(tmp_path / "a.zip", {"x": np.zeros(3)})
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(name, b"x")
    before = sorted(tmp_path.rglob("*"))
    with contextlib.suppress(SentinelError):
        load_archive(path, {"x": np.zeros(3)})
    assert sorted(tmp_path.rglob("*")) == before


def test_a_policy_twice_in_one_file(tmp_path):
    """Two members of one name: which is checked, and which is read?"""
    path = save_archive(tmp_path / "a.zip", {"x": np.zeros(3)})
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")  # of the name that is there twice
        for name, content in members:
            archive.writestr(name, content[:-1] + bytes([content[-1] ^ 1]) if name.endswith("npz") else content)
    try:
        tree, _ = load_archive(path, {"x": np.zeros(3)})
    except SentinelError:
        return
    np.testing.assert_array_equal(tree["x"], np.zeros(3))


def test_a_policy_of_a_million_small_members(tmp_path):
    path = save_archive(tmp_path / "a.zip", {"x": np.zeros(3)})
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(20_000):
            archive.writestr(f"m{number}", b"")
    began = time.perf_counter()
    with pytest.raises(SentinelError):
        load_agent(path)
    assert time.perf_counter() - began < 10


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs another user's rights")
def test_a_run_of_somebody_else_is_not_taken_over(tmp_path):
    (tmp_path / LOCK).write_text(json.dumps({"pid": 1, "host": "elsewhere.example"}))
    with (
        pytest.raises((UsageError, StorageError), match="in use by process 1 on elsewhere"),
        open_run(tmp_path, {"k": 1}),
    ):
        pass
