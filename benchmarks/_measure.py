"""What every benchmark needs: fair timing, the machine it ran on, and tables that grow row by row."""

import csv
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def best_of(
    rounds: int, tasks: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the least seconds each task took, by a clock: that of the wall, or of the processor.

    Every task first runs once untimed (compilation, page faults). The tasks then take turns, so that a slow moment of
    the machine hits all of them.
    """
    for task in tasks.values():
        task()
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = clock()
            task()
            best[name] = min(best[name], clock() - start)
    return best


def train(training: Any) -> None:
    """Make all steps of a training, compiled chunk by compiled chunk."""
    for _ in training.chunks():
        pass


def last_100(rewards: Any) -> float:
    """Mean return of the latest 100 episodes; NaN where none ended."""
    return float(rewards[-100:].mean()) if len(rewards) else float("nan")


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a table, none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append_row(path: Path, columns: Sequence[str], row: Sequence[str]) -> None:
    """Add a row to a table: what is done stays when the next one is stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(columns)
        writer.writerow(row)


def machine(*packages: str) -> str:
    """Describe the processor, the interpreter and the versions of some packages."""
    versions = ", ".join(f"{package} {_version(package)}" for package in packages)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()}; Python {platform.python_version()}, {versions}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _processor() -> str:
    """The model name where the system tells it, else the architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
