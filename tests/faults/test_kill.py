"""``sentinel train`` killed, stopped, damaged and resumed until it ends: the same bits as one that is left alone."""

import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from sentinel_rl.cli import main
from sentinel_rl.storage.archive import read_archive_manifest
from sentinel_rl.storage.arrays import read_arrays
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.storage.checkpoint import MANIFEST, STATE, read_manifest, saved
from sentinel_rl.storage.run_folder import status
from tests.faults import children

SOURCE = Path(__file__).parents[2] / "src"
# The agent of `tests.tiny`.
OPTIONS = ("k=2", "atoms=5", "hidden=4", "samples=8", "batch=8", "capacity=64", "learn_every=20", "warmup=10")
STEPS, SAVE_EVERY = 800, 20
# What the clock says is never the same twice.
TIMES = ("['history']['elapsed']", "['history']['episodes/time']")


def command(path, steps=STEPS):
    settings = [word for option in OPTIONS for word in ("--set", option)]
    numbers = ["--steps", str(steps), "--save-every", str(SAVE_EVERY), "--out", str(path)]
    return ["train", "--env", "CartPole-v0", "--seeds", "2", "--quiet", *settings, *numbers]


def wait_for_progress(path, alive, beyond):
    """Wait until there is a checkpoint beyond a step; False when the process ends before."""
    while (status(path).step or 0) <= beyond:
        if not alive():
            return False
        time.sleep(0.005)
    return True


def assert_readable(path):
    """Every checkpoint that is there is whole, and there is one."""
    places = saved(path / "checkpoints")
    assert places
    for place in places:
        assert arrays_of(place.folder)


def arrays_of(checkpoint):
    """The arrays by their names, without times."""
    leaves = read_manifest(checkpoint).leaves
    with open(checkpoint / STATE, "rb") as file:
        arrays = read_arrays(file, leaves, str(checkpoint))
    return {leaf.path: array for leaf, array in zip(leaves, arrays, strict=True) if leaf.path not in TIMES}


def assert_same_run(path, undisturbed):
    """The last checkpoint and the policies have the same arrays, episodes and curves are the same."""
    one, other = (arrays_of(saved(each / "checkpoints")[-1].folder) for each in (path, undisturbed))
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array.dtype, array.shape, array.tobytes()) == (
            other[name].dtype,
            other[name].shape,
            other[name].tobytes(),
        ), name
    for seed in (0, 1):
        policies = [read_archive_manifest(each / f"policy_seed_{seed}.zip").leaves for each in (path, undisturbed)]
        assert policies[0] == policies[1]
        assert episodes_of(path, seed) == episodes_of(undisturbed, seed)
    assert (path / "curves.csv").read_bytes() == (undisturbed / "curves.csv").read_bytes()
    assert status(path).result == status(undisturbed).result


def episodes_of(path, seed):
    """Returns, lengths and ends, without the times of the clock."""
    rows = [line.split(",") for line in (path / f"seed_{seed}.monitor.csv").read_text().splitlines()[2:]]
    return [(row[0], row[1], row[3]) for row in rows]


class Interruption(NamedTuple):
    """How a process ended, what it told, and how far the run was then."""

    code: int
    told: str
    state: str
    step: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    with pytest.raises(SystemExit) as ended:
        main(command(path))
    assert ended.value.code == 0
    return path


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory):
    """A run that is killed, then stopped, then damaged, in three processes; the third one ends it."""
    folder = tmp_path_factory.mktemp("disturbed")
    path, interruptions = folder / "run", []
    for number, disturb in enumerate((signal.SIGKILL, signal.SIGTERM, None)):
        told, before = folder / f"told_{number}.txt", status(path).step or 0
        process = children.start(children.sentinel, command(path), told)
        if disturb is not None:
            assert wait_for_progress(path, process.is_alive, before + 150)
            os.kill(process.pid, disturb)
        process.join()
        if disturb is not None:
            assert_readable(path)
        found = status(path)
        interruptions.append(Interruption(process.exitcode, told.read_text(), found.state, found.step))
        if disturb == signal.SIGTERM:
            flip_a_bit(saved(path / "checkpoints")[-1].folder / STATE)
    return path, interruptions


def flip_a_bit(file):
    """In the numbers of the largest array: some bytes of a zip file mean nothing."""
    with zipfile.ZipFile(file) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    data = bytearray(file.read_bytes())
    data[largest.header_offset + largest.compress_size] ^= 1
    file.write_bytes(data)


@pytest.mark.attack("kill-same-files")
def test_killed_and_resumed_equals_uninterrupted(disturbed, undisturbed):
    path, (killed, _, last) = disturbed
    assert (killed.code, killed.state) == (-signal.SIGKILL, "unfinished")
    assert 150 < killed.step < STEPS
    assert (last.code, last.state) == (0, "finished"), last.told
    assert_same_run(path, undisturbed)
    assert [entry for entry in (path / "checkpoints").iterdir() if entry.name.endswith(ENDING)] == []


def test_sigterm_saves_stops_with_75_and_resumes(disturbed):
    _, (killed, stopped, _) = disturbed
    assert (stopped.code, stopped.state) == (75, "unfinished"), stopped.told
    assert killed.step + 150 < stopped.step < STEPS
    assert "resume with: sentinel train --env CartPole-v0" in stopped.told
    assert f"stopped after {stopped.step} of {STEPS} steps, and saved" in stopped.told


def test_a_damaged_newest_checkpoint_costs_only_its_steps(disturbed):
    _, (_, stopped, last) = disturbed
    assert f"FALLING BACK to the checkpoint of step {stopped.step - SAVE_EVERY}" in last.told
    assert last.code == 0


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Processes on all cores that share what they compiled."""
    cache = tmp_path_factory.mktemp("compiled")
    return os.environ | {
        "PYTHONPATH": str(SOURCE),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


@pytest.mark.attack("kill-same-files")
@pytest.mark.slow
def test_twenty_kills(tmp_path, environment, attacks):
    """Of the command as users start it, on all cores, each resumed until it ends as the undisturbed one did."""
    steps, dice = 6_000, random.Random(1)
    attacks(20)

    def start(path):
        line = [sys.executable, "-m", "sentinel_rl.cli", *command(path, steps)]
        return subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)

    undisturbed = tmp_path / "undisturbed"
    assert start(undisturbed).communicate()[1] == ""
    killed, path = 0, tmp_path / "run_0"
    while killed < 20 or status(path).state == "unfinished":
        process = start(path)
        if killed < 20:
            beyond = (status(path).step or 0) + dice.randrange(0, steps // 6)
            if wait_for_progress(path, lambda process=process: process.poll() is None, beyond):
                time.sleep(dice.uniform(0, 0.03))
            process.kill()
        complaint = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), complaint
        killed += process.returncode == -signal.SIGKILL
        assert_readable(path)
        if status(path).state == "finished":
            assert_same_run(path, undisturbed)
            path = tmp_path / f"run_{killed}"


@pytest.mark.slow
def test_sigterm_on_all_cores(tmp_path, environment):
    path = tmp_path / "run"
    line = [sys.executable, "-m", "sentinel_rl.cli", *command(path, 6_000)]
    process = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    assert wait_for_progress(path, lambda: process.poll() is None, 200)
    process.send_signal(signal.SIGTERM)
    told = process.communicate()[1]
    assert process.returncode == 75, told
    step = status(path).step
    assert f"stopped after {step} of 6000 steps, and saved" in told
    assert (path / "checkpoints" / f"step_{step:09d}" / MANIFEST).exists()
