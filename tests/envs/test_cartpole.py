import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from scipy import stats

from sentinel_rl.envs import CartPole, CartPoleState
from tests.envs.recorder import Episode, always, episodes, randomly, record

LIMITS = {"CartPole-v0": 200, "CartPole-v1": 500}
KEY = jax.random.key(0)
STEP = jax.jit(CartPole.step)


@pytest.fixture(scope="module", params=list(LIMITS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def played(name: str) -> list[Episode]:
    return episodes(name)


@jax.jit
def step_many(env: CartPole, motion, time, action):
    return jax.vmap(lambda m, t, a: env.step(CartPoleState(m, t), a, KEY))(motion, time, action)


@jax.jit
def play_many(env: CartPole, motion, actions):
    """Play sequences of actions from initial states, on and on."""

    def play(start, sequence):
        state = CartPoleState(start, jnp.zeros((), jnp.int32))
        return jax.lax.scan(lambda state, action: env.step(state, action, KEY), state, sequence)[1]

    return jax.vmap(play)(motion, actions)


def flat(played: list[Episode]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All transitions: the states and times before them, and the actions."""
    states = np.concatenate([episode.states[:-1] for episode in played])
    times = np.concatenate([np.arange(len(episode.actions)) for episode in played])
    return states, times.astype(np.int32), np.concatenate([episode.actions for episode in played])


def column(played: list[Episode], field: str) -> np.ndarray:
    return np.concatenate([getattr(episode, field) for episode in played])


def test_the_recorded_episodes_end_in_every_way(name: str, played: list[Episode]):
    last = np.array([episode.states[-1] for episode in played])
    fell = np.array([episode.terminated[-1] for episode in played])
    limit = CartPole().theta_limit
    for end in (last[:, 0] < -2.4, last[:, 0] > 2.4, last[:, 2] < -limit, last[:, 2] > limit):
        assert (end & fell).any()
    full = np.array([len(episode.actions) == LIMITS[name] for episode in played])
    assert (full & ~fell).sum() >= 4


def test_every_step_equals_gymnasium_in_float64(name: str, played: list[Episode]):
    with jax.enable_x64(True):
        _, after = step_many(CartPole(LIMITS[name]), *flat(played))
        truth = np.concatenate([episode.states[1:] for episode in played])
        np.testing.assert_allclose(after.obs, truth, rtol=0, atol=2e-15)
        for field in ("terminated", "truncated"):
            np.testing.assert_array_equal(getattr(after, field), column(played, field))
        np.testing.assert_array_equal(after.reward, column(played, "rewards"))


def test_every_step_equals_gymnasium_in_float32(name: str, played: list[Episode]):
    """From equal states: rounded to float32 before each step."""
    states, times, actions = flat(played)
    states, original = states.astype(np.float32), CartPoleEnv()
    truth, fell = [], []
    original.reset()
    for state, action in zip(states, actions, strict=True):
        original.state, original.steps_beyond_terminated = state.astype(np.float64), None
        obs, _, terminated, _, _ = original.step(int(action))
        truth.append(obs)
        fell.append(terminated)
    _, after = step_many(CartPole(LIMITS[name]), states, times, actions)
    assert after.obs.dtype == jnp.float32
    np.testing.assert_allclose(after.obs, truth, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(after.terminated, fell)


def test_whole_episodes_equal_gymnasium_from_their_first_state():
    """Left alone for 200 steps, rounding grows with the instability of the pole, but not beyond 1e-6."""
    played = episodes("CartPole-v0")
    actions = np.zeros((len(played), 200), np.int64)
    for row, episode in zip(actions, played, strict=True):
        row[: len(episode.actions)] = episode.actions
    with jax.enable_x64(True):
        starts = np.array([episode.states[0] for episode in played])
        after = jax.device_get(play_many(CartPole(200), starts, actions))
    for i, episode in enumerate(played):
        steps = len(episode.actions)
        np.testing.assert_allclose(after.obs[i, :steps], episode.states[1:], rtol=0, atol=1e-6)
        np.testing.assert_array_equal(after.terminated[i, :steps], episode.terminated)
        np.testing.assert_array_equal(after.truncated[i, :steps], episode.truncated)
        np.testing.assert_allclose(after.obs[i, :steps], episode.obs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("policy", [randomly, always(0), always(1)])
def test_a_fall_on_the_last_allowed_step_is_terminated_and_truncated(policy):
    steps = len(record("CartPole-v0", policy, seed=3).actions)
    last = record("CartPole-v0", policy, seed=3, max_steps=steps)
    assert (last.terminated[-1], last.truncated[-1]) == (True, True)
    state = CartPoleState(jnp.asarray(last.states[-2], jnp.float32), jnp.int32(steps - 1))
    _, after = STEP(CartPole(steps), state, jnp.asarray(last.actions[-1]), KEY)
    assert (bool(after.terminated), bool(after.truncated), float(after.reward)) == (True, True, 1.0)


def test_constants_are_those_of_gymnasium():
    original, env = gymnasium.make("CartPole-v1").unwrapped, CartPole()
    assert (env.total_mass, env.pole_moment) == (original.total_mass, original.polemass_length)
    assert (env.theta_limit, env.x_limit, env.tau) == (
        original.theta_threshold_radians,
        original.x_threshold,
        original.tau,
    )
    assert env.render_fps == original.metadata["render_fps"]


def test_initial_states_are_uniform_and_repeat():
    keys = jax.random.split(jax.random.key(7), 4000)
    state, obs = jax.jit(jax.vmap(CartPole().reset))(keys)
    np.testing.assert_array_equal(state.motion, obs)
    np.testing.assert_array_equal(state.time, 0)
    assert np.abs(obs).max() <= 0.05
    for values in np.asarray(obs, np.float64).T:
        assert stats.kstest(values, stats.uniform(-0.05, 0.1).cdf).pvalue > 1e-3
    np.testing.assert_allclose(CartPole().reset(keys[5])[1], obs[5], rtol=1e-5, atol=1e-8)


def test_the_name_follows_the_limit():
    assert [CartPole(limit).spec.name for limit in (200, 500, 7, None)] == [
        "CartPole-v0",
        "CartPole-v1",
        "CartPole",
        "CartPole",
    ]
    state, _ = CartPole(None).reset(KEY)
    _, after = STEP(CartPole(None), state._replace(time=jnp.int32(10**6)), jnp.int32(0), KEY)
    assert not after.truncated


@pytest.mark.parametrize("action", [-1, 2, 7])
def test_an_action_that_does_not_exist_shows_as_nan(action: int):
    state, _ = CartPole().reset(KEY)
    _, after = STEP(CartPole(), state, jnp.int32(action), KEY)
    assert np.isnan(np.asarray(after.obs)[1::2]).all()


def test_a_nan_is_never_hidden():
    state = CartPoleState(jnp.array([0.0, 0.0, jnp.nan, 0.0]), jnp.int32(0))
    state, after = STEP(CartPole(), state, jnp.int32(1), KEY)
    assert np.isnan(after.obs[2])
    assert not after.terminated


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_refused(limit: int):
    with pytest.raises(ValueError, match=f"max_steps = {limit} is not allowed: give at least 1"):
        CartPole(limit)
