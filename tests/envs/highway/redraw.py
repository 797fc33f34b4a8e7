"""The first state of highway-env for a seed, drawn again with NumPy: equal to the original's bit for bit."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class FirstState(NamedTuple):
    """The vehicles of a reset, the ego first; headings are 0, and nobody wants another lane or speed."""

    x: np.ndarray
    lane: np.ndarray
    speed: np.ndarray
    delta: np.ndarray
    timer: np.ndarray


def redraw(seed: int, config: Mapping[str, Any]) -> FirstState:
    """Draw the vehicles of ``env.reset(seed=seed)`` in the order of the original.

    Args:
        seed: of the reset.
        config: lanes_count, vehicles_count, vehicles_density, ego_spacing, initial_lane_id, and others_speed where the
            others are those of `faster.FasterVehicle`, who draw their speed before their lane.
    """
    rng, rows, place = np.random.Generator(np.random.PCG64(seed)), [], 0.0
    lanes = config["lanes_count"]
    for i in range(config["vehicles_count"] + 1):
        wanted = rng.uniform(*config["others_speed"]) if i and config.get("others_speed") else None
        lane = config["initial_lane_id"] if i == 0 and config["initial_lane_id"] is not None else rng.choice(lanes)
        speed = (rng.uniform(0.7 * 30, 0.8 * 30) if wanted is None else wanted) if i else 25.0
        spacing = 1 / config["vehicles_density"] if i else config["ego_spacing"]
        offset = spacing * (12 + 1.0 * speed) * np.exp(-5 / 40 * lanes)
        place = (place if i else 3 * offset) + offset * rng.uniform(0.9, 1.1)
        timer = (np.sum([place, 4.0 * lane]) * np.pi) % 1.0 if i else 0.0
        rows.append((place, lane, speed, rng.uniform(low=3.5, high=4.5) if i else 4.0, timer))
    return FirstState(*(np.array(column) for column in zip(*rows, strict=True)))
