import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sentinel_rl.errors import UsageError
from sentinel_rl.study.statistics import (
    bootstrap_interval,
    compare,
    holm,
    interquartile_mean,
    summarise,
)
from sentinel_rl.training.metrics import Episodes, measure

NUMBERS = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
NORMAL = np.random.default_rng(0).normal(10.0, 2.0, 50)


def runs(least=1, most=12):
    return st.integers(least, most).flatmap(lambda n: arrays(np.float64, n, elements=NUMBERS))


def test_a_summary_by_hand():
    told = summarise(np.array([4.0, 1.0, 8.0, 3.0, 2.0, 6.0, 5.0, 7.0]))
    assert (told.n, told.mean, told.iqm, told.worst_quarter) == (8, 4.5, 4.5, 1.5)
    assert told.sem == pytest.approx(np.sqrt(6.0 / 8))  # variance of 1..8 with n - 1: 6
    assert summarise(np.array([1.0, 2.0, 3.0, 6.0]), worse="high").worst_quarter == 6.0
    # Of five runs a quarter is one and a quarter: all of 0, a quarter of 10.
    assert summarise(np.array([0.0, 10.0, 20.0, 30.0, 40.0])).worst_quarter == pytest.approx(2.5 / 1.25)


def test_the_interval_is_scipys():
    low, high = bootstrap_interval(NORMAL, seed=3)
    asked = {"confidence_level": 0.95, "n_resamples": 9_999, "method": "BCa"}
    found = stats.bootstrap((NORMAL,), np.mean, rng=np.random.default_rng(3), **asked).confidence_interval
    assert (low, high) == (found.low, found.high)


def test_the_interval_is_near_the_one_of_students_t():
    low, high = bootstrap_interval(NORMAL)
    exact = stats.t.interval(0.95, 49, NORMAL.mean(), stats.sem(NORMAL))
    np.testing.assert_allclose((low, high), exact, atol=0.1 * (exact[1] - exact[0]))


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(120):
        low, high = bootstrap_interval(rng.normal(size=30))
        hits += low <= 0.0 <= high
    # Binomial(120, 0.95), a little less because a bootstrap of 30 is a little narrow: 4 standard deviations.
    assert hits >= 120 * 0.94 - 4 * np.sqrt(120 * 0.05)


def test_degenerate_data_have_an_answer():
    assert summarise(np.array([2.0, 2.0, 2.0])) == (3, 2.0, 0.0, 2.0, 2.0, 2.0, 2.0)
    alone = summarise(np.array([2.0]))
    assert (alone.n, alone.mean, alone.iqm) == (1, 2.0, 2.0)
    assert np.isnan([alone.sem, alone.low, alone.high]).all()
    assert summarise(np.array([np.nan])).n == 0
    two = summarise(np.array([0.0, 1.0]))
    assert 0.0 <= two.low <= two.high <= 1.0


def test_runs_without_a_number_do_not_count():
    assert summarise(np.append(NORMAL, np.nan)) == summarise(NORMAL)
    with pytest.raises(UsageError, match="one number per run"):
        summarise(np.ones((2, 3)))


@given(runs(least=2))
def test_a_summary_keeps_its_order(values):
    low, high = summarise(values, "low"), summarise(values, "high")
    rounding = 1e-9 * (1 + np.abs(values).max())
    assert values.min() - rounding <= low.worst_quarter <= low.mean + rounding <= high.worst_quarter + 2 * rounding
    assert values.min() - rounding <= low.low <= low.high <= values.max() + rounding
    assert low[:6] == high[:6]


@given(runs(least=4), st.floats(-50, 50), st.floats(0.1, 10))
def test_the_middle_mean_moves_with_the_data(values, shift, scale):
    moved = interquartile_mean(scale * values + shift)
    assert moved == pytest.approx(scale * interquartile_mean(values) + shift, abs=1e-6)
    assert interquartile_mean(-values) == pytest.approx(-interquartile_mean(values), abs=1e-9)


