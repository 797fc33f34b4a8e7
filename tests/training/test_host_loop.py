"""Training from Python: stopped at the end of an episode and resumed, it equals what was not interrupted."""

import gymnasium
import pytest

from sentinel_rl.errors import SentinelWarning, Stopped, StorageError, UsageError
from sentinel_rl.storage import checkpoint
from sentinel_rl.storage.run_folder import RunFolder, open_run
from sentinel_rl.training.episodes import EpisodeLog
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import GymnasiumWorld, JaxWorld
from sentinel_rl.training.host_loop import HostKeeper, train_on_host
from sentinel_rl.training.signals import Stopper
from tests.training.pole import AGENT, ENV, PLAN, bit_equal


def begin() -> HostRun:
    return HostRun(AGENT, GymnasiumWorld(gymnasium.make("CartPole-v1"), seed=3), PLAN, seed=3)


@pytest.fixture(scope="module")
def whole() -> tuple[HostRun, EpisodeLog, list[int]]:
    """A run that nobody disturbed, its episodes, and when it was looked at."""
    run, log, looks = begin(), EpisodeLog(), []
    train_on_host(run, log, lambda progress: looks.append(progress.t))
    return run, log, looks


def interrupted(folder: RunFolder, at: int) -> HostKeeper:
    """Train until a stop is requested after `at` steps, and the episode has ended."""
    keeper, run, log = HostKeeper(folder, 3, save_every=10_000, stopper=Stopper(active=True)), begin(), EpisodeLog()
    keeper.resume(run, log)

    def request(*happened: object) -> bool:
        keeper.stopper.requested = run.t >= at
        return True

    with pytest.raises(Stopped, match=rf"of {PLAN.steps} steps of seed 3, \d+ of them saved"):
        train_on_host(run, log, after_step=request, keeper=keeper)
    assert at <= run.t < PLAN.steps
    return keeper


def test_stopped_twice_and_resumed_equals_whole(tmp_path, whole):
    expected, episodes, looks = whole
    assert looks == [PLAN.steps]
    with open_run(tmp_path, {"seeds": [3]}) as folder:
        interrupted(folder, at=20)
        interrupted(folder, at=60)
        run, log, keeper = begin(), EpisodeLog(), HostKeeper(folder, 3)
        keeper.resume(run, log)
        assert 60 <= run.t < PLAN.steps
        train_on_host(run, log, keeper=keeper)
    assert bit_equal(run.state, expected.state)
    assert (run.obs == expected.obs).all()
    assert [e[:3] for e in log.episodes] == [e[:3] for e in episodes.episodes]


def test_it_is_saved_every_so_often(tmp_path):
    with open_run(tmp_path, {"seeds": [3]}) as folder:
        run, log, keeper = begin(), EpisodeLog(), HostKeeper(folder, 3, save_every=30)
        train_on_host(run, log, keeper=keeper)
        again = begin()
        HostKeeper(folder, 3).resume(again, EpisodeLog())
    assert 30 <= again.t < PLAN.steps
    ends = [sum(e.length for e in log.episodes[: i + 1]) for i in range(len(log.episodes))]
    assert again.t in ends, "a checkpoint stands at the end of an episode"


def test_where_nothing_was_saved_it_begins(tmp_path):
    with open_run(tmp_path, {"seeds": [3]}) as folder:
        run = begin()
        HostKeeper(folder, 3).resume(run, EpisodeLog())
    assert run.t == 0


def test_other_worlds_are_not_saved(tmp_path):
    with open_run(tmp_path, {"seeds": [3]}) as folder, pytest.raises(UsageError, match="one Gymnasium environment"):
        HostKeeper(folder, 3).resume(HostRun(AGENT, JaxWorld(ENV), PLAN, seed=3), EpisodeLog())


def test_a_full_disk_is_borne_with_and_not_called_saved(tmp_path, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(checkpoint, "save", full)
    with open_run(tmp_path, {"seeds": [3]}) as folder:
        run, log, keeper = begin(), EpisodeLog(), HostKeeper(folder, 3, stopper=Stopper(active=True))
        with pytest.warns(SentinelWarning, match="1 of 3 in a row failed"):
            keeper.save(run, log)
        keeper.stopper.requested = True
        with pytest.raises(StorageError, match="no room"):
            train_on_host(run, log, keeper=keeper)
