"""Training from Python: stopped at the end of an episode and resumed, it equals what was not interrupted."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped, StorageError
from sentinel_rl.storage import checkpoint
from sentinel_rl.training import host_training
from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.session import Session
from sentinel_rl.training.signals import Stopper
from tests.training.pole import AGENT, ENV, PLAN, assert_same_training

SEED = 3


def begin(env: Any = None, on_step: Any = None) -> HostTraining:
    handle = resolve_env(gymnasium.make("CartPole-v1") if env is None else env)
    return HostTraining(AGENT, handle, PLAN, SEED, on_step=on_step)


def train(training: HostTraining, path: Path, save_every: int = 10_000, **options: Any) -> HostTraining:
    """Train to the end, from a checkpoint where there is one."""
    keeper = Keeper(training, path / "checkpoints", save_every, path, "CartPole-v1")
    Session([training], keepers=[keeper], target=save_every, **options).run()
    return training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[HostTraining, list[int]]:
    """A run that nobody disturbed, and when it was told of."""
    told: list[int] = []
    watch = [lambda progress: told.append(progress.t)]
    return train(begin(), tmp_path_factory.mktemp("whole"), callbacks=watch), told


def ends(training: HostTraining) -> list[int]:
    """The steps at which its episodes ended."""
    return training.history.table().end.tolist()


def interrupted(path: Path, at: int) -> HostTraining:
    """Train until a stop is requested after `at` steps, and the episode has ended."""
    stopper = Stopper(active=True)

    def request(*happened: object) -> bool:
        stopper.requested = training.run.t >= at
        return True

    training = begin(on_step=request)
    with pytest.raises(Stopped, match=rf"of {PLAN.steps} steps of seed {SEED}, and saved"):
        train(training, path, stopper=stopper)
    assert at <= training.t < PLAN.steps
    assert training.t == ends(training)[-1], "a checkpoint stands at the end of an episode"
    return training


def test_stopped_twice_and_resumed_equals_whole(tmp_path, whole):
    expected, told = whole
    assert told == [PLAN.steps]
    first, second, *_ = ends(expected)
    assert interrupted(tmp_path, at=1).t == first
    stopped = interrupted(tmp_path, at=first + 1).t
    assert stopped == second
    begun: list[int] = []
    training = train(begin(), tmp_path, callbacks=[lambda progress: begun.append(progress.t)])
    assert begun == [stopped, PLAN.steps]
    assert_same_training(training, expected)
    np.testing.assert_array_equal(training.run.obs, expected.run.obs)


def test_it_is_saved_every_so_often(tmp_path, whole):
    training = train(begin(), tmp_path, save_every=30)
    again = begin()
    keeper = Keeper(again, tmp_path / "checkpoints", 30)
    before, last = keeper.steps()
    assert 30 <= before < last == PLAN.steps
    assert before in ends(training), "a checkpoint stands at the end of an episode, or of the training"
    keeper.resume()
    assert (again.t, list(again.chunks())) == (PLAN.steps, []), "nothing is trained again"
    assert_same_training(again, training)
    assert_same_training(training, whole[0])


def test_where_nothing_was_saved_it_begins(tmp_path):
    training = begin()
    Keeper(training, tmp_path).resume()
    assert training.t == 0


class Chatty(Session):
    """A session that counts how often a training returns to it."""

    turns = 0

    def _save(self, progress: Progress, last: bool) -> None:
        self.turns += 1
        super()._save(progress, last)


@pytest.mark.parametrize("env", ["vector", ENV])
def test_other_worlds_are_not_saved_and_not_held_up(tmp_path, env):
    """They cannot be resumed. A checkpoint that is due then made the training return after every single step."""
    training = begin(gymnasium.make_vec("CartPole-v1", num_envs=2) if env == "vector" else env)
    keeper = Keeper(training, tmp_path / "checkpoints", 20, tmp_path, "CartPole-v1")
    session = Chatty([training], keepers=[keeper], target=20)
    session.run()
    assert training.t == PLAN.steps
    assert keeper.steps() == []
    assert session.turns <= PLAN.steps / 20 + 1
    lines = (tmp_path / f"seed_{SEED}.monitor.csv").read_text().splitlines()
    assert len(lines) == 2 + len(training.history.table().run), "but their episodes are written down"


def test_a_stop_is_not_put_off_where_nothing_can_be_saved(tmp_path):
    stopper = Stopper(active=True)
    stopper.requested = True
    training = begin(ENV)
    with pytest.raises(Stopped, match=rf"after 1 of {PLAN.steps} steps of seed {SEED}, 0 of them saved"):
        train(training, tmp_path, stopper=stopper)


def test_an_episode_that_does_not_end_holds_up_a_stop_only_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(host_training, "_LONGEST_WAIT", 3)
    stopper = Stopper(active=True)
    stopper.requested = True
    with pytest.raises(Stopped, match=rf"after 4 of {PLAN.steps} steps of seed {SEED}, 0 of them saved"):
        train(begin(), tmp_path, stopper=stopper)


def test_a_full_disk_is_borne_with_and_not_called_saved(tmp_path, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(checkpoint, "save", full)
    training, stopper = begin(), Stopper(active=True)
    keeper = Keeper(training, tmp_path, 10_000)
    with pytest.warns(SentinelWarning, match="1 of 3 in a row failed"):
        keeper.save()
    assert keeper.saved_at == 0
    stopper.requested = True
    with pytest.raises(StorageError, match="no room"):
        Session([training], keepers=[keeper], stopper=stopper).run()


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    ill = dataclasses.replace(AGENT, learning_rate=float("inf"))
    training = HostTraining(ill, resolve_env(gymnasium.make("CartPole-v1")), PLAN, SEED)
    with pytest.raises(NumericalError, match=rf"loss nan at step \d+ of seed {SEED}: a smaller learning rate"):
        train(training, tmp_path)


def test_false_after_a_step_ends_the_training(tmp_path):
    training = begin(on_step=lambda *happened: training.run.t < 7)
    told: list[int] = []
    session = Session([training], callbacks=[lambda progress: told.append(progress.t)])
    session.run()
    assert (training.t, told, session.stopped_early) == (7, [7], True)
