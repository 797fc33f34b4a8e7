"""Training on the numbers of states: a table is learnt, kept through a kill, and what resumes is the same."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from sentinel_rl.training.trainer import train
from tests.training.results import assert_same_folder, assert_same_result

COMPILE_QUICKLY = True
SIZES = {"k": 2, "atoms": 3, "batch": 16, "samples": 16, "capacity": 2_000}


class Killed(BaseException):
    """Nobody catches it."""


def test_killed_and_resumed_equals_whole(tmp_path: Path):
    """With a learning rate that declines and a member that leads."""

    def go(folder: Path, callback: Any = ()) -> Any:
        given = {"save_every": 40, "warmup": 16, "callbacks": callback, "folder": folder}
        return train("sentinel", "FrozenLake-v1", 160, [3], **given, **SIZES)

    def kill(progress: Any) -> None:
        if progress.t >= 80:
            raise Killed

    whole = go(tmp_path / "whole")
    with pytest.raises(Killed):
        go(tmp_path / "run", kill)
    assert_same_result(go(tmp_path / "run"), whole)
    assert_same_folder(tmp_path / "run", tmp_path / "whole")
    seen = np.asarray(whole.states.replay.frames[0, :160, :16])
    assert seen.dtype == np.uint8
    assert (seen.sum(axis=1) == 1).all()


def test_the_way_over_a_frozen_lake_is_learnt():
    """Nothing is gained on the way, and of random walks one in seventy comes to the end."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    result = train("sentinel", env, 3_000, [0], evaluate=1, **SIZES)
    assert float(result.episodes.reward[0, 0]) == 1.0
