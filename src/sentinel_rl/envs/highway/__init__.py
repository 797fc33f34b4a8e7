"""The highway of highway-env in JAX: the same road, drivers, collisions, rewards and observations, step by step."""

from sentinel_rl.envs.highway.env import Highway
from sentinel_rl.envs.highway.original import from_highway_env
from sentinel_rl.envs.highway.scenarios import SCENARIOS, Scenario, scenario_names
from sentinel_rl.envs.highway.shift import Shift
from sentinel_rl.envs.highway.state import HighwayState

__all__ = ["SCENARIOS", "Highway", "HighwayState", "Scenario", "Shift", "from_highway_env", "scenario_names"]
