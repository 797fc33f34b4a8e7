"""Evaluation against a loop over the same environment, in JAX and in Gymnasium; what it is discounted by."""

import dataclasses
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import BaseAgent
from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.spec import EnvSpec, TimeStep
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.training.evaluation import EVALUATION_SEED, evaluate, evaluate_run
from sentinel_rl.training.metrics import Episodes

SHORT = CartPole(max_steps=30)


class Balance(BaseAgent):
    """A policy without anything to learn: push to where the pole falls, or against it."""

    sign: float
    gamma: float = 0.2

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        return None

    def act(self, state: Any, obs: Any, epsilon: Any, key: jax.Array) -> Any:
        return (self.sign * (obs[2] + obs[3]) > 0).astype(jnp.int32)

    def observe(self, state: Any, t: Any, transition: Any, key: jax.Array) -> Any:
        return state

    def learn(self, state: Any, update: Any, key: jax.Array) -> Any:
        return state, {}


class Broken(eqx.Module):
    """One step, whose reward is no number."""

    spec = EnvSpec("broken", 1, 2, max_steps=3)

    def reset(self, key):
        return jnp.zeros(()), jnp.zeros(1)

    def step(self, state, action, key):
        return state, TimeStep(jnp.zeros(1), jnp.array(jnp.nan), jnp.array(True), jnp.array(False))


def loop(env, agent, index, seed, gamma):
    """One episode, step by step in Python."""
    reset_key, run_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), index))
    state, obs = env.reset(reset_key)
    rewards, ended, terminated = [], False, False
    while not ended:
        _, step_key = jax.random.split(jax.random.fold_in(run_key, len(rewards)))
        state, after = env.step(state, agent.greedy(None, obs, step_key), step_key)
        obs, terminated = after.obs, bool(after.terminated)
        rewards.append(float(after.reward))
        ended = terminated or bool(after.truncated)
    discounts = gamma ** np.arange(len(rewards))
    return sum(rewards), float(discounts @ np.array(rewards)), len(rewards), terminated


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equals_a_loop(sign):
    agent = Balance(sign)
    played = evaluate(agent, None, SHORT, 4, seed=5, gamma=0.9)
    wanted = [loop(SHORT, agent, index, 5, 0.9) for index in range(4)]
    np.testing.assert_allclose(played.reward, [row[0] for row in wanted])
    np.testing.assert_allclose(played.discounted, [row[1] for row in wanted], rtol=1e-5)
    np.testing.assert_array_equal(played.length, [row[2] for row in wanted])
    np.testing.assert_array_equal(played.terminated, [row[3] for row in wanted])
    assert played.terminated.all() == (sign < 0)


def test_an_episode_does_not_depend_on_how_many_there_are():
    agent = Balance(-1.0)
    few, many = (evaluate(agent, None, SHORT, count, seed=1) for count in (2, 6))
    np.testing.assert_array_equal(few.length, many.length[:2])
    assert len(set(evaluate(agent, None, SHORT, 6, seed=2).discounted)) > 1


def test_the_discount_is_the_tasks_and_not_the_agents():
    """The agent would learn with 0.2."""
    played = evaluate(Balance(1.0), None, SHORT, 1)
    np.testing.assert_allclose(played.discounted, (1 - 0.99**30) / (1 - 0.99), rtol=1e-5)
    face = gymnasium.make("CartPole-v1", max_episode_steps=30)
    np.testing.assert_allclose(evaluate(Balance(1.0), None, face, 1).discounted, played.discounted, rtol=1e-5)


class Judged(CartPole):
    """A task that says how it is judged."""

    @property
    def spec(self) -> EnvSpec:
        return dataclasses.replace(super().spec, gamma=0.5)


def test_a_task_may_have_a_discount_of_its_own():
    played = evaluate(Balance(1.0), None, Judged(max_steps=30), 1)
    np.testing.assert_allclose(played.discounted, 2.0, rtol=1e-5)
    given = evaluate(Balance(1.0), None, Judged(max_steps=30), 1, gamma=0.0)
    np.testing.assert_allclose(given.discounted, 1.0)


class Cut(CartPole):
    """A task that does not say when it is cut off."""

    @property
    def spec(self) -> EnvSpec:
        return dataclasses.replace(super().spec, max_steps=None)


def test_an_episode_that_is_cut_off_is_over():
    played = evaluate(Balance(1.0), None, Cut(max_steps=30), 2)
    np.testing.assert_array_equal(played.length, [30, 30])


def test_gymnasium_gives_the_same_kind_of_episodes():
    env, agent = gymnasium.make("CartPole-v1", max_episode_steps=30), Balance(1.0)
    played = evaluate(agent, None, env, 2, seed=0, gamma=0.5)
    assert isinstance(played, Episodes)
    np.testing.assert_array_equal(played.length, [30, 30])
    np.testing.assert_allclose(played.discounted, 2.0, rtol=1e-6)
    assert not played.terminated.any()


def test_episodes_of_gymnasium_are_seeded_by_their_number():
    env, agent = gymnasium.make("CartPole-v1"), Balance(-1.0)
    few, many = (evaluate(agent, None, env, count, seed=7).length for count in (2, 5))
    np.testing.assert_array_equal(few, many[:2])
    np.testing.assert_array_equal(evaluate(agent, None, env, 2, seed=8).length, many[1:3])


def test_a_stochastic_policy_draws_at_every_step():
    env = gymnasium.make("CartPole-v1")
    agent = RandomAgent()
    state = agent.init(CartPole().spec, jax.random.key(0))
    taken = []
    env.step = lambda action, step=env.step: taken.append(int(action)) or step(action)
    lengths = evaluate(agent, state, env, 5, seed=0).length
    assert len(set(lengths)) > 1
    assert 0.3 < np.mean(taken) < 0.7


@pytest.mark.parametrize("env", [SHORT, gymnasium.make("CartPole-v1", max_episode_steps=30)])
def test_runs_have_episodes_of_their_own(env):
    handle = resolve_env(env)
    played = {seed: evaluate_run(Balance(-1.0), None, handle, 6, EVALUATION_SEED, seed, 0.9) for seed in (0, 1)}
    again = evaluate_run(Balance(-1.0), None, handle, 6, EVALUATION_SEED, 1, 0.9)
    np.testing.assert_array_equal(played[1].length, again.length)
    assert np.any(played[0].discounted != played[1].discounted)


def test_bad_input():
    with pytest.raises(UsageError, match="at least 1 episode"):
        evaluate(Balance(1.0), None, CartPole(), 0)
    with pytest.raises(NumericalError, match="return of episode 0 of broken is not finite"):
        evaluate(Balance(1.0), None, dataclasses.replace(Broken()), 2)
    for nowhere in (CartPole().spec, gymnasium.make_vec("CartPole-v1", num_envs=2)):
        with pytest.raises(UsageError, match="an evaluation needs one environment to play in"):
            evaluate(Balance(1.0), None, nowhere, 1)
