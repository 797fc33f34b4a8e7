"""SENTINEL in RL Baselines3 Zoo: train, enjoy and optimise it as any algorithm of SB3.

The Zoo has a table of algorithms and one of search spaces, and no other way to add to them. This script adds SENTINEL
to both and hands over to the Zoo; all arguments after the first are the Zoo's own:

    python examples/rl_zoo.py train --algo sentinel --env CartPole-v1 --conf-file examples/rl_zoo.yml
    python examples/rl_zoo.py enjoy --algo sentinel --env CartPole-v1 --folder logs --no-render
    python examples/rl_zoo.py train --algo sentinel --env CartPole-v1 --conf-file examples/rl_zoo.yml --optimize
"""

import sys
from pathlib import Path
from typing import Any, Self

from rl_zoo3.enjoy import enjoy
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER
from rl_zoo3.train import train
from rl_zoo3.utils import ALGOS

from sentinel_rl import Sentinel


class ZooSentinel(Sentinel):
    """SENTINEL with the arguments that the Zoo gives when it loads an agent."""

    @classmethod
    def load(
        cls, path: str | Path, env: Any = None, *, device: str = "auto", seed: int | None = None, **_: Any
    ) -> Self:
        """Load a saved agent; the other arguments repair pickles, of which our files have none."""
        loaded = super().load(path, env, device=device)
        loaded.seed = loaded.seed if seed is None else seed
        return loaded


def sample(trial: Any, n_actions: int, n_envs: int, additional_args: dict[str, Any]) -> dict[str, Any]:
    """The search space: how fast to learn, and how cautious to be."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "aleatory": trial.suggest_categorical("aleatory", ["expectation", "cvar:0.5", "cvar:0.25"]),
        "epistemic": trial.suggest_categorical("epistemic", ["expectation", "cvar:0.5", "cvar:0.25"]),
    }


ALGOS["sentinel"] = ZooSentinel
HYPERPARAMS_SAMPLER["sentinel"] = sample
HYPERPARAMS_CONVERTER["sentinel"] = dict

if __name__ == "__main__":
    commands = {"train": train, "enjoy": enjoy}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(f"the first argument is one of {', '.join(commands)}; the others are those of the Zoo")
    commands[sys.argv.pop(1)]()
