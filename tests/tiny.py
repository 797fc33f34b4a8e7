"""The familiar class so small that it is trained in a moment, and a Gymnasium world unlike CartPole."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sentinel_rl.api.classes import Sentinel
from tests.learners import OPTIONS, PLAN

TINY: dict[str, Any] = OPTIONS["sentinel"] | PLAN


def tiny(env: Any = "CartPole-v0", **options: Any) -> Sentinel:
    return Sentinel("MlpPolicy", env, **(TINY | options))


class Box2D(gymnasium.Env):
    """A world with a 2-D observation and actions that count from 1; it pays one if the action is 2."""

    observation_space = spaces.Box(-1.0, 1.0, (2, 3), np.float32)
    action_space = spaces.Discrete(3, start=1)

    def __init__(self, reward: float = 1.0, poison_at: int = -1, length: int = 5):
        self.reward, self.poison_at, self.length = reward, poison_at, length
        self.t, self.total, self.actions = 0, 0, []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action: Any):
        self.t, self.total = self.t + 1, self.total + 1
        self.actions.append(int(action))
        obs = np.full((2, 3), 0.1 * self.t, np.float32)
        if self.total == self.poison_at:
            obs[1, 1] = np.nan
        return obs, self.reward * (action == 2), False, self.t == self.length, {}
