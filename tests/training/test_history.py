"""The history of runs: episodes as a loop would cut them, curves by hand, and the same after it was saved."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.training.episodes import EpisodeCounter, EpisodeLog, EpisodeTable
from sentinel_rl.training.history import History, curve_steps
from sentinel_rl.training.metrics import Episodes

CUTS = st.lists(st.integers(1, 59), unique=True, max_size=3).map(sorted)


def random_steps(seed: int, runs: int = 3, steps: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(runs, steps)).astype(np.float32)
    end = rng.random((runs, steps)) < rng.choice([0.02, 0.2])
    fell = end & (rng.random((runs, steps)) < 0.5)
    return reward, fell, end & ~fell


def assert_equal(found: Any, expected: Any) -> None:
    """All columns or named arrays are equal, NaN in the same places."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@given(st.integers(0, 1_000), CUTS)
def test_episodes_are_those_of_a_loop_however_they_are_cut(seed, cuts):
    steps = random_steps(seed)
    counter = EpisodeCounter(3, 0.9)
    parts = [
        counter.extend(*(part[:, begin:end] for part in steps), now=float(end))
        for begin, end in zip([0, *cuts], [*cuts, 60], strict=True)
    ]
    found = EpisodeTable.join(parts)
    expected = []
    for run, columns in enumerate(zip(*steps, strict=True)):
        log = EpisodeLog(0.9)
        logged = [
            log.add(float(r), bool(f), bool(c), t + 1, 0.0) for t, (r, f, c) in enumerate(zip(*columns, strict=True))
        ]
        expected += [(run, *episode) for episode in logged if episode is not None]
    order = np.lexsort((found.end, found.run))
    for name, wanted in zip(EpisodeTable._fields, zip(*expected, strict=True) if expected else [()] * 7, strict=True):
        if name != "time":
            np.testing.assert_allclose(getattr(found, name)[order], wanted, atol=1e-9, err_msg=name)
    assert all(now >= end for now, end in zip(found.time, found.end, strict=True)), "told with the steps they end in"


def test_a_run_that_is_not_finite_does_not_touch_the_others():
    reward, terminated, truncated = random_steps(1)
    clean = EpisodeCounter(3, 0.9).extend(reward, terminated, truncated, 0.0)
    ill = np.where(np.arange(3)[:, None] == 0, np.nan, reward)
    broken = EpisodeCounter(3, 0.9).extend(ill, terminated, truncated, 0.0)
    others = clean.run > 0
    np.testing.assert_array_equal(broken.discounted[others], clean.discounted[others])
    assert np.isnan(broken.reward[~others]).all()


def by_hand() -> History:
    """Two runs of eight steps: run 0 has episodes of 2 and 3 steps and one that goes on, run 1 one of 8 steps."""
    history = History(runs=2, steps=8, points=4, gamma=0.5)
    reward = np.array([[1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]], np.float32)
    fell, late = np.zeros((2, 8), bool), np.zeros((2, 8), bool)
    fell[0, [1, 4]] = True
    late[1, 7] = True
    updates = np.array([[1.0, 3.0, np.nan, 5.0], [2.0, 2.0, np.nan, 4.0]])
    history.extend(reward[:, :6], fell[:, :6], late[:, :6])
    history.add_metrics(np.array([1, 2, 4, 6]), {"loss": updates, "clip": updates + 1})
    history.extend(reward[:, 6:], fell[:, 6:], late[:, 6:])
    history.add_metrics(np.array([8]), {"loss": np.full((2, 1), np.nan), "clip": np.full((2, 1), np.nan)})
    return history


def test_curves_of_a_case_made_by_hand():
    history, nan = by_hand(), np.nan
    expected = {
        "steps": [2, 4, 6, 8],
        "return": [[2, nan, 3, nan], [nan, nan, nan, 16]],
        "terminations": [[1, 1, 2, 2], [0, 0, 0, 0]],
        "loss": [[2, nan, 5, nan], [2, nan, 4, nan]],
        "clip": [[3, nan, 6, nan], [3, nan, 5, nan]],
    }
    assert_equal(history.curves(), expected)
    totals = {
        "terminations": [2, 0],
        "episodes": [2, 1],
        "return": [2.5, 16],
        "discounted": [(1.5 + 1.75) / 2, 4 * (1 - 0.5**8)],
        "tail": [1.5, 4 * (1 - 0.5**8)],
    }
    assert_equal(history.totals(), totals)


