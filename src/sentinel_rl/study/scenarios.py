"""A driver in all scenarios of the highway: how often it crashes, how fast it drives, and what it earns."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.highway import SCENARIOS, Highway, Shift
from sentinel_rl.envs.highway.scenarios import STRENGTHS
from sentinel_rl.study.frontier import Played
from sentinel_rl.training.evaluation import EVALUATION_SEED, evaluate_watched
from sentinel_rl.training.metrics import Episodes

AS_TRAINED = "as trained"


class Stressed(NamedTuple):
    """A driver in one scenario.

    Args:
        scenario: its name, or ``"as trained"``.
        split: ``"calibration"`` or ``"test"``, and empty for the traffic of training.
        strength: of the scenario; 0 is the traffic of training.
        played: the episodes.
    """

    scenario: str
    split: str
    strength: float
    played: Played


def situations(
    scenarios: Sequence[str] | None = None, strengths: Sequence[float] = STRENGTHS
) -> list[tuple[str, str, float, Highway]]:
    """The traffic of training and the scenarios, with side of the split, strength and environment.

    All environments are of one structure, so that a driver is compiled once for all of them.
    """
    names = SCENARIOS if scenarios is None else scenarios
    found = [(name, SCENARIOS[name].split, float(strength)) for name in names for strength in strengths]
    made = [(*words, Highway.scenario(words[0], words[2])) for words in found]
    trained = (AS_TRAINED, "", 0.0, Highway())
    return [
        (name, split, strength, dataclasses.replace(env, shift=Shift() if env.shift is None else env.shift))
        for name, split, strength, env in (trained, *made)
    ]


def stress(
    drivers: Sequence[tuple[Agent, Any]],
    label: str = "",
    scenarios: Sequence[str] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    episodes: int = 200,
    seed: int = EVALUATION_SEED,
) -> Iterator[Stressed]:
    """Let a driver drive in scenarios.

    Args:
        drivers: agents with their states, one for each run.
        label: what tables call them together.
        scenarios: names; all of them when None. `scenario_names` tells which may be used to choose anything.
        strengths: of every scenario.
        episodes: of each run in each scenario; they are the same for all drivers.
        seed: of the episodes.

    Yields:
        what was played, first with the traffic of training.
    """
    for name, split, strength, env in situations(scenarios, strengths):
        runs = [evaluate_watched(agent, state, env, episodes, seed) for agent, state in drivers]
        together = Episodes(*(np.stack(fields) for fields in zip(*(played for played, _ in runs), strict=True)))
        speed = np.stack([told["mean_speed"] for _, told in runs])
        yield Stressed(name, split, strength, Played(label, together, speed))
