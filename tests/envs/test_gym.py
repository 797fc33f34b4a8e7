import pickle

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded, UnsupportedMode
from gymnasium.utils.env_checker import check_env

from sentinel_rl.envs import CartPole, GymEnv, Toy
from tests.envs.recorder import balance, record
from tests.envs.worlds import NAMES

# Gymnasium says so of its own CartPole too.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*-v0 is out of date:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*A Box observation space .*infinity:UserWarning"),
]


def trace(env: gymnasium.Env, seed: int, steps: int = 60) -> list[tuple]:
    """Random play over several episodes."""
    rng, rows = np.random.default_rng(seed), [tuple(env.reset(seed=seed)[0])]
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(int(rng.integers(2)))
        rows.append((*obs, reward, terminated, truncated))
        if terminated or truncated:
            rows.append(tuple(env.reset()[0]))
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_passes(name: str):
    check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_determines_everything(name: str):
    first, second = gymnasium.make(name), gymnasium.make(name)
    assert trace(first, 5) == trace(second, 5) == trace(first, 5)
    assert trace(first, 5) != trace(first, 6)


def test_without_a_seed_runs_differ():
    first, second = GymEnv(CartPole()), GymEnv(CartPole())
    assert tuple(first.reset()[0]) != tuple(second.reset()[0])


@pytest.mark.parametrize("name", ["CartPole-v0", "CartPole-v1"])
def test_spaces_and_returned_types_are_those_of_gymnasium(name: str):
    original, ours = gymnasium.make(name), gymnasium.make(f"sentinel/{name}")
    assert ours.observation_space == original.observation_space
    assert ours.action_space == original.action_space
    for env in (original, ours):
        assert env.reset(seed=0)[0].dtype == np.float32
        obs, reward, terminated, truncated, info = env.step(1)
        assert (obs.dtype, type(reward), type(terminated), type(truncated), info) == (np.float32, float, bool, bool, {})


@pytest.mark.parametrize("limit", [None, 30])
def test_whole_episodes_equal_gymnasium_step_by_step(limit: int | None):
    """Through gym.make and its wrappers, each step from the state of the original."""
    episode = record("CartPole-v0", balance(), seed=1, max_steps=limit)
    env = gymnasium.make("sentinel/CartPole-v0", max_episode_steps=limit)
    env.reset(seed=1)
    for t, action in enumerate(episode.actions):
        core = env.unwrapped
        core._state = core._state._replace(motion=jnp.asarray(episode.states[t], jnp.float32))
        obs, reward, terminated, truncated, _ = env.step(action)
        np.testing.assert_allclose(obs, episode.obs[t], rtol=0, atol=1e-6)
        assert (reward, terminated, truncated) == (1.0, episode.terminated[t], episode.truncated[t])
    assert (terminated, truncated) == (False, True)


def test_a_time_limit_may_be_lifted():
    env = gymnasium.make("sentinel/CartPole-v0", max_episode_steps=-1)
    obs, _ = env.reset(seed=0)
    for _ in range(210):
        obs, _, terminated, truncated, _ = env.step(balance()(obs, np.random.default_rng()))
        assert not terminated
        assert not truncated


def test_settings_reach_the_environment():
    assert gymnasium.make("sentinel/CartPole-v1", gravity=1.6).unwrapped.env == CartPole(None, gravity=1.6)
    with pytest.raises(TypeError, match="gravty"):
        gymnasium.make("sentinel/CartPole-v1", gravty=1.6)
    with pytest.raises(TypeError, match=r"settings \['gravity'\] need an environment given by name"):
        GymEnv(CartPole(), gravity=1.6)
    with pytest.raises(ValueError, match=r"'Acrobot-v1' is not a JAX environment: use gymnasium.make"):
        GymEnv("Acrobot-v1")


@pytest.mark.parametrize("action", [2, -1, 1.0, None, "left", np.array([1]), np.float32(1)])
def test_actions_that_do_not_exist_are_refused(action: object):
    env = GymEnv(CartPole())
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"action .* does not exist: it must be in Discrete\(2\)"):
        env.step(action)


def test_integers_of_every_kind_are_actions():
    env = GymEnv(CartPole())
    outcomes = set()
    for action in (1, np.int64(1), np.int32(1), np.array(1), jnp.array(1)):
        env.reset(seed=0)
        outcomes.add(tuple(env.step(action)[0]))
    assert len(outcomes) == 1


def test_steps_outside_an_episode_are_refused():
    env = GymEnv(Toy())
    with pytest.raises(ResetNeeded, match="no episode is running"):
        env.step(0)
    env.reset(seed=0)
    assert env.step(0)[2]
    with pytest.raises(ResetNeeded, match="no episode is running"):
        env.step(0)


def test_unknown_reset_options_are_refused():
    with pytest.raises(ValueError, match=r"reset takes no options, got \['low'\]"):
        GymEnv(CartPole()).reset(options={"low": -0.1})


def test_a_nan_comes_out():
    env = GymEnv(CartPole())
    env.reset(seed=0)
    env._state = env._state._replace(motion=env._state.motion.at[0].set(jnp.nan))
    obs, _, terminated, _, _ = env.step(0)
    assert np.isnan(obs[0])
    assert not terminated


def test_observations_may_be_kept_and_written_to():
    env = GymEnv(CartPole())
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second = env.step(0)[0]
    second[:] = 9.0
    np.testing.assert_array_equal(first, kept)
    assert np.abs(env.step(0)[0]).max() < 9


def test_pictures():
    env = gymnasium.make("sentinel/CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((400, 600, 3), np.uint8)
    assert (picture[285:315, 280:290] == 0).mean() > 0.9, "the cart"
    assert (picture[200, 290:310] == (202, 152, 101)).all(-1).any(), "the pole"
    for _ in range(5):
        env.step(1)
    assert (env.render() != picture).any()


def test_pictures_that_do_not_exist():
    with pytest.raises(UnsupportedMode, match=r"sentinel/Toy-v0 has no render_mode 'rgb_array': allowed are \[None\]"):
        gymnasium.make("sentinel/Toy-v0", render_mode="rgb_array")
    with pytest.raises(UnsupportedMode, match="'ansi': allowed are"):
        GymEnv(CartPole(), render_mode="ansi")
    with pytest.raises(ResetNeeded, match="call reset"):
        GymEnv(CartPole(), render_mode="rgb_array").render()
    env = GymEnv(CartPole())
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="draws nothing"):
        assert env.render() is None


def test_a_copy_goes_on_in_the_same_way():
    env = GymEnv(CartPole())
    env.reset(seed=0)
    other = pickle.loads(pickle.dumps(env))
    assert tuple(env.step(1)[0]) == tuple(other.step(1)[0])
    assert tuple(env.reset()[0]) == tuple(other.reset()[0])
