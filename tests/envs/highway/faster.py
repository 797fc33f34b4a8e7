"""Faster traffic in highway-env: what ``others_speed=(27.0, 30.0)`` means there."""

from typing import Any

from highway_env.vehicle.behavior import IDMVehicle

SPEEDS = (27.0, 30.0)


class FasterVehicle(IDMVehicle):
    """Starts with, and wants, a speed of 27 to 30 m/s instead of 21 to 24."""

    @classmethod
    def create_random(cls, road: Any, speed: float | None = None, **rest: Any) -> Any:
        return super().create_random(road, road.np_random.uniform(*SPEEDS) if speed is None else speed, **rest)
