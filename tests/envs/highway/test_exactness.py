"""Step by step against recorded episodes of highway-env 1.12.1, in float64."""

import itertools

import numpy as np
import pytest

from tests.envs.highway.compare import Difference, differences
from tests.envs.highway.episodes import FILE, GROUPS, load

COMPILE_QUICKLY = True

# In 72, cars whose headings differ by about 1e-8 hit each other: along which of two sides they are pushed apart is
# decided by rounding. In 156, a car comes to a halt in a lane change, behind wrecks: steering divides by its speed,
# which magnifies a rounding error of its place 1e10 times. See docs/highway.md.
TIES = {"random": {72}, "denser": {156}}


@pytest.fixture(scope="module")
def found() -> dict[str, list[Difference]]:
    """Every group of episodes; those of equal dynamics in one call."""
    recorded = load()
    result: dict[str, list[Difference]] = {}
    for _, together in itertools.groupby(GROUPS, key=lambda name: GROUPS[name].twin()):
        names = list(together)
        firsts = [GROUPS[name].first(e.seed) for name in names for e in recorded[name]]
        rows = differences(GROUPS[names[0]].twin(), firsts, [e for name in names for e in recorded[name]])
        for name in names:
            result[name], rows = rows[: len(recorded[name])], rows[len(recorded[name]) :]
    return result


def test_there_are_enough_episodes_of_every_kind(found: dict[str, list[Difference]]):
    rows = list(itertools.chain(*found.values()))
    assert len(rows) >= 200
    assert sum(row.steps for row in rows) > 3000
    assert sum(row.crashed for row in rows) > 200
    assert sum(row.lane_changes for row in rows) > 1000
    assert FILE.stat().st_size < 700_000


@pytest.mark.parametrize("name", GROUPS)
def test_every_flag_is_equal(found: dict[str, list[Difference]], name: str):
    """Lanes, wanted lanes, timers, crashes, terminations and truncations."""
    for row in found[name]:
        assert not any(row.flags.values()), row


@pytest.mark.parametrize("name", GROUPS)
def test_every_number_is_equal_to_1e_8(found: dict[str, list[Difference]], name: str):
    """Places, headings, speeds, wanted speeds, observations and rewards."""
    first, ties = GROUPS[name].first_seed, TIES.get(name, set())
    unequal = {first + i for i, row in enumerate(found[name]) if not row.equal(1e-8)}
    assert unequal <= ties
    for row in found[name]:
        assert row.equal(2e-6), row
        assert row.numbers["reward"] < 1e-8


def test_the_seeds_of_ties_are_recorded():
    for name, seeds in TIES.items():
        assert seeds <= {episode.seed for episode in load()[name]}


def test_recorded_episodes_end_as_the_original_says():
    for episodes in load().values():
        for episode in episodes:
            ended = episode.terminated.astype(bool) | episode.truncated.astype(bool)
            assert ended[-1]
            assert not ended[:-1].any()
            assert np.isfinite(episode.obs).all()
