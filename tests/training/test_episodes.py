"""Episodes out of steps, in pieces of any size, to a file and back."""

import json

import numpy as np
import pytest

from sentinel_rl.errors import SentinelWarning
from sentinel_rl.training.episodes import (
    EpisodeCounter,
    EpisodeLog,
    EpisodeTable,
    monitor_file,
    read_monitor,
    write_monitor,
)

REWARD = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
TERMINATED = np.array([False, True, False, False, False, False])
TRUNCATED = np.array([False, False, False, True, False, False])
# Two episodes of two steps, discounted by a half; a third one goes on.
EXPECTED = {
    "run": [0, 0],
    "reward": [3.0, 7.0],
    "discounted": [2.0, 5.0],
    "length": [2, 2],
    "terminated": [True, False],
    "end": [2, 4],
}


def table_of(*cuts: int, time: float = 1.5) -> EpisodeTable:
    counter = EpisodeCounter(1, 0.5)
    found = [
        counter.extend(REWARD[None, part], TERMINATED[None, part], TRUNCATED[None, part], time)
        for part in np.split(np.arange(6), cuts)
        if part.size
    ]
    assert {name: value.tolist() for name, value in counter.state().items()} == {
        "reward": [11.0],
        "discounted": [8.0],
        "length": [2],
    }
    return EpisodeTable.join(found)


def assert_expected(table: EpisodeTable) -> None:
    for name, values in EXPECTED.items():
        assert getattr(table, name).tolist() == values, name


def test_by_hand():
    assert_expected(table_of())
    assert table_of().time.tolist() == [1.5, 1.5]


def test_the_pieces_do_not_matter():
    for cut in range(7):
        assert_expected(table_of(cut))


def test_step_by_step_they_are_the_same():
    log = EpisodeLog(gamma=0.5)
    steps = zip(REWARD.tolist(), TERMINATED.tolist(), TRUNCATED.tolist(), strict=True)
    ended = [log.add(*step, t, 1.5) for t, step in enumerate(steps, start=1)]
    episodes = [episode for episode in ended if episode is not None]
    assert_expected(EpisodeTable.of_episodes(0, episodes))
    assert (log.reward, log.discounted, log.length) == (11.0, 8.0, 2)


def test_a_file_is_read_as_far_as_asked(tmp_path):
    path = monitor_file(tmp_path, seed=0)
    write_monitor(path, table_of(time=2.25), "World", started=1_234.5)
    head, columns, *rows = path.read_text().splitlines()
    assert json.loads(head.removeprefix("#")) == {"t_start": 1_234.5, "env_id": "World"}
    assert columns == "r,l,t,terminated"
    assert rows == ["3.0,2,2.25,1", "7.0,2,2.25,0"]
    for steps, count in ((6, 2), (4, 2), (3, 1), (1, 0)):
        found = read_monitor(path, run=3, steps=steps)
        assert found.reward.tolist() == [3.0, 7.0][:count]
        assert found.end.tolist() == [2, 4][:count]
        assert found.run.tolist() == [3, 3][:count]
        assert found.terminated.tolist() == [True, False][:count]
        assert np.isnan(found.discounted).all()


@pytest.mark.parametrize("content", [None, "#{}\nr,l,t\n1,2,3\n", "#{}\nr,l,t,terminated\nmuch,2,3,1\n"])
def test_a_file_that_cannot_be_read_is_warned_about(content, tmp_path):
    path = monitor_file(tmp_path, seed=0)
    if content is not None:
        path.write_text(content)
    with pytest.warns(SentinelWarning, match="the episodes before step 6 are lost"):
        assert len(read_monitor(path, run=0, steps=6).run) == 0
