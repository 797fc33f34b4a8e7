"""Import the state of a live highway-env: the twin goes on where the original stands."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from sentinel_rl.envs.highway.env import Highway
from sentinel_rl.envs.highway.reset import steps_until_due
from sentinel_rl.envs.highway.state import HighwayState

_SAME_NAME = (
    "lanes_count",
    "vehicles_count",
    "vehicles_density",
    "duration",
    "simulation_frequency",
    "policy_frequency",
    "ego_spacing",
    "initial_lane_id",
    "collision_reward",
    "right_lane_reward",
    "high_speed_reward",
    "normalize_reward",
    "offroad_terminal",
)
_SUPPORTED = {
    "controlled_vehicles": 1,
    "other_vehicles_type": "highway_env.vehicle.behavior.IDMVehicle",
    "manual_control": False,
    "action": {"type": "DiscreteMetaAction"},
}


def from_highway_env(env: Any) -> tuple[Highway, HighwayState]:
    """The twin of a highway-env environment, and its state.

    Args:
        env: a ``highway-v0`` or ``highway-fast-v0`` of highway-env, after ``reset``, wrapped or not.

    Returns:
        the environment with the same settings, and the state in JAX's default precision.

    Raises:
        ValueError: for a setting of the original that the twin does not have.
    """
    original = env.unwrapped
    config = original.config
    for name, value in _SUPPORTED.items():
        if config.get(name, value) != value:
            raise ValueError(f"highway-env's {name} = {config[name]!r} has no twin: use {value!r}")
    observed = dict(config["observation"])
    if observed.pop("type") != "Kinematics" or set(observed) - {"vehicles_count"}:
        raise ValueError(
            f"highway-env's observation {config['observation']!r} has no twin: use "
            "{'type': 'Kinematics'}, with 'vehicles_count' if you like"
        )
    cars = original.road.vehicles
    twin = Highway(
        **{name: config[name] for name in _SAME_NAME},
        reward_speed_range=tuple(config["reward_speed_range"]),
        observed_vehicles=observed.get("vehicles_count", 5),
        others_collide=all(car.check_collisions for car in cars),
    )
    return twin, _state(twin, cars, original.time)


def _state(twin: Highway, cars: list[Any], time: float) -> HighwayState:
    """Read the vehicles; the ego, which has no clock, is given one that is never due."""
    frequency = twin.simulation_frequency
    pushes = [np.zeros(2) if car.impact is None else car.impact for car in cars]
    waits = [steps_until_due(getattr(car, "timer", 0.0), frequency) for car in cars]
    return HighwayState(
        x=_floats(car.position[0] for car in cars),
        y=_floats(car.position[1] for car in cars),
        heading=_floats(car.heading for car in cars),
        speed=_floats(car.speed for car in cars),
        target_lane=jnp.array([int(car.target_lane_index[2]) for car in cars], jnp.int32),
        target_speed=_floats(car.target_speed for car in cars),
        delta=_floats(getattr(car, "DELTA", 4.0) for car in cars),
        wait=jnp.array(waits, jnp.int32),
        crashed=jnp.array([bool(car.crashed) for car in cars]),
        hit=jnp.array([car.impact is not None for car in cars]),
        push_x=_floats(push[0] for push in pushes),
        push_y=_floats(push[1] for push in pushes),
        time=jnp.array(round(time * twin.policy_frequency), jnp.int32),
    )


def _floats(values: Any) -> Any:
    return jnp.asarray(np.array([float(value) for value in values]), jnp.result_type(float))
