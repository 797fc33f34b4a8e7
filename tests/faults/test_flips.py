"""A flipped bit in the small files of a run is seen, or changes nothing that is read."""

import json
import random
import warnings

import numpy as np
import pytest

from sentinel_rl.errors import SentinelWarning
from sentinel_rl.storage.run_folder import CONFIG, FINISHED, open_run, status
from sentinel_rl.training.episodes import Episode, EpisodeTable, read_monitor, write_monitor

EPISODES = [
    Episode(16.850696365335093, np.nan, 20, True, 20, 0.1),
    Episode(-1e-17 / 3, np.nan, 3, False, 23, 0.2),
    Episode(1 / 3, np.nan, 200, False, 223, 0.3),
]


def flips(data, number, seed):
    """Copies of the data with one bit turned over, anywhere."""
    dice = random.Random(seed)
    for _ in range(number):
        changed = bytearray(data)
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        yield bytes(changed)


def test_a_monitor_keeps_every_digit(tmp_path):
    path = tmp_path / "seed_0.monitor.csv"
    write_monitor(path, EpisodeTable.of_episodes(0, EPISODES), "World", 12.5)
    found = read_monitor(path, 0, 1_000)
    assert found.reward.tolist() == [episode.reward for episode in EPISODES]


def test_a_monitor_of_an_earlier_version_is_read(tmp_path):
    path = tmp_path / "seed_0.monitor.csv"
    path.write_text('#{"t_start": 1.5, "env_id": "World"}\nr,l,t,terminated\n2.5,7,0.1,1\n')
    assert read_monitor(path, 0, 100).reward.tolist() == [2.5]


@pytest.mark.attack("flip-monitor")
def test_flipped_bits_in_a_monitor(tmp_path, attacks):
    path = tmp_path / "seed_0.monitor.csv"
    write_monitor(path, EpisodeTable.of_episodes(0, EPISODES), "World", 12.5)
    data, whole = path.read_bytes(), read_monitor(path, 0, 1_000)
    silent = seen = 0
    for damaged in flips(data, 400, 4):
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = read_monitor(path, 0, 1_000)
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, whole, strict=True))
        silent += not same and not told
        seen += bool(told)
    attacks(400)
    assert (silent, seen > 300) == (0, True)


@pytest.fixture
def finished(tmp_path):
    with open_run(tmp_path / "run", {"k": 4}, about={"env": "World", "options": {"lam": 0.5}}) as folder:
        folder.finish({"steps": 800, "seeds": [{"seed": 0, "return": 16.850696365335093, "episodes": 12}]})
    return tmp_path / "run"


@pytest.mark.attack("flip-finished")
def test_flipped_bits_in_finished(finished, attacks):
    data, whole = (finished / FINISHED).read_bytes(), status(finished)
    assert whole.result == {"steps": 800, "seeds": [{"seed": 0, "return": 16.850696365335093, "episodes": 12}]}
    seen = 0
    for damaged in flips(data, 400, 5):
        (finished / FINISHED).write_bytes(damaged)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = status(finished)
        assert found == whole or (found.state == "unfinished" and "is damaged" in str(told[0].message))
        seen += bool(told)
    attacks(400)
    assert seen > 300


@pytest.mark.attack("flip-finished")
def test_flipped_bits_in_the_configuration_and_the_notes_beside_it(finished, attacks):
    """From the notes the commands read agent, environment and options."""
    data, whole = (finished / CONFIG).read_bytes(), status(finished)
    for damaged in flips(data, 400, 6):
        (finished / CONFIG).write_bytes(damaged)
        found = status(finished)
        assert found.state == "foreign" or (found.configuration, found.about) == (whole.configuration, whole.about)
    attacks(400)


def test_a_damaged_finished_run_may_be_finished_again(finished):
    text = (finished / FINISHED).read_text()
    (finished / FINISHED).write_text(text.replace("16.85", "17.85"))
    with pytest.warns(SentinelWarning, match="the run counts as unfinished"), open_run(finished, {"k": 4}) as folder:
        folder.finish({"steps": 800})
    assert status(finished).state == "finished"


def test_files_of_an_earlier_version_are_read(finished):
    for name in (CONFIG, FINISHED):
        content = json.loads((finished / name).read_text())
        del content["checksum"]
        if name == FINISHED:
            del content["format"]
        (finished / name).write_text(json.dumps(content))
    assert (status(finished).state, status(finished).about["env"]) == ("finished", "World")
