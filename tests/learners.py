"""Every agent, trained in a moment; of the same sizes everywhere, so that programs are compiled once."""

from typing import Any

from sentinel_rl.api.classes import LEARNERS, Learner

SMALL: dict[str, Any] = {"hidden": (4,), "samples": 8, "batch": 8, "capacity": 64}
OPTIONS: dict[str, dict[str, Any]] = {
    "sentinel": {**SMALL, "k": 2, "atoms": 5, "preset": "paper"},
    "cdqn": {**SMALL, "atoms": 5, "preset": "paper"},
    "vdqn": SMALL,
    "vdqn-cvar": {**SMALL, "draws": 5},
    "uadqn": {**SMALL, "quantiles": 5},
    "random": {},
}
# Of the plan: the first update comes soon.
PLAN: dict[str, Any] = {"learn_every": 20, "warmup": 10}


def make(name: str, env: Any = "CartPole-v0", **options: Any) -> Learner:
    """An untrained agent of a kind."""
    return LEARNERS[name]("MlpPolicy", env, **(OPTIONS[name] | PLAN | options))
