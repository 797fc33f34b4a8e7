"""The course of a training from options that users name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sentinel_rl.errors import UsageError
from sentinel_rl.runners.schedule import Every, Plan, Triangular

COURSE_OPTIONS = ("learn_every", "warmup", "epsilon_start", "epsilon_end", "epsilon_fraction")


def make_plan(steps: int, warmup: int, options: Mapping[str, Any]) -> Plan:
    """Make a plan from the options that belong to it, with `warmup` where they name none.

    Example:
        >>> make_plan(1_000, 100, {"learn_every": "triangular", "k": 4}).learn_times[:3]
        array([105, 120, 136])
    """
    chosen = {name: options[name] for name in COURSE_OPTIONS if name in options}
    every = chosen.pop("learn_every", 100)
    if every != "triangular" and not isinstance(every, (int, np.integer)):
        raise UsageError(f"learn_every is a number of steps or 'triangular', got {every!r}")
    try:
        return Plan(steps, Triangular() if every == "triangular" else Every(every), **{"warmup": warmup, **chosen})
    except ValueError as error:
        raise UsageError(str(error)) from error
