"""Worlds in JAX, and their Gymnasium faces.

Importing this package tells Gymnasium the names ``sentinel/...``.
"""

from sentinel_rl.envs.cartpole import CartPole, CartPoleState
from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.envs.gym_vector import GymVectorEnv
from sentinel_rl.envs.registry import make_env, register
from sentinel_rl.envs.spec import Drawable, Env, EnvSpec, TimeStep
from sentinel_rl.envs.toy import Toy

__all__ = [
    "CartPole",
    "CartPoleState",
    "Drawable",
    "Env",
    "EnvSpec",
    "GymEnv",
    "GymVectorEnv",
    "TimeStep",
    "Toy",
    "make_env",
]

register()
