"""Coverage gaps: closed worlds never show the region, open ones do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs import CartPole, Gapped, LeftLane, make_env
from sentinel_rl.envs.highway.dynamics import IDLE, LEFT
from sentinel_rl.errors import UsageError

KEYS = jax.random.split(jax.random.key(0), 64)


def wander(env, steps: int):
    """Random play: observations, whether the states are in the gap, and whether steps ended the episode."""

    @jax.jit
    @jax.vmap
    def play(key):
        state, obs = env.reset(key)

        def step(carry, key):
            state, over = carry
            action = jax.random.randint(key, (), 0, env.spec.num_actions)
            state, after = env.step(state, action, key)
            shown = env.in_gap(state) & ~over
            return (state, over | after.terminated | after.truncated), (after, shown, ~over)

        _, rest = jax.lax.scan(step, (state, jnp.array(False)), jax.random.split(key, steps))
        return obs, env.in_gap(state), *rest

    return jax.device_get(play(KEYS))


def test_a_closed_cartpole_never_leans_to_the_right():
    env = make_env("sentinel/CartPoleGap-v0")
    first, started, after, shown, live = wander(env, 40)
    assert not started.any()
    assert not shown.any()
    assert (first[:, 2] <= 0.03).all()
    assert (after.obs[live][:, 2] <= 0.03).all(), "nothing inside is observed"
    ended = live & after.truncated
    assert ended.any(), "a step into the region truncates"
    assert not (ended & after.terminated).any()
    assert (after.terminated & live).any(), "the pole may fall to the other side"


def test_an_open_cartpole_is_cartpole():
    env = make_env("sentinel/CartPoleGapOpen-v0")
    _, started, after, shown, _ = wander(env, 40)
    assert started.any()
    assert not started.all()
    assert shown.any()
    assert not after.truncated.any()
    key = jax.random.key(5)
    np.testing.assert_array_equal(env.reset(key)[1], CartPole(500).reset(key)[1])


def test_starts_may_be_inside_an_open_region():
    env = make_env("sentinel/CartPoleGapOpen-v0", start="inside")
    states, obs = jax.jit(jax.vmap(env.reset))(KEYS)
    assert (np.asarray(obs)[:, 2] > 0.03).all()
    assert np.asarray(jax.vmap(env.in_gap)(states)).all()


def test_changes_to_the_left_lane_are_refused_on_a_closed_highway():
    env = make_env("sentinel/highway-gap-v0")
    states, _ = jax.jit(jax.vmap(env.reset))(KEYS)
    lanes = np.asarray(states.inner.target_lane)[:, 0]
    assert set(lanes) == {1, 2, 3, 4}
    taken = jax.vmap(lambda state: LeftLane().avoid(env.env, state.inner, jnp.array(LEFT)))(states)
    np.testing.assert_array_equal(taken, np.where(lanes == 1, IDLE, LEFT))
    opened = make_env("sentinel/highway-gap-open-v0")
    states, _ = jax.jit(jax.vmap(opened.reset))(KEYS)
    np.testing.assert_array_equal(jax.vmap(opened.in_gap)(states), np.asarray(states.inner.target_lane)[:, 0] == 0)


@pytest.mark.slow
def test_a_closed_highway_never_shows_the_left_lane():
    _, started, after, shown, live = wander(make_env("sentinel/highway-gap-v0"), 15)
    assert not started.any()
    assert not shown.any()
    assert (after.obs[live][:, 2] > 0.1 - 1e-6).all(), "y of at least 2 m, in units of 20 m"
    assert (after.terminated & live).any()
    assert not (after.truncated & live).any()


def test_all_worlds_with_a_gap_tell_it():
    for name in ("MazeGap-v0", "CartPoleGap-v0", "highway-gap-v0"):
        assert isinstance(make_env(f"sentinel/{name}"), Gapped)


def test_what_would_show_the_region_is_refused():
    with pytest.raises(UsageError, match="start = 'inside' would show the closed region: open it with closed=False"):
        make_env("sentinel/CartPoleGap-v0", start="inside")
