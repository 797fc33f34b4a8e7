"""gymnax both ways: its environments are trained here, and ours pass for its own."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sentinel_rl as srl
from sentinel_rl.envs import CartPole, Toy, from_gymnax, make_env
from sentinel_rl.envs.gymnax import ToGymnax
from sentinel_rl.errors import UsageError

SMALL = {"hidden": (4,), "k": 2, "capacity": 64, "samples": 8, "batch": 8, "learn_every": 20, "warmup": 10}


class Space:
    """A space as gymnax has it, discrete or a box."""

    def __init__(self, n=None, shape=(), low=-1.0, high=1.0):
        self.shape = shape
        if n is not None:
            self.n = n
        else:
            self.low, self.high = low, high


class Params(eqx.Module):
    max_steps_in_episode: int = 3

    def replace(self, **settings):
        return Params(**settings)


class Counter:
    """gymnax's interface without gymnax: counts to 5, in episodes of at most three steps."""

    name, values = "Counter", 6
    default_params = Params()

    def reset(self, key, params):
        return jnp.zeros((2, 1)), jnp.zeros((), jnp.int32)

    def step(self, key, state, action, params):
        state = state + action + 1
        obs, terminated = jnp.full((2, 1), 1.0 * state), state >= 5
        truncated = state >= params.max_steps_in_episode
        found = jnp.zeros((2, 1)), jnp.zeros((), jnp.int32), jnp.float32(1.0)
        if self.values == 5:
            return *found, terminated | truncated, {}
        return *found, terminated, truncated, {"final_observation": obs}

    def action_space(self, params):
        return Space(n=2)

    def observation_space(self, params):
        return Space(shape=(2, 1))


def test_an_environment_by_interface_keeps_its_true_successor():
    env = from_gymnax(Counter())
    assert (env.spec.name, env.spec.obs_size, env.spec.num_actions, env.spec.max_steps) == ("gymnax/Counter", 2, 2, 3)
    state, _ = env.reset(jax.random.key(0))
    _, after = env.step(state, jnp.int32(1), jax.random.key(0))
    assert (after.obs.tolist(), bool(after.terminated), bool(after.truncated)) == ([2.0, 2.0], False, False)
    assert np.isnan(env.step(state, jnp.int32(2), jax.random.key(0))[1].reward)


def test_what_does_not_fit_is_refused(monkeypatch):
    old = Counter()
    old.values = 5
    with pytest.raises(UsageError, match="returns 5 values, as gymnax before"):
        from_gymnax(old)
    driver = Counter()
    driver.action_space = lambda params: Space(shape=(1,))
    with pytest.raises(UsageError, match="discrete actions"):
        from_gymnax(driver)
    with pytest.raises(UsageError, match="has the parameters max_steps_in_episode, got gravity"):
        from_gymnax(Counter(), gravity=1.0)
    monkeypatch.setitem(sys.modules, "gymnax", None)
    with pytest.raises(UsageError, match="pip install gymnax"):
        make_env("gymnax/CartPole-v1")


def test_ours_steps_as_gymnax_does():
    """Six values, a reset by itself, and the true successor in the info."""
    env = ToGymnax(CartPole(3))
    params = env.default_params
    obs, state = env.reset(jax.random.key(0), params)
    inner, expected = CartPole(3).reset(jax.random.key(0))
    np.testing.assert_array_equal(obs, expected)
    step = jax.jit(env.step)
    for t in range(3):
        obs, state, _, terminated, truncated, info = step(jax.random.key(t), state, 1, params)
        inner, after = CartPole(3).step(inner, jnp.int32(1), jax.random.key(t))
        np.testing.assert_allclose(info["final_observation"], after.obs, rtol=1e-6)
        assert (bool(terminated), bool(truncated)) == (False, t == 2)
    assert int(state.time) == 0
    assert np.abs(obs).max() <= 0.05
    short = env.default_params._replace(max_steps_in_episode=1)
    assert bool(env.step(jax.random.key(0), state, 1, short)[4])


