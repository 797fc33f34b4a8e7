"""What holds for any traffic and any actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rl.envs.highway import Highway

ENV = Highway(lanes_count=3, vehicles_count=5, vehicles_density=3.0, observed_vehicles=4, duration=8)
STEPS, BATCH = 8, 4
COMPILE_QUICKLY = True

KEY = jax.random.key(0)


@jax.jit
def play(key, actions):
    """States before and after every action of one world, on and on."""

    def step(state, action):
        after = ENV.step(state, action, KEY)
        return after[0], (state, *after)

    return jax.lax.scan(step, ENV.reset(key)[0], actions)[1]


@jax.jit
def play_many(keys, actions):
    """The same for worlds beside each other, ``[steps, worlds, ...]``."""

    def step(state, action):
        after = jax.vmap(ENV.step, (0, 0, None))(state, action, KEY)
        return after[0], (state, *after)

    return jax.lax.scan(step, jax.vmap(ENV.reset)(keys)[0], actions)[1]


plays = st.tuples(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 4), min_size=STEPS, max_size=STEPS))


@given(plays)
@settings(max_examples=40)
def test_nothing_breaks_and_nobody_teleports(drawn):
    seed, actions = drawn
    before, state, after = jax.device_get(play(jax.random.key(seed), jnp.array(actions)))
    for leaf in jax.tree.leaves((state, after)):
        assert np.isfinite(leaf).all()
    assert (np.abs(after.obs) <= 1).all()
    assert ((0 <= after.reward) & (after.reward <= 1)).all()
    np.testing.assert_array_equal(after.terminated, state.crashed[:, 0])
    np.testing.assert_array_equal(after.truncated, state.time >= 8)
    assert ((0 <= state.target_lane) & (state.target_lane < 3)).all()
    assert (before.crashed <= state.crashed).all(), "a wreck stays a wreck"
    moved = np.hypot(state.x - before.x, state.y - before.y)
    pushes = 4.0  # collisions push by half of at most a car's diagonal, now and then
    fastest = np.maximum(np.abs(before.speed), np.abs(state.speed)) + 1e-3
    assert (moved <= fastest + np.where(state.crashed, pushes, 0.5)).all()
    assert (np.abs(state.speed - before.speed)[:, 1:] <= np.where(state.crashed, 40, 6.001)[:, 1:]).all()
    assert (np.abs(state.heading) < 1.2).all()


@given(plays)
@settings(max_examples=10)
def test_the_same_again(drawn):
    seed, actions = drawn
    runs = [jax.device_get(play(jax.random.key(seed), jnp.array(actions))) for _ in range(2)]
    jax.tree.map(np.testing.assert_array_equal, *runs)


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=10)
def test_a_batch_equals_singles(seed: int):
    keys = jax.random.split(jax.random.key(seed), BATCH)
    actions = jax.random.randint(jax.random.key(seed), (STEPS, BATCH), 0, 5)
    many = jax.device_get(play_many(keys, actions))
    for i in range(BATCH):
        single = jax.device_get(play(keys[i], actions[:, i]))
        jax.tree.map(
            lambda mine, other, i=i: np.testing.assert_allclose(mine[:3, i], other[:3], atol=2e-3), many, single
        )


def test_nested_maps_and_arguments_that_are_not_mapped():
    """Two batch axes, one of them over the action alone: the same worlds in another shape."""
    keys = jax.random.split(jax.random.key(1), 2)
    states, _ = jax.jit(jax.vmap(ENV.reset))(keys)
    inner = jax.vmap(ENV.step, (None, 0, None))
    grid_states, grid = jax.jit(jax.vmap(inner, (0, None, None)))(states, jnp.arange(5), KEY)
    assert grid.obs.shape == (2, 5, 20)
    assert grid_states.x.shape == (2, 5, 6)
    flat_states = jax.tree.map(lambda leaf: jnp.repeat(leaf, 5, axis=0), states)
    _, flat = jax.jit(jax.vmap(ENV.step, (0, 0, None)))(flat_states, jnp.tile(jnp.arange(5), 2), KEY)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a.reshape(b.shape), b), grid, flat)
    constant = jax.jit(jax.vmap(lambda state: ENV.step(state, jnp.array(3), KEY)[1].obs))(states)
    np.testing.assert_array_equal(constant, grid.obs[:, 3])


@pytest.mark.parametrize("action", [-1, 5, 99])
def test_an_action_that_does_not_exist_shows_as_nan(action: int):
    _, _, after = play(KEY, jnp.full(STEPS, action))
    assert np.isnan(after.reward).all()
    assert np.isnan(np.asarray(after.obs)[:, 1:5]).all()
    assert not after.terminated.any()


def test_float32_follows_float64_until_chance_decides():
    """Same starts, same actions: at first the precisions agree to what float32 can hold."""
    keys = jax.random.split(jax.random.key(3), BATCH)
    actions = jnp.ones((STEPS, BATCH), jnp.int32)
    start, single, _ = play_many(keys, actions)
    with jax.enable_x64(True):
        first = jax.tree.map(lambda leaf: _double(leaf[0]), start)
        step = jax.jit(jax.vmap(ENV.step, (0, 0, None)))
        state, _ = step(first, actions[0], jax.random.key(0))
        assert state.x.dtype == jnp.float64
        np.testing.assert_allclose(single.x[0], state.x, atol=1e-3)
        np.testing.assert_allclose(single.speed[0], state.speed, atol=1e-3)


def _double(leaf):
    return leaf.astype(jnp.float64) if leaf.dtype == jnp.float32 else leaf
