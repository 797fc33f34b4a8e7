"""Observations of every space as numbers: as Gymnasium flattens them, in a batch as alone, and what is refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

import sentinel_rl as srl
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.observations import observations_of
from sentinel_rl.errors import SentinelWarning, UsageError

SPACES = {
    "box": spaces.Box(-1.0, 1.0, (2, 3)),
    "discrete": spaces.Discrete(5, start=2),
    "multidiscrete": spaces.MultiDiscrete([2, 3]),
    "multibinary": spaces.MultiBinary(4),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    "dict": spaces.Dict(b=spaces.Discrete(3), a=spaces.Dict(x=spaces.Box(-1, 1, (2, 2)), y=spaces.MultiBinary(2))),
}


@pytest.mark.parametrize("name", SPACES)
def test_rows_are_those_of_gymnasium_alone_and_in_a_batch(name: str):
    space = SPACES[name]
    space.seed(3)
    found, drawn = observations_of(space, name), [space.sample() for _ in range(4)]
    expected = np.stack([spaces.flatten(space, one) for one in drawn])
    assert found.size == spaces.flatdim(space) == expected.shape[1]
    np.testing.assert_array_equal(np.stack([found.row(one) for one in drawn]), expected.astype(np.float32))
    together = concatenate(space, drawn, create_empty_array(space, 4))
    np.testing.assert_array_equal(found.rows(together, 4), expected.astype(np.float32))


def test_texts_are_left_out():
    space = spaces.Dict(mission=spaces.Text(5), view=spaces.Dict(words=spaces.Text(3), at=spaces.Discrete(2)))
    found = observations_of(space, "Mine")
    assert (found.size, found.left_out) == (2, ("mission", "view.words"))
    np.testing.assert_array_equal(found.row({"mission": "go", "view": {"words": "a", "at": 1}}), [0, 1])


@pytest.mark.parametrize(
    ("space", "image"),
    [
        (spaces.Box(0, 255, (8, 9, 3), np.uint8), (8, 9, 3)),
        (spaces.Box(0, 255, (8, 9), np.uint8), (8, 9, 1)),
        (spaces.Box(0, 1, (8, 9, 2), np.float32), (8, 9, 2)),
        (spaces.Box(0, 1, (8, 9), np.float32), None),
    ],
)
def test_images_are_recognised(space: Any, image: Any):
    assert observations_of(space, "Mine").image == image


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(4), r"Mine has the observation space Text.* holds no numbers: wrap it with"),
        (spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))), r"Mine observes a Sequence at a, whose size changes"),
        (spaces.Graph(spaces.Discrete(2), None), r"Mine observes a Graph, whose size changes"),
    ],
)
def test_what_has_no_numbers_or_no_size_is_refused(space: Any, message: str):
    with pytest.raises(UsageError, match=message):
        observations_of(space, "Mine")


class Corridor(gymnasium.Env):
    """Four places in a row, seen as words and numbers; the right action moves on."""

    observation_space = spaces.Dict(place=spaces.Discrete(4), seen=spaces.Box(0, 9, (3, 3, 1), np.uint8))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = min(self.place + int(action == 1), 3)
        return self._seen(), float(action), self.place == 3, False, {}

    def _seen(self) -> dict[str, Any]:
        return {"place": self.place, "seen": np.full((3, 3, 1), self.place, np.uint8)}


def test_an_agent_learns_in_a_dictionary_and_is_asked_about_one():
    options = {"k": 2, "hidden": (8,), "capacity": 64, "samples": 8, "batch": 8, "v_min": 0.0, "v_max": 5.0}
    agent = srl.Sentinel("MultiInputPolicy", Corridor(), warmup=10, learn_every=10, **options).learn(60)
    seen = Corridor().reset()[0]
    action, _ = agent.predict(seen)
    assert action == agent.predict(agent.handle.observations.row(seen))[0]
    assert agent.assess(seen).action == action
    with pytest.raises(UsageError, match="is needed, got dict: give one of its observation space"):
        agent.predict({"place": 1})


def test_what_is_not_seen_is_told():
    class Told(Corridor):
        observation_space = spaces.Dict(mission=spaces.Text(9), place=spaces.Discrete(4))

    with pytest.warns(SentinelWarning, match="Told: mission of its observations is not made of numbers"):
        assert resolve_env(Told()).spec.obs_size == 4