@pytest.mark.parametrize("last", [1, 5])
def test_ours_steps_with_five_values_as_gymnax_did(last):
    """Done where the episode has ended, by a fall or by the time limit, and the rest as with six."""
    six, five = ToGymnax(CartPole(last)), ToGymnax(CartPole(last), legacy=True)
    _, state = six.reset(jax.random.key(0))
    obs, after, reward, terminated, truncated, info = six.step(jax.random.key(1), state, 1)
    found = five.step(jax.random.key(1), state, 1)
    assert len(found) == 5
    assert bool(found[3]) == bool(terminated | truncated) == (last == 1)
    pairs = (jax.tree.leaves((*values[:3], values[-1])) for values in ((obs, after, reward, info), found))
    for one, other in zip(*pairs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.clients
def test_gymnax_cartpole_is_ours_step_by_step():
    pytest.importorskip("gymnax")
    theirs, ours = make_env("gymnax/CartPole-v1"), CartPole(500)
    state, obs = theirs.reset(jax.random.key(3))
    inner = ours.reset(jax.random.key(3))[0]._replace(motion=obs)
    step, own = jax.jit(theirs.step), jax.jit(ours.step)
    for t in range(60):
        action = jnp.int32(t % 3 == 0)
        state, after = step(state, action, jax.random.key(t))
        inner, expected = own(inner, action, jax.random.key(t))
        np.testing.assert_allclose(after.obs, expected.obs, rtol=2e-4, atol=1e-5)
        assert (bool(after.terminated), bool(after.truncated)) == (bool(expected.terminated), bool(expected.truncated))
        if bool(after.terminated):
            break
    assert bool(after.terminated)


@pytest.mark.clients
@pytest.mark.parametrize("name", ["CartPole-v1", "Breakout-MinAtar", "Catch-bsuite", "FrozenLake-misc"])
def test_environments_of_gymnax_are_trained_compiled(name):
    pytest.importorskip("gymnax")
    env = make_env(f"gymnax/{name}")
    encoder = {"encoder": "mlp"} if env.spec.structure == "image" else {}
    result = srl.train("sentinel", env, 60, seeds=2, evaluate=2, head="quantile", atoms=5, **SMALL, **encoder)
    assert result.handle.is_jax
    assert result.episodes.reward.shape == (2, 2)
    assert np.isfinite(result.episodes.reward).all()


@pytest.mark.clients
def test_the_highway_and_the_toy_under_gymnax_own_wrappers():
    """Its wrappers, spaces and five-value form work on ours, compiled and side by side."""
    wrappers = pytest.importorskip("gymnax.wrappers")
    for inner in (make_env("sentinel/highway-v1"), Toy()):
        face = ToGymnax(inner)
        params = face.default_params
        assert face.observation_space(params).contains(face.reset(jax.random.key(0), params)[0])
        env = wrappers.LogWrapper(wrappers.FlattenObservationWrapper(face))

        def play(key, env=env, params=params):
            def step(carry, key):
                _, state = carry
                action = env.action_space(params).sample(key)
                obs, state, reward, *_, info = env.step(key, state, action, params)
                return (obs, state), (reward, info["returned_episode"])

            return jax.lax.scan(step, env.reset(key, params), jax.random.split(key, 45))[1]

        reward, ended = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 2))
        assert np.isfinite(reward).all()
        assert ended.any(axis=1).all()
        legacy = wrappers.LegacyStepAPIWrapper(face)
        _, state = legacy.reset(jax.random.key(0), params)
        assert len(legacy.step(jax.random.key(1), state, 0, params)) == 5


@pytest.mark.clients
def test_a_public_trainer_trains_the_highway():
    """PPO of rejax, a package of others that knows gymnax's interface and nothing of ours, learns to drive longer."""
    rejax = pytest.importorskip("rejax")
    evaluation = pytest.importorskip("rejax.evaluate")
    env = ToGymnax(make_env("sentinel/highway-v1", duration=10, vehicles_count=5, lanes_count=3), legacy=True)
    params = env.default_params

    def driven(agent, state, key):
        return evaluation.evaluate(agent.make_act(state), key, env, params, 64, params.max_steps_in_episode)

    plan = {"num_envs": 8, "num_steps": 32, "total_timesteps": 8192, "eval_freq": 8192}
    agent = rejax.PPO.create(env=env, learning_rate=1e-3, num_epochs=4, num_minibatches=4, **plan)
    _, (lengths, returns) = jax.jit(agent.replace(eval_callback=driven).train)(jax.random.key(0))
    assert lengths.shape == (2, 64)
    assert int(lengths.max()) == 10
    before, after = returns.mean(axis=1)
    assert after > before + 0.3
