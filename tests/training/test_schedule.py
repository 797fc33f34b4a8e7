"""When things happen: the paper's times by hand, and the decline of epsilon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.training.schedule import Every, Plan, Triangular


def epsilons(plan: Plan, *times: int) -> list[float]:
    return [float(plan.epsilon(jnp.asarray(t))) for t in times]


def test_every_by_hand():
    assert Every(100).times(350).tolist() == [100, 200, 300]
    assert Every(100).times(300).tolist() == [100, 200, 300]
    assert Every(100).times(99).tolist() == []
    assert Every(1).times(3).tolist() == [1, 2, 3]


def test_triangular_by_hand():
    times = Triangular().times(60)
    assert times.tolist() == [1, 3, 6, 10, 15, 21, 28, 36, 45, 55]
    assert times[4::5].tolist() == [15, 55], "highway's target networks"
    assert Triangular().times(120)[14] == 120
    assert Triangular().period is None


@given(st.integers(1, 100_000))
def test_triangular_against_a_loop(steps):
    expected, total = [], 0
    for n in range(1, steps + 1):
        total += n
        if total > steps:
            break
        expected.append(total)
    assert Triangular().times(steps).tolist() == expected


def test_no_update_during_the_warmup():
    assert Plan(steps=500, learn=Every(100), warmup=100).learn_times.tolist() == [200, 300, 400, 500]
    assert Plan(steps=500, learn=Every(100), warmup=99).learn_times.tolist() == [100, 200, 300, 400, 500]
    assert Plan(steps=30, learn=Triangular(), warmup=10).learn_times.tolist() == [15, 21, 28]


def test_epsilon_by_hand():
    plan = Plan(steps=1_100, warmup=100, epsilon_start=1.0, epsilon_end=0.05, epsilon_fraction=0.25)
    np.testing.assert_allclose(epsilons(plan, 0, 99, 100), 1.0)
    np.testing.assert_allclose(epsilons(plan, 225), (1 + 0.05) / 2, rtol=1e-6)
    np.testing.assert_allclose(epsilons(plan, 350, 351, 1_099), 0.05, rtol=1e-6)


def test_another_decline_is_no_other_program():
    """The numbers are arguments: what is compiled for one plan serves any other."""
    epsilon = jax.jit(lambda exploration, t: exploration.epsilon(t))
    for steps, warmup, end in ((1_000, 100, 0.05), (1_200, 7, 0.2)):
        plan = Plan(steps=steps, warmup=warmup, epsilon_end=end)
        np.testing.assert_allclose(epsilon(plan.exploration, 250), epsilons(plan, 250)[0], rtol=1e-6)
    assert epsilon._cache_size() == 1


def test_epsilon_without_a_decline_falls_at_once():
    np.testing.assert_allclose(epsilons(Plan(steps=10, warmup=4, epsilon_fraction=0.0), 4, 5), [1, 0.05], rtol=1e-6)


@given(st.integers(0, 80), st.integers(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_epsilon_stays_between_its_ends(t, warmup, start, end):
    low, high = sorted([start, end])
    plan = Plan(steps=80, warmup=20 * warmup, epsilon_start=start, epsilon_end=end)
    assert low - 1e-6 <= epsilons(plan, t)[0] <= high + 1e-6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Every(0), "period of at least 1"),
        (lambda: Plan(steps=0), "at least 1 step"),
        (lambda: Plan(epsilon_end=1.5), r"epsilon_end must be a number in \[0, 1\], got 1.5"),
        (lambda: Plan(epsilon_fraction=-0.1), "epsilon_fraction"),
    ],
)
def test_what_cannot_be(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
