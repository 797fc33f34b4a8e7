"""Does a long training hold its memory? Trains for some minutes, and prints the memory of the process at intervals.

    python benchmarks/long_training.py --minutes 60
    python benchmarks/long_training.py --minutes 60 --env MountainCar-v0 --copies 50

The run has a folder: checkpoints, monitor files and a CSV log are written as in any training. Memory is the resident
set of the process. It grows by the episodes, which are kept until the end for the result, and their number is printed
beside it; `per episode` is what the second half of the time has gained, divided by the episodes that ended in it.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import gymnasium
from _measure import machine

import sentinel_rl as srl
from sentinel_rl.training import CSVSink, Progress

OPTIONS = {"k": 2, "hidden": (32, 32), "atoms": 21, "samples": 20, "batch": 16, "capacity": 20_000, "learn_every": 50}


class Reading(NamedTuple):
    """What was seen at a moment."""

    seconds: float
    steps: int
    episodes: int
    megabytes: float


def resident() -> float:
    """The memory of this process in megabytes, as the kernel counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def readings(env: str, copies: int, minutes: float, count: int, folder: Path) -> list[Reading]:
    """Train until the time is over, and read the memory so many times."""
    found: list[Reading] = []
    began = 0.0

    def look(progress: Progress) -> bool:
        nonlocal began
        began = began or time.perf_counter()  # all is compiled
        seconds = time.perf_counter() - began
        if seconds >= minutes * 60 * (len(found) + 1) / count:
            found.append(Reading(seconds, progress.t, len(progress.history.table().run), resident()))
            print(f"{seconds / 60:8.1f} min {found[-1].steps:12,} steps {found[-1].episodes:10,} episodes "
                  f"{found[-1].megabytes:8.1f} MB", flush=True)  # fmt: skip
        return len(found) < count

    world = gymnasium.make_vec(env, num_envs=copies, vectorization_mode="sync") if copies > 1 else env
    srl.train(
        "sentinel",
        world,
        200_000_000,
        callbacks=look,
        sinks=[CSVSink(folder / "log.csv")],
        folder=folder / "run",
        save_every=200_000,
        progress=False,
        **OPTIONS,
    )
    return found


def main() -> None:
    """Train, and print what the second half of the time has gained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--copies", type=int, default=1, help="Gymnasium environments side by side")
    parser.add_argument("--readings", type=int, default=12)
    asked = parser.parse_args()
    print(machine("jax", "sentinel-rl", "gymnasium"))
    with tempfile.TemporaryDirectory() as folder:
        found = readings(asked.env, asked.copies, asked.minutes, asked.readings, Path(folder))
    half, last = found[len(found) // 2 - 1], found[-1]
    gained, episodes = last.megabytes - half.megabytes, last.episodes - half.episodes
    print(f"second half: {gained:+.1f} MB, {gained * 2**20 / max(episodes, 1):.0f} bytes per episode")


if __name__ == "__main__":
    main()
