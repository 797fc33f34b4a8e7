"""One training that many tests look at, and the same on a Gymnasium environment."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.result import Result
from sentinel_rl.training.trainer import train
from tests.training.pole import AGENT, ENV

SEEDS = [4, 9]
STEPS = 240
# Of the plan and of what is told: the bits of the agents depend on the first two alone.
PLAN = {"learn_every": 20, "warmup": 20}
JUDGED = {"evaluate": 3, "evaluate_every": 100, "points": 12, "save_every": 80}


class Listing:
    """A sink that keeps what it is given."""

    def __init__(self):
        self.lines: list[tuple[int, int, dict[str, float]]] = []
        self.closed = 0

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        self.lines.append((step, seed, dict(values)))

    def close(self) -> None:
        self.closed += 1


@dataclasses.dataclass
class Trained:
    """A training to its end, and what was told of it on the way."""

    result: Result
    folder: Path
    told: list[Progress]
    sink: Listing


def trained_in(folder: Path, env: Any, **options: Any) -> Trained:
    told, sink = [], Listing()
    given = {"folder": folder, "callbacks": told.append, "sinks": [sink], **JUDGED, **PLAN, **options}
    return Trained(train(AGENT, env, STEPS, SEEDS, **given), folder, told, sink)


@pytest.fixture(scope="session")
def on_jax(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Compiled with its environment."""
    return trained_in(tmp_path_factory.mktemp("jax") / "run", ENV)


@pytest.fixture(scope="session")
def on_gymnasium(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Stepped from Python."""
    return trained_in(tmp_path_factory.mktemp("gymnasium") / "run", gymnasium.make("CartPole-v1"))


@pytest.fixture(params=["on_jax", "on_gymnasium"])
def trained(request: pytest.FixtureRequest) -> Trained:
    """Each of them."""
    return request.getfixturevalue(request.param)
