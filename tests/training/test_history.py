import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.risk import CVaR
from sentinel_rl.training.curves import Curves, EpisodeCounter, curve_steps
from sentinel_rl.training.episodes import EpisodeLog
from sentinel_rl.training.loop import Chunk
from sentinel_rl.training.tail import tail_mean


def random_steps(seed, runs=3, steps=60):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(runs, steps)).astype(np.float32)
    end = rng.random((runs, steps)) < rng.choice([0.02, 0.2])
    fell = end & (rng.random((runs, steps)) < 0.5)
    return reward, fell, end & ~fell


@given(st.integers(0, 1_000), st.lists(st.integers(1, 59), unique=True, max_size=3).map(sorted))
def test_episodes_are_those_of_a_loop_however_they_are_cut(seed, cuts):
    steps = random_steps(seed)
    counter = EpisodeCounter(3, 0.9)
    for begin, end in zip([0, *cuts], [*cuts, 60], strict=True):
        counter.extend(*(part[:, begin:end] for part in steps))
    found = counter.finished()
    expected = []
    for run, (reward, terminated, truncated) in enumerate(zip(*steps, strict=True)):
        log = EpisodeLog()
        log.extend(reward, terminated, truncated)
        begin = 0
        for episode in log.episodes:
            end = begin + episode.length
            discounted = sum(0.9**i * float(r) for i, r in enumerate(reward[begin:end]))
            expected.append((run, end, episode.terminated, episode.reward, discounted))
            begin = end
    fields = found.run, found.end, found.terminated, found.reward, found.discounted
    for got, wanted in zip(fields, zip(*expected, strict=True) if expected else [()] * 5, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_a_run_that_is_not_finite_does_not_touch_the_others():
    reward, terminated, truncated = random_steps(1)
    clean, broken = EpisodeCounter(3, 0.9), EpisodeCounter(3, 0.9)
    clean.extend(reward, terminated, truncated)
    broken.extend(np.where(np.arange(3)[:, None] == 0, np.nan, reward), terminated, truncated)
    others = clean.finished().run > 0
    np.testing.assert_array_equal(broken.finished().discounted[others], clean.finished().discounted[others])


def test_curves_of_a_case_made_by_hand():
    curves = Curves(runs=2, steps=8, points=4, gamma=0.5)
    reward = np.array([[1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]], np.float32)
    fell = np.zeros((2, 8), bool)
    fell[0, [1, 4]] = True  # run 0: episodes of 2 and 3 steps, then one that goes on
    late = np.zeros((2, 8), bool)
    late[1, 7] = True  # run 1: one of 8 steps
    updates = {"loss": np.array([[1.0, 3.0, np.nan, 5.0], [2.0, 2.0, np.nan, 4.0]])}
    curves.extend(Chunk(reward[:, :6], fell[:, :6], late[:, :6], np.array([1, 2, 4, 6])), updates)
    curves.extend(Chunk(reward[:, 6:], fell[:, 6:], late[:, 6:], np.array([8])), {"loss": np.full((2, 1), np.nan)})
    arrays = curves.arrays()
    nan = np.nan
    expected = {
        "steps": [2, 4, 6, 8],
        "terminations": [2, 0],
        "episodes": [2, 1],
        "terminations_curve": [[1, 1, 2, 2], [0, 0, 0, 0]],
        "return_curve": [[2, nan, 3, nan], [nan, nan, nan, 16]],
        "train_return_mean": [2.5, 16],
        "train_discounted_mean": [(1.5 + 1.75) / 2, 4 * (1 - 0.5**8)],
        "train_discounted_tail": [1.5, 4 * (1 - 0.5**8)],
        "metric/loss": [[2, nan, 5, nan], [2, nan, 4, nan]],
    }
    assert arrays.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(arrays[name], values, err_msg=name)
    np.testing.assert_array_equal(
        curves.held(np.array([4, 8]), np.array([[1, 2], [3, 4]])), [[1, 1, 2, 2], [3, 3, 4, 4]]
    )


def test_a_training_without_a_finished_episode_has_no_mean():
    curves = Curves(runs=1, steps=2, points=200, gamma=0.5)
    nothing = np.zeros((1, 2), bool)
    curves.extend(Chunk(np.ones((1, 2)), nothing, nothing, np.array([2])), {})
    arrays = curves.arrays()
    assert list(arrays["steps"]) == [1, 2]
    assert arrays["episodes"] == [0]
    assert np.isnan([arrays["train_discounted_mean"][0], arrays["train_discounted_tail"][0]]).all()


@given(st.integers(1, 10_000), st.integers(1, 300))
def test_points_are_spread_and_end_at_the_end(steps, points):
    grid = curve_steps(steps, points)
    assert grid[-1] == steps
    assert len(grid) == min(steps, points)
    assert np.ptp(np.diff([0, *grid])) <= 1


@given(
    st.sampled_from([1, 7]).flatmap(lambda n: st.lists(st.floats(-100, 100), min_size=n, max_size=n)),
    st.floats(0.01, 1.0),
)
def test_the_tail_is_the_librarys_cvar(values, alpha):
    with_jax = float(CVaR(alpha).of(np.array(values, np.float32)))
    assert tail_mean(np.array(values), alpha) == pytest.approx(with_jax, abs=2e-3)


def test_the_tail_goes_over_the_last_axis():
    np.testing.assert_allclose(tail_mean(np.array([[1.0, 2, 3, 4], [8.0, 7, 6, 5]]), 0.5), [1.5, 5.5])
    with pytest.raises(ValueError, match="alpha"):
        tail_mean(np.ones(3), 0.0)
