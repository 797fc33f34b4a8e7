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


def counted(*cuts: int) -> tuple[EpisodeTable, EpisodeCounter]:
    """The episodes of one run whose steps come in pieces, and what counts them."""
    counter = EpisodeCounter(1, gamma=0.5)
    parts = [part for part in np.split(np.arange(6), cuts) if part.size]
    found = [counter.extend(REWARD[None, p], TERMINATED[None, p], TRUNCATED[None, p], 1.5) for p in parts]
    return EpisodeTable.join(found), counter


def test_by_hand():
    table, counter = counted()
    assert table.reward.tolist() == [3.0, 7.0]
    assert table.discounted.tolist() == [1 + 0.5 * 2, 3 + 0.5 * 4]
    assert (table.length.tolist(), table.end.tolist()) == ([2, 2], [2, 4])
    assert (table.terminated.tolist(), table.time.tolist()) == ([True, False], [1.5, 1.5])
    going = {name: values.tolist() for name, values in counter.state().items()}
    assert going == {"reward": [11.0], "discounted": [5 + 0.5 * 6], "length": [2]}


def test_the_pieces_do_not_matter():
    whole, end = counted()
    for cut in range(7):
        table, counter = counted(cut)
        assert [column.tolist() for column in table] == [column.tolist() for column in whole]
        assert counter.state() == end.state()


def test_a_counter_goes_on_from_its_state():
    whole, _ = counted()
    first, counter = EpisodeCounter(1, 0.5), EpisodeCounter(1, 0.5)
    before = first.extend(REWARD[None, :3], TERMINATED[None, :3], TRUNCATED[None, :3], 1.5)
    counter.restore(3, **first.state())
    after = counter.extend(REWARD[None, 3:], TERMINATED[None, 3:], TRUNCATED[None, 3:], 1.5)
    joined = EpisodeTable.join([before, after])
    assert [column.tolist() for column in joined] == [column.tolist() for column in whole]


def test_a_log_of_one_environment_says_the_same():
    log = EpisodeLog(gamma=0.5)
    steps = enumerate(zip(REWARD, TERMINATED, TRUNCATED, strict=True), start=1)
    found = [log.add(float(r), bool(fell), bool(cut), t, 1.5) for t, (r, fell, cut) in steps]
    episodes = [episode for episode in found if episode is not None]
    assert [t for t, episode in enumerate(found, start=1) if episode is not None] == [2, 4]
    expected, _ = counted()
    assert [column.tolist() for column in EpisodeTable.of_episodes(0, episodes)] == [c.tolist() for c in expected]
    assert (log.reward, log.discounted, log.length) == (11.0, 8.0, 2)


def test_a_table_of_nothing_is_one():
    nothing = EpisodeTable.of_episodes(3, [])
    assert [column.shape for column in nothing] == [(0,)] * 7
    assert EpisodeTable.join([]).run.dtype == nothing.run.dtype


def test_a_table_can_be_asked_for_one_run():
    both = EpisodeTable.join([counted()[0], counted()[0]._replace(run=np.array([1, 1]), end=np.array([8, 9]))])
    assert both.of_run(1).end.tolist() == [8, 9]
    assert both.of_run(0).end.tolist() == [2, 4]


def test_a_file_is_read_as_far_as_asked(tmp_path):
    path = monitor_file(tmp_path, 7)
    assert path.name == "seed_7.monitor.csv"
    write_monitor(path, counted()[0], "World", started=123.5)
    header, names, *rows = path.read_text().splitlines()
    assert json.loads(header[1:]).items() >= {"t_start": 123.5, "env_id": "World"}.items()
    assert (names, rows) == ("r,l,t,terminated", ["3.0,2,1.5,1", "7.0,2,1.5,0"])
    for steps, count in ((6, 2), (4, 2), (3, 1), (1, 0)):
        found = read_monitor(path, 2, steps)
        assert found.end.tolist() == [2, 4][:count]
        assert found.run.tolist() == [2] * count
        assert np.isnan(found.discounted).all(), "the file does not say what they were discounted to"
    assert read_monitor(path, 0, 6).terminated.tolist() == [True, False]


@pytest.mark.parametrize("content", [None, "", "#{}\nr,l,t\n1,2,3\n", "#{}\nr,l,t,terminated\n1,many,3,0\n"])
def test_a_file_that_cannot_be_read_is_warned_about(tmp_path, content):
    path = tmp_path / "seed_0.monitor.csv"
    if content is not None:
        path.write_text(content)
    with pytest.warns(SentinelWarning, match="episodes before step 9 are lost"):
        assert len(read_monitor(path, 0, 9).run) == 0
