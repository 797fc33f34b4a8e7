"""The table of metrics: each by hand, over any leading axes, and open to others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.errors import UsageError
from sentinel_rl.risk import CVaR
from sentinel_rl.training import metrics
from sentinel_rl.training.metrics import (
    Episodes,
    Metric,
    find_metric,
    measure,
    metric_names,
    pooled,
    register_metric,
    tail_mean,
)

DISCOUNTED = np.array([1.0, 2.0, 3.0, 4.0])
PLAYED = Episodes(2 * DISCOUNTED, DISCOUNTED, np.array([1, 2, 3, 4]), np.array([True, False, False, False]))


@pytest.fixture
def own_table(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(metrics, "_METRICS", dict(metrics._METRICS))


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


def test_summary_by_hand():
    expected = {
        "return": 5.0,
        "value": 2.5,
        "tail": 1.0,
        "cvar_05": 1.0,
        "cvar_10": 1.0,
        "worst": 1.0,
        "length": 2.5,
        "terminations_per_1000": 250.0,
    }
    assert list(expected) == metric_names()[: len(expected)], "all of the library's metrics"
    found = measure(PLAYED)
    assert {name: float(found[name]) for name in expected} == expected
    assert tail_mean(PLAYED.discounted, 0.5) == pytest.approx(1.5)
    longer = Episodes(*(np.tile(field, 10) for field in PLAYED))
    tails = measure(longer, ["cvar_05", "cvar_10", "tail"])
    assert [float(tail) for tail in tails.values()] == [1.0, 1.0, 1.0]
    rising = Episodes(*(np.sort(field) for field in longer))._replace(discounted=np.arange(40.0))
    assert [float(tail) for tail in measure(rising, ["cvar_05", "cvar_10", "tail"]).values()] == [0.5, 1.5, 4.5]


def test_the_episodes_stand_on_the_last_axis():
    worse = PLAYED._replace(reward=PLAYED.reward - 1)
    both = Episodes(*(np.stack(fields)[:, None] for fields in zip(PLAYED, worse, strict=True)))
    found = measure(both)
    assert {values.shape for values in found.values()} == {(2, 1)}
    np.testing.assert_allclose(found["return"], [[5.0], [4.0]])


def test_pooled_episodes_are_those_of_all():
    assert np.size(pooled([PLAYED, PLAYED]).reward) == 8
    assert float(measure(pooled([PLAYED, PLAYED]), ["value"])["value"]) == 2.5


def test_every_metric_says_what_is_better_and_what_it_counts():
    better = {name: find_metric(name).better for name in metric_names()}
    assert {name for name, side in better.items() if side == "low"} == {"terminations_per_1000"}
    assert all(find_metric(name).unit for name in metric_names())


@pytest.mark.usefixtures("own_table")
def test_a_metric_of_the_users_own_is_measured_with_the_others():
    register_metric(Metric("longest", lambda e: np.max(e.length, axis=-1), unit="steps"))
    assert metric_names()[-1] == "longest"
    assert measure(PLAYED)["longest"] == 4
    register_metric(Metric("longest", lambda e: np.max(e.length, axis=-1) + 0.5, unit="steps"))
    assert measure(PLAYED, ["longest"]) == {"longest": 4.5}, "a later one of the same name replaces it"


@pytest.mark.usefixtures("own_table")
def test_a_metric_of_the_library_is_not_replaced():
    with pytest.raises(UsageError, match="the metric 'tail' belongs to the library: choose another name"):
        register_metric(Metric("tail", lambda e: np.zeros(1)))
    assert measure(PLAYED, ["tail"])["tail"] == 1.0


def test_an_unknown_metric_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="unknown metric 'tails': known are return, value, tail, "):
        measure(PLAYED, ["tails"])
