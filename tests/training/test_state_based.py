"""Agents that choose by the true state of the environment, wherever it is known."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import FixedPolicy, StateBased
from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.errors import UsageError
from sentinel_rl.training import evaluate, train
from tests.own import Coins


class EveryOther(FixedPolicy):
    """Takes a coin at every other throw, which the observation of a real game would not tell."""

    offset: float = 0.0

    def act(self, state, obs, epsilon, key):
        raise UsageError("the state is needed")

    def choose_in(self, state, env, env_state, obs, key):
        assert env.throws == 4
        return jnp.where(env_state % 2 == 0, 1, 0).astype(jnp.int32)


def test_the_protocol():
    assert isinstance(EveryOther(), StateBased)


def test_evaluations_give_it_the_state():
    played = evaluate(EveryOther(), (), Coins(), 3)
    np.testing.assert_array_equal(played.reward, [2.0, 2.0, 2.0])


def test_the_gymnasium_face_of_a_jax_environment_knows_the_state():
    face = gymnasium.wrappers.TimeLimit(GymEnv(Coins()), 3)
    assert face.unwrapped.state is None
    np.testing.assert_array_equal(evaluate(EveryOther(), (), face, 2).reward, [2.0, 2.0])
    assert face.unwrapped.state == 3


def test_training_and_its_evaluation_give_it_the_state():
    result = train(EveryOther(), Coins(), 8, seeds=2, evaluate=3)
    np.testing.assert_array_equal(result.episodes.reward, np.full((2, 3), 2.0))
    np.testing.assert_array_equal(result.totals["return"], [2.0, 2.0])


def test_where_there_is_only_an_observation_it_says_so():
    with pytest.raises(UsageError, match="the state is needed"):
        evaluate(EveryOther(), (), gymnasium.make("Acrobot-v1"), 1)
