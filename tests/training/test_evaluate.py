"""Evaluation against a loop over the same environment, and its numbers by hand."""

import dataclasses

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.spec import EnvSpec, TimeStep
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.training.evaluation import Episodes, evaluate, evaluate_gymnasium, pooled, summarise


class Balance(eqx.Module):
    """A policy without anything to learn: push to where the pole falls, or against it."""

    sign: float

    def greedy(self, state, obs, key):
        return (self.sign * (obs[2] + obs[3]) > 0).astype(jnp.int32)


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
        state, after = env.step(state, agent.greedy(None, obs, None), step_key)
        obs, terminated = after.obs, bool(after.terminated)
        rewards.append(float(after.reward))
        ended = terminated or bool(after.truncated)
    discounts = gamma ** np.arange(len(rewards))
    return sum(rewards), float(discounts @ np.array(rewards)), len(rewards), terminated


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equals_a_loop(sign):
    env, agent = CartPole(max_steps=30), Balance(sign)
    played = evaluate(agent, None, env, 4, seed=5, gamma=0.9)
    wanted = [loop(env, agent, index, 5, 0.9) for index in range(4)]
    np.testing.assert_allclose(played.reward, [row[0] for row in wanted])
    np.testing.assert_allclose(played.discounted, [row[1] for row in wanted], rtol=1e-5)
    np.testing.assert_array_equal(played.length, [row[2] for row in wanted])
    np.testing.assert_array_equal(played.terminated, [row[3] for row in wanted])
    assert played.terminated.all() == (sign < 0)


def test_an_episode_does_not_depend_on_how_many_there_are():
    env, agent = CartPole(max_steps=30), Balance(-1.0)
    few, many = (evaluate(agent, None, env, count, seed=1) for count in (2, 6))
    np.testing.assert_array_equal(few.length, many.length[:2])
    assert len(set(evaluate(agent, None, env, 6, seed=2).discounted)) > 1


def test_gymnasium_gives_the_same_kind_of_episodes():
    env, agent = gymnasium.make("CartPole-v1", max_episode_steps=30), Balance(1.0)
    played = evaluate_gymnasium(env, lambda obs: int(agent.greedy(None, obs, None)), 2, seed=0, gamma=0.5)
    np.testing.assert_array_equal(played.length, [30, 30])
    np.testing.assert_allclose(played.discounted, 2.0, rtol=1e-6)
    assert not played.terminated.any()


def test_summary_by_hand():
    discounted = np.array([1.0, 2.0, 3.0, 4.0])
    played = Episodes(2 * discounted, discounted, np.array([1, 2, 3, 4]), np.array([True, False, False, False]))
    assert summarise(played) == (4, 5.0, 2.5, 1.0, 250.0)
    assert summarise(pooled([played, played])).episodes == 8
    assert summarise(played, alpha=0.5).tail_discounted == pytest.approx(1.5)


def test_bad_input():
    with pytest.raises(UsageError, match="at least 1 episode"):
        evaluate(Balance(1.0), None, CartPole(), 0)
    with pytest.raises(NumericalError, match="return of episode 0 of broken is not finite"):
        evaluate(Balance(1.0), None, dataclasses.replace(Broken()), 2)