def test_episodes_stand_by_run_and_in_their_order():
    history = by_hand()
    table = history.table()
    assert (table.run.tolist(), table.end.tolist(), table.length.tolist()) == ([0, 0, 1], [2, 5, 8], [2, 3, 8])
    assert table.terminated.tolist() == [True, True, False]
    assert history.recent(0, 1).reward.tolist() == [3.0]
    assert history.recent(0).reward.tolist() == [2.0, 3.0]
    assert history.recent(1).reward.tolist() == [16.0]
    assert history.table() is table, "it is put in order once"
    done = np.zeros((2, 1), bool)
    history.extend(np.ones((2, 1), np.float32), ~done, done)
    assert history.table().run.tolist() == [0, 0, 0, 1, 1]


def test_reports_hold_from_the_point_before_them_on():
    history = by_hand()
    assert history.last_report() == {}
    history.add_report(4, [{"mean": jnp.array([1.0])}, {"mean": jnp.array([3.0, 9.0])}])  # the last group was filled up
    history.add_report(8, [{"mean": jnp.array([2.0])}, {"mean": jnp.array([4.0, 9.0])}])
    assert_equal(history.last_report(), {"mean": [2.0, 4.0]})
    np.testing.assert_array_equal(history.curves()["mean"], [[1, 1, 2, 2], [3, 3, 4, 4]])


def test_a_training_without_a_finished_episode_has_no_mean():
    history = History(runs=1, steps=2, points=200, gamma=0.5)
    nothing = np.zeros((1, 2), bool)
    history.extend(np.ones((1, 2), np.float32), nothing, nothing)
    assert history.curves()["steps"].tolist() == [1, 2]
    assert np.isnan(history.curves()["return"]).all()
    totals = history.totals()
    assert totals["episodes"] == [0]
    assert np.isnan([totals["discounted"][0], totals["tail"][0], totals["return"][0]]).all()


def filled(seed: int, cuts: list[int], saved_at: int | None = None) -> History:
    """The history of random runs that are told in pieces, saved and read back after one of them."""
    history, steps, rng = History(3, 60, 7, 0.9), random_steps(seed), np.random.default_rng(seed)
    for piece, (begin, end) in enumerate(zip([0, *cuts], [*cuts, 60], strict=True)):
        history.extend(*(part[:, begin:end] for part in steps))
        history.add_metrics(np.array([end]), {"loss": rng.normal(size=(3, 1))})
        history.add_report(end, [{"mean": jnp.asarray(rng.normal(size=3), jnp.float32)}])
        history.add_evaluation(end, Episodes(*rng.normal(size=(4, 3, 2))))
        if piece == saved_at:
            state = {name: np.array(values) for name, values in history.state().items()}
            history = History(3, 60, 7, 0.9)
            history.restore(end, state)
    return history


@given(st.integers(0, 1_000), CUTS, st.integers(0, 3))
def test_a_history_that_was_saved_goes_on_as_if_it_had_not_been(seed, cuts, saved_at):
    whole, again = filled(seed, cuts), filled(seed, cuts, saved_at)
    assert_equal(again.curves(), whole.curves())
    assert_equal(again.totals(), whole.totals())
    columns = [name for name in EpisodeTable._fields if name != "time"]
    for name in columns:
        np.testing.assert_array_equal(getattr(again.table(), name), getattr(whole.table(), name))
    np.testing.assert_array_equal(again.evaluations()[0], whole.evaluations()[0])
    for found, expected in zip(again.evaluations()[1], whole.evaluations()[1], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_history_that_was_saved_early_goes_on_too():
    """There may be neither an episode nor an update nor a report yet."""
    history = History(2, 8, 4, 0.5)
    history.restore(0, {name: np.array(values) for name, values in history.state().items()})
    assert history.evaluations() is None
    assert list(history.curves()) == ["steps", "return", "terminations"]
    assert len(history.table().run) == 0


def test_the_time_goes_on_after_a_pause():
    history = by_hand()
    state = history.state() | {"elapsed": np.array(1_000.0)}
    again = History(2, 8, 4, 0.5)
    again.restore(8, state)
    assert 1_000 <= again.elapsed < 1_100


@given(st.integers(1, 10_000), st.integers(1, 300))
def test_points_are_spread_and_end_at_the_end(steps, points):
    grid = curve_steps(steps, points)
    assert grid[-1] == steps
    assert len(grid) == min(steps, points)
    assert np.ptp(np.diff([0, *grid])) <= 1
