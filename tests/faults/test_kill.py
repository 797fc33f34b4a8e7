"""``sentinel train`` killed at random moments and resumed until it ends: the same bits as one that is left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sentinel_rl.storage.archive import read_archive_manifest
from sentinel_rl.storage.arrays import read_arrays
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.storage.checkpoint import MANIFEST, STATE, read_manifest, saved
from sentinel_rl.storage.run_folder import status

SOURCE = Path(__file__).parents[2] / "src"
STEPS, SAVE_EVERY = 6_000, 100
OPTIONS = ("k=2", "hidden=8", f"capacity={STEPS}", "samples=20", "batch=20")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Processes that share what they compiled."""
    cache = tmp_path_factory.mktemp("compiled")
    return os.environ | {
        "PYTHONPATH": str(SOURCE),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def start(path, environment, steps=STEPS):
    command = [sys.executable, "-m", "sentinel_rl.cli", "train", "--env", "CartPole-v1", "--seeds", "2", "--quiet"]
    settings = [word for option in OPTIONS for word in ("--set", option)]
    numbers = ["--steps", str(steps), "--save-every", str(SAVE_EVERY), "--out", str(path)]
    return subprocess.Popen([*command, *settings, *numbers], env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def undisturbed(environment, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    process = start(path, environment)
    complaint = process.communicate()[1]
    assert process.returncode == 0, complaint
    return path


def wait_for_progress(path, process, beyond):
    """Wait until there is a checkpoint beyond a step; False when the process ends before."""
    while (status(path).step or 0) <= beyond:
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    return True


def assert_readable(path):
    """Every checkpoint that is there is whole, and there is one."""
    places = saved(path / "checkpoints")
    assert places
    for place in places:
        assert arrays_of(place.folder)


def arrays_of(checkpoint):
    with open(checkpoint / STATE, "rb") as file:
        return read_arrays(file, read_manifest(checkpoint).leaves, str(checkpoint))


def assert_same_run(path, undisturbed):
    """The last checkpoint and the policies have the same arrays, the episodes are the same."""
    newest = [saved(each / "checkpoints")[-1].folder for each in (path, undisturbed)]
    for one, other in zip(*map(arrays_of, newest), strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    for seed in (0, 1):
        policies = [read_archive_manifest(each / f"policy_seed_{seed}.zip").leaves for each in (path, undisturbed)]
        assert policies[0] == policies[1]
        assert episodes_of(path, seed) == episodes_of(undisturbed, seed)
    assert status(path).result == status(undisturbed).result


def episodes_of(path, seed):
    """Returns, lengths and ends, without the times of the clock."""
    rows = [line.split(",") for line in (path / f"seed_{seed}.monitor.csv").read_text().splitlines()[2:]]
    return [(row[0], row[1], row[3]) for row in rows]


def kill_and_resume(parent, environment, undisturbed, kills, dice):
    """Kill runs so many times, each resumed until it ends as the undisturbed one did."""
    killed, path = 0, parent / "run_0"
    while killed < kills or status(path).state == "unfinished":
        process = start(path, environment)
        if killed < kills:
            beyond = (status(path).step or 0) + dice.randrange(0, STEPS // 6)
            if wait_for_progress(path, process, beyond):
                time.sleep(dice.uniform(0, 0.03))
            process.kill()
        complaint = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), complaint
        killed += process.returncode == -signal.SIGKILL
        assert_readable(path)
        if status(path).state == "finished":
            assert_same_run(path, undisturbed)
            path = parent / f"run_{killed}"


def test_killed_and_resumed_equals_uninterrupted(tmp_path, environment, undisturbed):
    kill_and_resume(tmp_path, environment, undisturbed, 3, random.Random(0))
    assert [entry for entry in (tmp_path / "run_0" / "checkpoints").iterdir() if entry.name.endswith(ENDING)] == []


@pytest.mark.slow
def test_twenty_kills(tmp_path, environment, undisturbed):
    kill_and_resume(tmp_path, environment, undisturbed, 20, random.Random(1))


def test_sigterm_saves_stops_with_75_and_resumes(tmp_path, environment, undisturbed):
    path = tmp_path / "run"
    process = start(path, environment)
    assert wait_for_progress(path, process, 200)
    process.send_signal(signal.SIGTERM)
    told = process.communicate()[1]
    assert process.returncode == 75, told
    assert "resume with: sentinel train --env CartPole-v1" in told
    found = status(path)
    assert found.state == "unfinished"
    assert f"stopped after {found.step} of {STEPS} steps, and saved" in told
    assert (path / "checkpoints" / f"step_{found.step:09d}" / MANIFEST).exists()
    process = start(path, environment)
    assert (process.communicate()[1], process.returncode) == ("", 0)
    assert_same_run(path, undisturbed)


def test_a_damaged_newest_checkpoint_costs_only_its_steps(tmp_path, environment, undisturbed):
    path = tmp_path / "run"
    process = start(path, environment)
    assert wait_for_progress(path, process, 200)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    state = saved(path / "checkpoints")[-1].folder / STATE
    data = np.frombuffer(state.read_bytes(), np.uint8).copy()
    data[data.size // 2] ^= 1
    state.write_bytes(data.tobytes())
    process = start(path, environment)
    told = process.communicate()[1]
    assert process.returncode == 0, told
    assert "FALLING BACK" in told
    assert_same_run(path, undisturbed)
