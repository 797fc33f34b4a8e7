"""Callbacks: functions and objects in order, what they see, and how they stop a training."""

from typing import Any

import numpy as np
import pytest

from sentinel_rl.errors import UsageError
from sentinel_rl.training.callbacks import Callbacks, seen_locals
from sentinel_rl.training.episodes import Episode
from sentinel_rl.training.host_envs import HostStep


class Recorder:
    """Has the methods of SB3's callbacks, and writes down when they are called."""

    def __init__(self, last: int = 99):
        self.last, self.calls, self.seen = last, [], {}

    def init_callback(self, model: Any) -> None:
        self.calls.append(f"init {model}")

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        self.calls.append("start")

    def on_rollout_start(self) -> None:
        self.calls.append("rollout")

    def update_locals(self, locals_: dict[str, Any]) -> None:
        self.seen = locals_

    def on_step(self) -> bool:
        self.calls.append("step")
        return self.calls.count("step") < self.last

    def on_rollout_end(self) -> None:
        self.calls.append("rollout end")

    def on_training_end(self) -> None:
        self.calls.append("end")


def test_objects_are_called_in_the_order_that_sb3_has():
    recorder = Recorder(last=2)
    callbacks = Callbacks(recorder, "model")
    callbacks.start({})
    assert callbacks.step({"rewards": 1}, updated=True)
    assert not callbacks.step({"rewards": 2}, updated=False)
    callbacks.end()
    steps = ["step", "rollout end", "rollout", "step"]
    assert recorder.calls == ["init model", "start", "rollout", *steps, "rollout end", "end"]
    assert recorder.seen == {"rewards": 2}


def test_only_false_stops_a_function_and_all_are_called():
    calls: list[str] = []
    callbacks = Callbacks([lambda *_: calls.append("a"), lambda *_: False, lambda *_: calls.append("c")], None)
    assert not callbacks.step({}, updated=False)
    assert calls == ["a", "c"]
    assert Callbacks(lambda *_: None, None).step({}, updated=False)


def test_none_is_no_callback_and_other_things_are_refused():
    assert not Callbacks(None, None)
    assert not Callbacks([], None)
    with pytest.raises(UsageError, match="got 'print'"):
        Callbacks(["print"], None)


@pytest.mark.parametrize(
    ("terminated", "truncated", "cut"), [(True, False, False), (True, True, False), (False, True, True)]
)
def test_a_step_is_seen_under_the_names_of_sb3(terminated: bool, truncated: bool, cut: bool):
    last, fresh = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)
    ends = np.array([False, terminated]), np.array([False, truncated])
    happened = HostStep(last, np.array([0.25, 0.5], np.float32), *ends, fresh, np.array([True, True]))
    seen = seen_locals("model", happened, np.array([3, 4]), [None, Episode(7.0, 6.5, 4, terminated, 40, 0.25)])
    assert (seen["self"], seen["actions"].tolist(), seen["rewards"].tolist()) == ("model", [3, 4], [0.25, 0.5])
    assert seen["dones"].tolist() == [False, True]
    assert seen["new_obs"].tolist() == [[0.0, 0.0]] * 2
    running, ended = seen["infos"]
    assert running == {"TimeLimit.truncated": False}
    assert ended["episode"] == {"r": 7.0, "l": 4, "t": 0.25}
    assert ended["TimeLimit.truncated"] is cut
    assert ended["terminal_observation"].tolist() == [1.0, 1.0]
