"""Trainings that were killed or stopped on the way and resumed: the same result and the same files as uninterrupted."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from sentinel_rl.errors import Stopped, UsageError
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training import session
from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.host_envs import GymnasiumWorld
from sentinel_rl.training.result import Result
from sentinel_rl.training.trainer import train
from tests.training.conftest import JUDGED, PLAN, SEEDS, STEPS, Listing, Trained
from tests.training.mine import Greedy, Walk
from tests.training.pole import AGENT, ENV
from tests.training.results import assert_same_folder, assert_same_result


class Killed(BaseException):
    """Nobody catches it: what is not on the disk by then is lost."""


def run(env: Any, folder: Path, **options: Any) -> Result:
    place = gymnasium.make("CartPole-v1") if env == "gymnasium" else ENV
    return train(AGENT, place, STEPS, SEEDS, folder=folder, **{**JUDGED, **PLAN, **options})


def at(seed: int, t: int, do: Callable[[], Any]) -> Callable[[Progress], None]:
    """A callback that does something when the run of a seed is told of with at least ``t`` steps, once."""
    done: list[int] = []

    def call(progress: Progress) -> None:
        if seed in progress.seeds and progress.t >= t and not done:
            done.append(progress.t)
            do()

    return call


def kill() -> None:
    raise Killed


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("t", "kept"), [(1, None), (200, 180), (STEPS, 180)], ids=["first chunk", "later", "last chunk"]
)
def test_killed_and_resumed_on_jax_equals_whole(on_jax: Trained, tmp_path, t, kept):
    """A callback is called before a checkpoint is taken: the last chunk is lost, and made again."""
    folder = tmp_path / "run"
    with pytest.raises(Killed):
        run("jax", folder, callbacks=at(4, t, kill))
    assert status(folder).step == kept
    told: list[int] = []
    result = run("jax", folder, callbacks=lambda progress: told.append(progress.t))
    assert told[0] == (kept or 80)
    assert_same_result(result, on_jax.result)
    assert_same_folder(folder, on_jax.folder)


@pytest.mark.parametrize(("seed", "t"), [(4, 150), (9, 150)])
def test_killed_and_resumed_on_gymnasium_equals_whole(on_gymnasium: Trained, tmp_path, seed, t):
    """What a run of the first seed did after its last checkpoint is made again, also where it was done."""
    folder = tmp_path / "run"
    with pytest.raises(Killed):
        run("gymnasium", folder, callbacks=at(seed, t, kill))
    assert saved(folder / "checkpoints" / "seed_4")
    assert_same_result(run("gymnasium", folder), on_gymnasium.result)
    assert_same_folder(folder, on_gymnasium.folder)


@pytest.mark.parametrize(("env", "number"), [("jax", 0), ("jax", 3), ("gymnasium", 1), ("gymnasium", 3)])
def test_killed_in_an_evaluation_and_resumed_equals_whole(env, number, request, tmp_path, monkeypatch):
    """Of the three during training, and in the final one."""
    whole: Trained = request.getfixturevalue(f"on_{env}")
    folder, calls, play = tmp_path / "run", [], session.Evaluator.__call__

    def dying(self: Any, training: Any) -> Any:
        calls.append(training.t)
        if len(calls) == number + 1:
            raise Killed
        return play(self, training)

    with monkeypatch.context() as patch:
        patch.setattr(session.Evaluator, "__call__", dying)
        with pytest.raises(Killed):
            run(env, folder)
    assert calls[-1] == [100, 200, 240, 240][number]
    assert_same_result(run(env, folder), whole.result)
    assert_same_folder(folder, whole.folder)


@pytest.mark.parametrize(("env", "seed", "t"), [("jax", 4, 100), ("gymnasium", 9, 60)])
def test_stopped_by_a_signal_and_resumed_equals_whole(env, seed, t, request, tmp_path):
    whole: Trained = request.getfixturevalue(f"on_{env}")
    folder = tmp_path / "run"
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped, match=r"stopped after .* of 240 steps.*and saved"):
        run(env, folder, callbacks=at(seed, t, interrupt))
    assert signal.getsignal(signal.SIGINT) is before
    assert status(folder).state == "unfinished"
    assert_same_result(run(env, folder), whole.result)
    assert_same_folder(folder, whole.folder)


def test_stopped_in_an_episode_and_resumed_equals_whole(on_gymnasium: Trained, tmp_path, monkeypatch):
    """Long before a checkpoint is due: the end of the episode is waited for, and the pause leaves no trace."""
    folder, step = tmp_path / "run", GymnasiumWorld.step

    def interrupted(self: GymnasiumWorld, actions: Any, t: int, key: Any = None) -> Any:
        if t == 5:
            interrupt()
        return step(self, actions, t, key)

    with monkeypatch.context() as patch:
        patch.setattr(GymnasiumWorld, "step", interrupted)
        with pytest.raises(Stopped, match=r"of seed 4, and saved"):
            run("gymnasium", folder)
    first = int(on_gymnasium.result.table.of_run(0).end[0])
    assert saved(folder / "checkpoints" / "seed_4")[-1].step == first < 80
    assert_same_result(run("gymnasium", folder), on_gymnasium.result)
    assert_same_folder(folder, on_gymnasium.folder)


def test_the_speed_after_a_resume_is_that_of_this_session(tmp_path, monkeypatch):
    """The clock stands still but in callbacks: 10 seconds before the first chunk after the resume."""
    now = [0.0]
    monkeypatch.setattr(session.time, "perf_counter", lambda: now[0])

    def wait(progress: Progress) -> None:
        now[0] += 10.0

    folder, sink = tmp_path / "run", Listing()
    with pytest.raises(Killed):
        run("jax", folder, callbacks=at(4, 200, kill), evaluate=0, evaluate_every=None)
    assert status(folder).step == 160
    run("jax", folder, callbacks=wait, sinks=[sink], evaluate=0, evaluate_every=None)
    (step, _, values), *_ = sink.lines
    assert (step, values["time/fps"]) == (240, 8.0), "80 steps in 10 seconds"


def test_a_run_of_the_users_own_parts_is_resumed_too(tmp_path):
    """The state of the agent holds a key, and its best policy is the whole state."""

    def go(folder: Path, **options: Any) -> Result:
        given = {"evaluate": 4, "evaluate_every": 50, "save_every": 40, **PLAN, **options}
        return train(Greedy(rate=0.5), Walk(), 100, 2, folder=folder, **given)

    with pytest.warns(match="no registered name"):
        whole = go(tmp_path / "whole")
    with pytest.raises(Killed):
        go(tmp_path / "run", callbacks=at(0, 90, kill))
    with pytest.warns(match="no registered name"):
        assert_same_result(go(tmp_path / "run"), whole)


def test_another_configuration_is_not_resumed(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Killed):
        run("jax", folder, callbacks=at(4, 100, kill))
    for changed, what in (
        ({"epsilon_end": 0.1}, r"plan\.epsilon_end +0\.05 +0\.1"),
        ({"evaluate": 4}, r"evaluation\.episodes +3 +4"),
        ({"points": 13}, r"points +12 +13"),
        ({"evaluation_gamma": 0.5}, r"gamma +0\.99 +0\.5"),
        ({"evaluation_env": "CartPole-v1"}, r"evaluation\.env\S* "),
    ):
        with pytest.raises(UsageError, match=f"another configuration:\n(.|\n)*{what}"):
            run("jax", folder, **changed)
    assert status(folder).step == 80
