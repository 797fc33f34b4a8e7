"""What the familiar class refuses: environments, numbers, options and plans that it cannot work with."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sentinel_rl.api.classes import Sentinel
from sentinel_rl.errors import NumericalError, UsageError
from tests.tiny import Box2D, tiny


class Generous(Box2D):
    """It pays three whatever is done, after a first episode without pay."""

    def step(self, action: Any):
        obs, _, terminated, truncated, info = super().step(action)
        return obs, 3.0 * (self.total > self.length), terminated, truncated, info


def test_a_strict_support_is_an_error():
    agent = tiny(Generous(), v_min=0.0, v_max=6.0, gamma=1.0, strict_support=True)
    with pytest.raises(UsageError, match="v_max=15"):
        agent.learn(200)


class Odd(gymnasium.Env):
    """A world with spaces that cannot be used."""

    def __init__(self, actions: Any = None, observations: Any = None):
        self.action_space = actions or spaces.Discrete(2)
        self.observation_space = observations or spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Odd(actions=spaces.Box(-1.0, 1.0, (1,), np.float32)), "action space Box.*Discrete"),
        (Odd(actions=spaces.MultiDiscrete([2, 2])), "action space MultiDiscrete"),
        (Odd(observations=spaces.Text(4)), "holds no numbers: wrap it with"),
        (Odd(observations=spaces.Sequence(spaces.Discrete(2))), "Sequence, whose size changes"),
        ("CartPole-1", "did you mean 'CartPole-v1'"),
        (None, "an environment is needed"),
        (3, "an environment is needed"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_environments_that_cannot_be_used_are_refused(env: Any, message: str):
    with pytest.raises(UsageError, match=message):
        tiny(env, v_min=0.0, v_max=1.0)


def test_nan_stops_with_its_place():
    agent = tiny(Box2D(poison_at=77), v_min=0.0, v_max=6.0)
    with pytest.raises(NumericalError, match=r"observation of Box2D holds nan at index 4.*seed 0"):
        agent.learn(200)
    assert agent.num_timesteps == 76
    assert np.isfinite(agent.assess(np.zeros((2, 3))).probs).all(), "what was learnt before is there"


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "LstmPolicy"}, "unknown policy 'LstmPolicy'"),
        ({"gama": 0.9}, r"did you mean gamma\?"),
        ({"learn_evry": 3}, r"did you mean learn_every\?"),
        ({"monitor": "x"}, r"did you mean monitor_dir\?"),
        ({"k": 0}, "k must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Sentinel(options.pop("policy", "MlpPolicy"), "CartPole-v0", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learn_every": 0}, "a number of steps of at least 1"),
        ({"learn_every": "daily"}, "or 'triangular', got 'daily'"),
        ({"epsilon_end": 2.0}, r"epsilon_end must be a number in \[0, 1\]"),
    ],
)
def test_bad_plans_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        tiny(**options).learn(100)
    with pytest.raises(UsageError, match="at least 1 step"):
        tiny().learn(0)
