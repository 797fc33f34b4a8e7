"""What a log costs: trainings on CartPole with and without sinks, at the default interval.

    python benchmarks/sinks.py

The runs are those of `sentinel_rl.train` with the paper's constants and with the `learner` preset, compiled before they
are timed; with and without take turns, and the least time of each counts. The time is that of this process on the
processor, which other programs do not disturb; starting and finishing a log counts. A sink may cost at
most 5 % of the pace.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _measure import best_of, machine

import sentinel_rl as srl
from sentinel_rl.errors import UsageError
from sentinel_rl.training import CSVSink, Sink, TensorBoardSink, WandbSink

ALLOWED = 0.05


def sinks(folder: Path) -> dict[str, Callable[[], list[Sink]]]:
    """The sinks whose packages are installed, each made anew for a training."""
    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("WANDB_SILENT", "true")
    made: dict[str, Callable[[], list[Sink]]] = {
        "csv": lambda: [CSVSink(folder / "log.csv")],
        "tensorboard": lambda: [TensorBoardSink(folder / "tensorboard")],
        "wandb (offline)": lambda: [WandbSink("bench", folder)],
    }
    found: dict[str, Callable[[], list[Sink]]] = {"none": list}
    for name, make in made.items():
        try:
            make()
        except UsageError as error:
            print(f"{name}: left out: {error}")
        else:
            found[name] = make
    return found


def main() -> None:
    """Time trainings, print the ratios, and fail where a sink costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="paper", choices=("paper", "learner"))
    asked = parser.parse_args()
    print(machine("jax", "sentinel-rl", "tensorboardX", "wandb"))

    def train(make: Callable[[], list[Sink]]) -> None:
        srl.train("sentinel", "CartPole-v1", asked.steps, seeds=1, sinks=make(), preset=asked.preset)

    with tempfile.TemporaryDirectory() as folder:
        tasks = {name: partial(train, make) for name, make in sinks(Path(folder)).items()}
        best = best_of(asked.rounds, tasks, time.process_time)
    worst = 0.0
    for name, seconds in best.items():
        cost = seconds / best["none"] - 1
        worst = max(worst, cost)
        print(f"{name:>16}: {seconds:6.2f} s, {asked.steps / seconds:8,.0f} steps/s, costs {cost:+.1%}")
    print(f"the most expensive costs {worst:.1%} of at most {ALLOWED:.0%}")
    sys.exit(int(worst > ALLOWED))


if __name__ == "__main__":
    main()
