"""Named shifts of the paper's highway, each with a strength, and which of them may be used to choose anything.

The split was fixed before anything was tuned. *Calibration* scenarios may be looked at while options, thresholds and
strengths are chosen; *test* scenarios are for the final report alone. Dense and slow traffic had been looked at before
and so cannot be test scenarios.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from sentinel_rl.envs.highway.reset import OTHERS_SPEED
from sentinel_rl.envs.highway.shift import Shift

Split = Literal["calibration", "test"]

# Strengths of the tables and figures, and the one that a scenario has without being told.
STRENGTHS = (1.0, 2.0, 3.0)
STRENGTH = 2.0
STRONGEST = 3.5


class Scenario(NamedTuple):
    """A shift of the highway.

    Args:
        name: its environment is ``sentinel/highway-NAME-v1``.
        split: whether it may be used to choose anything.
        settings: of the `Highway`, by strength.
        description: what is different, by strength.
    """

    name: str
    split: Split
    settings: Callable[[float], dict[str, Any]]
    description: str

    @property
    def env(self) -> str:
        """The name of its environment."""
        return f"sentinel/highway-{self.name}-v1"


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "dense",
            "calibration",
            lambda s: {"vehicles_density": 1 + s},
            "the traffic is 1 + strength times as dense",
        ),
        Scenario(
            "slow",
            "calibration",
            lambda s: {"others_speed": tuple(speed - 3 * s for speed in OTHERS_SPEED)},
            "the others drive 3 m/s slower per unit of strength",
        ),
        Scenario(
            "standstill",
            "calibration",
            lambda s: {"shift": Shift(wrecks=1.0, distance=160 - 40 * s)},
            "a wreck stands in the lane of the ego, 160 - 40 strength metres ahead of its start",
        ),
        Scenario(
            "blocked",
            "test",
            lambda s: {"shift": Shift(wrecks=min(1.0 + math.ceil(s), 4.0))},
            "1 + strength lanes, at most 4 of the 5, are blocked by wrecks, 120 m ahead of the ego's start",
        ),
        Scenario(
            "braker",
            "test",
            lambda s: {"shift": Shift(brake_to=20 - 5 * s)},
            "every 5 s the car ahead of the ego brakes to 20 - 5 strength m/s",
        ),
        Scenario(
            "cutin",
            "test",
            lambda s: {"shift": Shift(cut_in=26 - 5 * s)},
            "every 5 s a car beside the ego, at least 26 - 5 strength metres ahead, changes to its lane",
        ),
    )
}


def scenario_names(split: Split | None = None) -> list[str]:
    """The names of the scenarios, all of them or those of one side of the split.

    Example:
        >>> scenario_names("calibration")
        ['dense', 'slow', 'standstill']
        >>> scenario_names("test")
        ['blocked', 'braker', 'cutin']
    """
    return [name for name, scenario in SCENARIOS.items() if split in (None, scenario.split)]


def scenario_settings(name: str, strength: float = STRENGTH) -> dict[str, Any]:
    """The settings of a scenario, on top of the paper's highway.

    Raises:
        ValueError: for an unknown scenario, or a strength that it does not have.
    """
    if name not in SCENARIOS:
        raise ValueError(f"unknown scenario {name!r}: choose one of {', '.join(SCENARIOS)}")
    if isinstance(strength, bool) or not 0 < strength <= STRONGEST:
        raise ValueError(f"strength = {strength!r} is not allowed: give a number above 0, at most {STRONGEST}")
    return SCENARIOS[name].settings(float(strength))
