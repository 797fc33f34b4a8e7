"""First states: the distribution of the original."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.highway.reset import steps_until_due
from tests.envs.highway.redraw import FirstState, redraw

COMPILE_QUICKLY = True

N = 1500
RESET = jax.jit(Highway.reset)
ENV = Highway(vehicles_density=1.5)
CONFIG = {
    "lanes_count": 5,
    "vehicles_count": 10,
    "vehicles_density": 1.5,
    "ego_spacing": 2,
    "initial_lane_id": None,
}


@pytest.fixture(scope="module")
def drawn():
    return jax.device_get(jax.jit(jax.vmap(ENV.reset))(jax.random.split(jax.random.key(5), N)))


@pytest.fixture(scope="module")
def truth() -> FirstState:
    firsts = [redraw(seed, CONFIG) for seed in range(N)]
    return FirstState(*(np.stack(column) for column in zip(*firsts, strict=True)))


def test_places_speeds_and_exponents_have_the_same_distribution(drawn, truth: FirstState):
    state, _ = drawn
    for ours, theirs in (
        (state.x[:, 0], truth.x[:, 0]),
        (np.diff(state.x).ravel(), np.diff(truth.x).ravel()),
        (state.x[:, -1], truth.x[:, -1]),
        (state.speed[:, 1:].ravel(), truth.speed[:, 1:].ravel()),
        (state.delta[:, 1:].ravel(), truth.delta[:, 1:].ravel()),
    ):
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


def test_lanes_and_timers_have_the_same_distribution(drawn, truth: FirstState):
    state, _ = drawn
    np.testing.assert_array_equal(state.y, 4 * state.target_lane)
    counts = [np.bincount(lanes.ravel(), minlength=5) for lanes in (state.target_lane, truth.lane)]
    assert stats.chi2_contingency(counts).pvalue > 1e-3
    due = np.vectorize(lambda clock: steps_until_due(clock, 15))(truth.timer[:, 1:])
    counts = [np.bincount(waits.ravel(), minlength=17) for waits in (state.wait[:, 1:], due)]
    used = np.sum(counts, axis=0) > 0
    assert stats.chi2_contingency(np.array(counts)[:, used]).pvalue > 1e-3


def test_neighbouring_draws_are_independent(drawn):
    state, _ = drawn
    for values in (state.speed[:, 1:], np.diff(state.x), state.target_lane.astype(float), state.delta):
        assert abs(np.corrcoef(values[:, 1], values[:, 2])[0, 1]) < 0.1


def test_what_is_not_drawn_is_fixed(drawn):
    state, obs = drawn
    assert (state.speed[:, 0] == 25).all()
    np.testing.assert_array_equal(state.target_speed, state.speed)
    for nothing in (state.crashed, state.hit, state.heading, state.time):
        assert not nothing.any()
    assert (np.diff(state.x) > 0).all(), "everybody starts ahead of the one before"
    np.testing.assert_allclose(obs.reshape(N, 5, 5)[:, 0, 0], 1)


def test_the_ego_may_be_given_a_lane():
    state, _ = jax.jit(jax.vmap(Highway(initial_lane_id=3).reset))(jax.random.split(jax.random.key(0), 20))
    assert (np.asarray(state.target_lane)[:, 0] == 3).all()
    assert len(set(np.asarray(state.target_lane)[:, 1].tolist())) > 1


def test_the_others_may_be_given_speeds():
    state, _ = jax.jit(jax.vmap(Highway(others_speed=(27.0, 30.0)).reset))(jax.random.split(jax.random.key(0), 500))
    speeds = np.asarray(state.speed)[:, 1:].ravel()
    assert stats.kstest(speeds, stats.uniform(27, 3).cdf).pvalue > 1e-3
    np.testing.assert_array_equal(state.target_speed, state.speed)
    assert (np.asarray(state.speed)[:, 0] == 25).all(), "the ego is not one of the others"
    jitter = np.diff(state.x) / ((12 + np.asarray(state.speed)[:, 1:]) * np.exp(-5 / 8))
    assert stats.kstest(jitter.ravel(), stats.uniform(0.9, 0.2).cdf).pvalue > 1e-3, "distances grow with the speeds"


def test_timers_are_counted_as_the_original_adds_them_up():
    for frequency in (3, 5, 10, 15, 20, 30):
        clock, steps = 0.0, 0
        while not 1.0 < clock:
            clock, steps = clock + 1 / frequency, steps + 1
        assert steps_until_due(0.0, frequency) == steps
    assert (steps_until_due(0.0, 15), steps_until_due(0.0, 5)) == (16, 6)


def test_a_key_determines_the_state():
    first, again, other = (RESET(ENV, jax.random.key(key))[0].x for key in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert jnp.any(first != other)
