"""Training on images of bytes: they stay bytes in the replay, through a kill, and what resumes is the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from sentinel_rl.envs.handle import spec_of
from sentinel_rl.training.trainer import train
from tests.training.results import assert_same_folder, assert_same_result

COMPILE_QUICKLY = True
NAME = "Pictures-v0"
SIZES = {"k": 2, "hidden": (8,), "batch": 8, "samples": 8, "capacity": 64, "atoms": 5, "longest_bout": 8}


class Pictures(gymnasium.Env[np.ndarray, int]):
    """A bright spot, and episodes of seven steps."""

    observation_space = spaces.Box(0, 255, (8, 8, 1), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.steps += 1
        return self._picture(), float(action == self.place % 3), self.steps == 7, False, {}

    def _picture(self) -> np.ndarray:
        self.place = int(self.np_random.integers(64))
        picture = np.zeros((8, 8, 1), np.uint8)
        picture.flat[self.place] = 200 + self.place % 56
        return picture


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gymnasium.register(NAME, f"{__name__}:Pictures")
    yield
    gymnasium.registry.pop(NAME)


class Killed(BaseException):
    """Nobody catches it."""


def test_an_image_of_bytes_is_known_as_one():
    assert spec_of(gymnasium.make(NAME)).in_bytes
    assert not spec_of(gymnasium.make("CartPole-v1")).in_bytes


def test_killed_and_resumed_equals_whole(tmp_path: Path):
    def go(folder: Path, callback: Any = ()) -> Any:
        return train("sentinel", NAME, 63, [3], save_every=14, warmup=8, callbacks=callback, folder=folder, **SIZES)

    def kill(progress: Any) -> None:
        if progress.t >= 42:
            raise Killed

    whole = go(tmp_path / "whole")
    with pytest.raises(Killed):
        go(tmp_path / "run", kill)
    assert_same_result(go(tmp_path / "run"), whole)
    assert_same_folder(tmp_path / "run", tmp_path / "whole")
    frames = whole.states.replay.frames
    assert frames.dtype == jnp.uint8
    shown = np.asarray(frames[0, :63, :64])
    assert (np.count_nonzero(shown, axis=1) == 1).all()
    assert (shown.max(axis=1) >= 200).all()
