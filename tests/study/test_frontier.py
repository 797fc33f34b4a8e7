"""Points of risk and gain: intervals against SciPy, scores against the metrics, domination and numbers of episodes."""

import numpy as np
import pytest
from scipy import stats

from sentinel_rl.errors import UsageError
from sentinel_rl.study.frontier import Played, difference, dominated, estimate, tail_scores
from sentinel_rl.training.metrics import Episodes, measure, tail_mean

RNG = np.random.default_rng(0)


def played(
    label: str, returns: np.ndarray, crashed: np.ndarray | None = None, speed: np.ndarray | None = None
) -> Played:
    """Episodes with these returns ``[runs, E]``."""
    ended = np.zeros(returns.shape, bool) if crashed is None else crashed
    return Played(label, Episodes(returns, returns, np.ones(returns.shape, int), ended), speed)


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.3, 1.0])
@pytest.mark.parametrize("size", [4, 7, 100])
def test_the_mean_of_the_tail_scores_is_the_tail(alpha: float, size: int):
    returns = RNG.normal(size=(3, size)).round(1)
    np.testing.assert_allclose(tail_scores(returns, alpha).mean(axis=-1), tail_mean(returns, alpha), atol=1e-12)


def test_estimates_are_the_metrics_of_the_library():
    one = played("a", RNG.normal(size=(1, 50)), RNG.random((1, 50)) < 0.3)
    known = measure(one.episodes)
    assert estimate(one, "tail").value == pytest.approx(known["tail"][0])
    assert estimate(one, "return").value == pytest.approx(known["return"][0])
    assert estimate(one, "crash").value == pytest.approx(known["terminations_per_1000"][0] / 1000)


def test_intervals_over_episodes_and_over_runs():
    returns, crashed = RNG.normal(size=(1, 80)), np.arange(80)[None] < 6
    found = estimate(played("a", returns, crashed), "crash")
    exact = stats.binomtest(6, 80).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == (pytest.approx(exact.low), pytest.approx(exact.high))
    found = estimate(played("a", returns), "return")
    student = stats.t.interval(0.95, 79, returns.mean(), stats.sem(returns[0]))
    assert (found.low, found.high) == (pytest.approx(student[0]), pytest.approx(student[1]))
    many = played("a", np.repeat(np.arange(10.0)[:, None], 500, axis=1))
    low, high = estimate(many, "return")[1:]
    assert high - low > 2, "ten runs tell less than five thousand episodes"
    assert np.isnan(estimate(played("a", np.ones((1, 1))), "return").low)


def test_a_quarter_of_the_intervals_does_not_miss():
    """Student's interval of the tail scores holds the true tail in about 95 % of 400 samples."""
    truth = -stats.norm.pdf(stats.norm.ppf(0.25)) / 0.25
    inside = 0
    for _ in range(400):
        found = estimate(played("a", RNG.normal(size=(1, 200))), "tail")
        inside += found.low <= truth <= found.high
    assert 0.91 < inside / 400 < 0.985


def test_what_is_dominated():
    points = [(10.0, 30.0), (10.0, 30.0), (12.0, 29.0), (5.0, 25.0), (5.0, 24.0)]
    assert dominated(points, (True, False)) == [False, False, True, False, True]
    assert dominated(points, (False, False)) == [False, False, False, True, True]


def test_differences_are_paired():
    base = 100 * RNG.normal(size=(1, 200))
    small = difference(played("a", base), played("b", base + 1 + 0.1 * RNG.normal(size=(1, 200))), "return")
    assert small.is_separated, "although the returns themselves vary by 100"
    assert small.difference == pytest.approx(1, abs=0.05)
    assert small.unit == "episodes"
    same = difference(played("a", base), played("b", base), "return")
    assert (same.needed, same.is_separated) == (None, False)


def test_the_number_of_episodes_is_that_of_the_power():
    """With so many pairs, a difference of the size found is significant in about 80 % of fresh samples."""
    gaps = RNG.normal(size=(1, 100))
    gaps = 0.3 + (gaps - gaps.mean()) / gaps.std(ddof=1)
    found = difference(played("a", 0 * gaps), played("b", gaps), "return")
    assert found.needed == 88  # (1.96 + 0.84)^2 / 0.3^2
    fresh = RNG.normal(0.3, 1.0, (1000, found.needed))
    assert 0.76 < (stats.ttest_1samp(fresh, 0.0, axis=1).pvalue < 0.05).mean() < 0.85


def test_several_runs_are_compared_run_by_run():
    runs = RNG.normal(size=(8, 30))
    found = difference(played("a", runs), played("b", runs + 0.5), "return")
    assert (found.unit, found.is_separated) == ("runs", True)
    other = difference(played("a", runs), played("b", runs[:5] + 0.5), "return")
    assert other.unit == "runs"
    assert other.low < 0.5 < other.high


def test_what_is_not_told_is_refused():
    one = played("a", np.ones((1, 5)))
    with pytest.raises(UsageError, match="does not tell a speed: choose the return or the value"):
        estimate(one, "speed")
    with pytest.raises(UsageError, match="unknown quantity 'fuel': choose one of crash, "):
        estimate(one, "fuel")
    assert estimate(one._replace(speed=np.full((1, 5), 25.0)), "speed").value == 25