@pytest.mark.parametrize("size", [4, 8, 20, 100])
def test_the_middle_mean_is_scipys_trimmed_mean_where_quarters_are_whole(size):
    values = np.random.default_rng(size).normal(size=size)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_a_comparison_by_hand():
    ours = np.array([10.0, 12.0, 14.0, 16.0, 18.0, 20.0])
    theirs = ours + np.array([1.0, 2.0, 3.0, 4.0, 5.0, -6.0])
    told = compare(ours, {"theirs": theirs}, better="low")["theirs"]
    assert (told.n, told.difference) == (6, -1.5)
    assert told.probability_of_improvement == pytest.approx(5 / 6)
    # Ranks 1 to 5 against 6: W = 6, and of the 64 signs those with a smaller sum on one side are counted.
    assert told.p_value == stats.wilcoxon(ours - theirs).pvalue == pytest.approx(0.4375)
    assert told.low < -1.5 < told.high
    assert (told.low, told.high) == bootstrap_interval(ours - theirs)


def test_pairs_not_samples_are_compared():
    seeds = np.random.default_rng(2).normal(0.0, 100.0, 20)  # hard and easy seeds
    told = compare(seeds + 1.0, {"theirs": seeds + np.random.default_rng(3).normal(0.0, 0.1, 20)})["theirs"]
    assert told.low > 0.9
    assert told.probability_of_improvement == 1.0
    assert told.p_value < 1e-5


def test_equal_runs_are_no_improvement():
    told = compare(NORMAL, {"same": NORMAL.copy()})["same"]
    assert told[:6] == (50, 0.0, 0.0, 0.0, 0.5, 1.0)


def test_pairs_without_a_number_do_not_count():
    theirs = NORMAL - 1.0
    theirs[3] = np.nan
    assert compare(NORMAL, {"theirs": theirs})["theirs"].n == 49
    assert compare(NORMAL, {"none": np.full(50, np.nan)})["none"].n == 0
    with pytest.raises(UsageError, match="as many runs"):
        compare(NORMAL, {"short": NORMAL[:3]})


def test_comparisons_are_corrected_for_their_number():
    rng = np.random.default_rng(4)
    told = compare(NORMAL, {str(i): NORMAL - rng.normal(0.2, 1.0, 50) for i in range(3)})
    p_values = [each.p_value for each in told.values()]
    np.testing.assert_allclose([each.p_holm for each in told.values()], holm(np.array(p_values)))
    assert compare(NORMAL, {}) == {}


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """Holm's value is the largest of ``m' p_min`` over all sets of hypotheses that contain it."""
    size = len(p_values)
    expected = np.zeros(size)
    for members in range(1, 2**size):
        chosen = [i for i in range(size) if members >> i & 1]
        joint = min(1.0, len(chosen) * min(p_values[i] for i in chosen))
        expected[chosen] = np.maximum(expected[chosen], joint)
    np.testing.assert_allclose(holm(p_values), expected)


def test_holm_leaves_out_what_was_not_tested():
    np.testing.assert_allclose(holm(np.array([0.01, np.nan, 0.03])), [0.02, np.nan, 0.03])


def test_tails_by_hand():
    returns = np.tile(np.arange(1.0, 101.0), (2, 1))
    returns[1] *= -1
    ended = np.zeros((2, 100), bool)
    ended[0, :3] = True
    expected = {
        "value": [50.5, -50.5],
        "cvar_05": [3.0, -98.0],
        "cvar_10": [5.5, -95.5],
        "tail": [13.0, -88.0],
        "worst": [1.0, -100.0],
        "terminations_per_1000": [30.0, 0.0],
    }
    told = measure(Episodes(np.zeros((2, 100)), returns, np.ones((2, 100), int), ended))
    assert told.keys() >= expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(told[name], values, err_msg=name)
