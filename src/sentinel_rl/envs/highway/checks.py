"""Which highways are possible."""

import math
from typing import Any

from sentinel_rl.envs.highway.reset import EGO_SPEED
from sentinel_rl.envs.highway.road import LENGTH, SPEED_LIMIT


def check(env: Any) -> None:
    """Refuse settings that describe no highway, and say what is allowed."""
    _counts(env)
    _numbers(env)
    _speeds(env)
    if env.observed_vehicles > env.vehicles_count + 1:
        raise ValueError(
            f"observed_vehicles = {env.observed_vehicles} is more than there are: with vehicles_count = "
            f"{env.vehicles_count} and the ego, at most {env.vehicles_count + 1}"
        )
    if env.simulation_frequency % env.policy_frequency:
        raise ValueError(
            f"simulation_frequency = {env.simulation_frequency} is not a multiple of policy_frequency = "
            f"{env.policy_frequency}: a decision must last a whole number of simulation steps"
        )
    lane = env.initial_lane_id
    if lane is not None and not 0 <= lane < env.lanes_count:
        raise ValueError(
            f"initial_lane_id = {lane} does not exist: with lanes_count = {env.lanes_count} give "
            f"0 to {env.lanes_count - 1}, or None to draw it"
        )
    _rewards(env)
    _road_end(env)
    if env.shift is not None and env.any_crash_terminal:
        raise ValueError("any_crash_terminal = True ends an episode with wrecks before it begins: leave out the shift")


def _counts(env: Any) -> None:
    least = {"lanes_count": 1, "vehicles_count": 0, "simulation_frequency": 1, "policy_frequency": 1}
    for name, low in (least | {"observed_vehicles": 1}).items():
        value = getattr(env, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError(f"{name} = {value!r} is not allowed: give a whole number of at least {low}")


def _numbers(env: Any) -> None:
    for name in ("vehicles_density", "duration", "ego_spacing"):
        value = getattr(env, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value!r} is not allowed: give a number above 0")
    for name in ("collision_reward", "right_lane_reward", "high_speed_reward"):
        if not math.isfinite(getattr(env, name)):
            raise ValueError(f"{name} = {getattr(env, name)!r} is not allowed: give a finite number")


def _speeds(env: Any) -> None:
    speeds = env.others_speed
    if not isinstance(speeds, tuple) or len(speeds) != 2 or not 0 < speeds[0] <= speeds[1] <= SPEED_LIMIT:
        raise ValueError(
            f"others_speed = {speeds!r} is not allowed: give (low, high) with 0 < low <= high <= {SPEED_LIMIT:.0f}, "
            "the speed limit, which drivers keep"
        )


def _rewards(env: Any) -> None:
    speeds = env.reward_speed_range
    if len(speeds) != 2 or not all(map(math.isfinite, speeds)) or speeds[0] >= speeds[1]:
        raise ValueError(f"reward_speed_range = {speeds!r} is not allowed: give (low, high) with low < high")
    if env.normalize_reward and env.high_speed_reward + env.right_lane_reward == env.collision_reward:
        raise ValueError(
            f"normalize_reward divides by high_speed_reward + right_lane_reward - collision_reward, which is 0 "
            f"for collision_reward = {env.collision_reward!r}: give another, or normalize_reward=False"
        )


def _road_end(env: Any) -> None:
    """highway-env's road ends after 10 km, and what it does there is not modelled."""
    crowd = math.exp(-5 / 40 * env.lanes_count)
    start = 4.1 * env.ego_spacing * (12 + EGO_SPEED) * crowd
    start += 1.1 * env.vehicles_count / env.vehicles_density * (12 + env.others_speed[1]) * crowd
    if start + SPEED_LIMIT * env.duration > LENGTH:
        raise ValueError(
            f"duration = {env.duration!r} is too long: vehicles may start {start:.0f} m down a road of {LENGTH:.0f} m, "
            f"and drive up to {SPEED_LIMIT:.0f} m/s; use a shorter one, fewer vehicles or a higher density"
        )
