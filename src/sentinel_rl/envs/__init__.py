"""Environments in JAX, and their Gymnasium faces.

Importing this package tells Gymnasium the names ``sentinel/...``.
"""

from sentinel_rl.envs.cartpole import CartPole, CartPoleState
from sentinel_rl.envs.gaps import CoverageGap, Gapped, GapRegion, GapState, LeaningRight, LeftLane
from sentinel_rl.envs.grid import GridState, GridWorld
from sentinel_rl.envs.grid_planning import Law, Optimum, best_cvar, best_mean, law_of, stepwise_cvar
from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.envs.gym_vector import GymVectorEnv
from sentinel_rl.envs.gymnax import FromGymnax, ToGymnax, from_gymnax
from sentinel_rl.envs.handle import EnvHandle, resolve_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.registry import env_names, make_env, register, register_env
from sentinel_rl.envs.spec import Diagnosed, Drawable, Env, EnvSpec, TimeStep
from sentinel_rl.envs.toy import Toy

__all__ = [
    "CartPole",
    "CartPoleState",
    "CoverageGap",
    "Diagnosed",
    "Drawable",
    "Env",
    "EnvHandle",
    "EnvSpec",
    "FromGymnax",
    "GapRegion",
    "GapState",
    "Gapped",
    "GridState",
    "GridWorld",
    "GymEnv",
    "GymVectorEnv",
    "Highway",
    "Law",
    "LeaningRight",
    "LeftLane",
    "Optimum",
    "TimeStep",
    "ToGymnax",
    "Toy",
    "best_cvar",
    "best_mean",
    "env_names",
    "from_gymnax",
    "law_of",
    "make_env",
    "register_env",
    "resolve_env",
    "stepwise_cvar",
]

register()
