"""A process that is killed while it saves: what was saved before is whole, nothing half-written is believed."""

import itertools
import random
import signal
import time

import numpy as np
import pytest

from sentinel_rl.storage.atomic import sweep
from sentinel_rl.storage.checkpoint import latest, save
from tests.faults import children
from tests.faults.children import run, save_and_die, save_forever, start, tree_of


def assert_whole(parent, at_least):
    """The newest checkpoint loads, is of one step throughout, and nothing that was saved is lost."""
    tree, manifest = latest(parent, tree_of(0))
    assert manifest.step >= at_least
    for leaf, wanted in zip(*(list(leaves_of(each)) for each in (tree, tree_of(manifest.step))), strict=True):
        np.testing.assert_array_equal(leaf, wanted)
    return manifest.step


def leaves_of(tree):
    yield tree["small"]
    yield tree["large"]
    yield from tree["many"]


def kill_often(parent, kills, dice):
    step = 0
    save(parent, step, tree_of(step))
    for _ in range(kills):
        done = children.CONTEXT.Value("q", step)
        process = start(save_forever, parent, step + 1, done)
        while done.value == step:
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.06))
        process.kill()
        process.join()
        step = assert_whole(parent, done.value)
        sweep(parent)
    assert len(list(parent.iterdir())) <= 3  # two, and one that it had no time to remove


def test_kills_at_random_moments_lose_nothing(tmp_path):
    kill_often(tmp_path / "checkpoints", 10, random.Random(0))


@pytest.mark.slow
def test_many_kills_at_random_moments_lose_nothing(tmp_path):
    kill_often(tmp_path / "checkpoints", 300, random.Random(1))


def test_a_kill_before_any_file_operation_loses_nothing(tmp_path):
    """Not at random: before the first operation of a save, before the second, and so on through all of them."""
    for operation in itertools.count():
        parent = tmp_path / str(operation)
        for step in (1, 2):
            save(parent, step, tree_of(step))
        exit_code = run(save_and_die, parent, 3, operation)
        assert_whole(parent, 2)
        if exit_code == 0:
            break
        assert exit_code == -signal.SIGKILL
        save(parent, 4, tree_of(4))
        sweep(parent)
        assert_whole(parent, 4)
        assert len(list(parent.iterdir())) == 2
    assert operation > 10
