"""Episodes out of steps, in pieces of any size, to a file and back."""

import numpy as np

from sentinel_rl.training.episodes import EpisodeLog

REWARD = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
TERMINATED = np.array([False, True, False, False, False, False])
TRUNCATED = np.array([False, False, False, True, False, False])


def log_of(*cuts):
    log = EpisodeLog()
    for part in np.split(np.arange(6), cuts):
        log.extend(REWARD[part], TERMINATED[part], TRUNCATED[part])
    return log


def test_by_hand():
    log = log_of()
    assert [episode[:3] for episode in log.episodes] == [(3.0, 2, True), (7.0, 2, False)]
    assert (log.reward, log.length, log.terminations) == (11.0, 2, 1)
    assert (log.recent(), log.recent(1)) == (5.0, 7.0)
    assert np.isnan(EpisodeLog().recent())


def test_the_pieces_do_not_matter():
    for cut in range(7):
        log = log_of(cut)
        assert [episode[:3] for episode in log.episodes] == [(3.0, 2, True), (7.0, 2, False)]
        assert (log.reward, log.length) == (11.0, 2)


def test_a_file_is_read_as_far_as_asked(tmp_path):
    path = tmp_path / "seed_0.monitor.csv"
    log_of().save(path, "World")
    assert path.read_text().splitlines()[1] == "r,l,t,terminated"
    for steps, count in ((6, 2), (4, 2), (3, 1), (1, 0)):
        log = EpisodeLog()
        log.load(path, steps)
        assert len(log.episodes) == count
    assert log.started == log_of().started or log.started > 0
