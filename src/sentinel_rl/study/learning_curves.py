"""Learning curves of run folders, with intervals over seeds."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.validation import from_file, names, require
from sentinel_rl.training.episodes import monitor_file, read_monitor
from sentinel_rl.training.history import curve_steps, ratio
from sentinel_rl.training.run_notes import read_notes
from sentinel_rl.training.schedule import LARGEST_STEP

FILE = "curves.csv"
_RESAMPLES = 1_000
# Bytes of a file, and the largest number in it: sums of rewards, which are numbers of 32 bits, do not come near.
_LARGEST_FILE, _LARGEST_VALUE = 2**28, 1e100


class Curves(NamedTuple):
    """The learning curves of a run folder.

    Args:
        label: the name of the folder.
        about: environment, agent, steps, seeds and options of the run.
        steps: step counts ``[P]`` of the points.
        values: by name, ``[S, P]``; NaN where there is no number.
        finished: whether the run is.
    """

    label: str
    about: dict[str, Any]
    steps: np.ndarray
    values: dict[str, np.ndarray]
    finished: bool


def read_curves(path: Path, points: int = 200) -> Curves:
    """Read the curves of a run; of one that is not finished, the returns and terminations of its episodes so far.

    Args:
        path: the folder of the run.
        points: of the curves of a run that is not finished.

    Raises:
        UsageError: for a folder without a run, or a run without episodes so far.
        CorruptError: for a damaged file.
    """
    notes = read_notes(path)
    if notes is None:
        raise UsageError(f"{path} holds no training run: give the folder that `sentinel train --out` was given")
    if (path / FILE).exists():
        steps, values = _read_file(path / FILE)
        return Curves(path.name, notes.request, steps, values, True)
    steps, values = _from_episodes(path, notes.request, points)
    return Curves(path.name, notes.request, steps, values, False)


def band(
    curves: Float[np.ndarray, "S P"], resamples: int = _RESAMPLES
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Mean over the runs ``[S, P]`` and its 95 % bootstrap interval at every point; NaN are left out.

    Example:
        >>> mean, low, high = band(np.array([[1.0, 2.0], [3.0, 2.0]]))
        >>> print(mean, low, high)
        [2. 2.] [1. 2.] [3. 2.]
    """
    rng = np.random.default_rng(0)
    size = len(curves)
    counts = np.stack([np.bincount(draw, minlength=size) for draw in rng.integers(size, size=(resamples, size))])
    known = np.isfinite(curves)
    filled = np.where(known, curves, 0.0)
    with np.errstate(invalid="ignore"):
        drawn = (counts @ filled) / (counts @ known)
        mean = filled.sum(axis=0) / known.sum(axis=0)
    low, high = np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    some = known.any(axis=0)
    low[some], high[some] = np.nanquantile(drawn[:, some], [0.025, 0.975], axis=0)
    return mean, low, high


def held(curves: Float[np.ndarray, "S P"]) -> Float[np.ndarray, "S P"]:
    """Curves in which a point without a number has the latest one before it; NaN before the first.

    Where episodes are long, few end between two points: without this, a mean over seeds would be one over others at
    every point.

    Example:
        >>> print(held(np.array([[np.nan, 1.0, np.nan, 3.0]])))
        [[nan  1.  1.  3.]]
    """
    place = np.where(np.isfinite(curves), np.arange(curves.shape[1])[None], 0)
    latest = np.maximum.accumulate(place, axis=1)
    return np.take_along_axis(curves, latest, axis=1)


def _read_file(path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The points of a file of curves, every one of which is checked."""
    if path.stat().st_size > _LARGEST_FILE:
        raise CorruptError(f"{path} has more than {_LARGEST_FILE} bytes: it was not written by sentinel train")
    with from_file(str(path), "file of learning curves"):
        try:
            with open(path, newline="", encoding="utf-8") as file:
                (first, second, *columns), *rows = csv.reader(file)
        except (csv.Error, OSError) as error:
            raise ValueError(error) from error
        names("its columns", columns, at_least=1)
        require((first, second) == ("seed", "step"), "its first columns", (first, second), "seed and step")
        require(len(set(columns)) == len(columns), "its columns", columns, "different ones")
        numbers = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
        require(numbers.ndim == 2 and numbers.shape[1] == len(columns) + 2, "its rows", numbers.shape, "as its columns")
        steps = np.unique(numbers[:, 1])
        seeds = numbers[:: len(steps), 0]  # in the order in which they were asked for
        points = np.stack([np.repeat(seeds, len(steps)), np.tile(steps, len(seeds))], axis=1)
        whole_table = len(np.unique(seeds)) == len(seeds) and np.array_equal(numbers[:, :2], points)
        require(whole_table, "its rows", f"{len(numbers)} of them", "one per seed and step, in their order")
        fine = bool(steps[0] >= 1 and steps[-1] <= LARGEST_STEP)
        require(fine, "steps", steps[[0, -1]], f"from 1 to {LARGEST_STEP}")
        values = numbers[:, 2:].reshape(len(seeds), len(steps), len(columns))
        largest = float(np.max(np.abs(values), where=~np.isnan(values), initial=0.0))
        require(largest <= _LARGEST_VALUE, "a value", largest, f"at most {_LARGEST_VALUE:g}")
    return steps.astype(np.int64), {name: values[..., column] for column, name in enumerate(columns)}


def _from_episodes(path: Path, about: dict[str, Any], points: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The curves of the episodes that were written with the checkpoints so far."""
    files = [monitor_file(path, seed) for seed in about["seeds"]]
    tables = [read_monitor(file, 0, about["steps"]) for file in files if file.exists()]
    last = max((int(table.end[-1]) for table in tables if len(table.end)), default=0)
    if last == 0:
        raise UsageError(f"{path} has no finished episodes yet: try again after its first checkpoint")
    grid = curve_steps(about["steps"], points)
    grid = grid[: int(np.searchsorted(grid, last)) + 1]
    returns, falls = [], []
    for table in tables:
        place = np.searchsorted(grid, table.end)
        count, reward, fell = (
            np.bincount(place, weights, len(grid)) for weights in (None, table.reward, table.terminated.astype(float))
        )
        returns.append(ratio(reward, count.astype(float)))
        falls.append(np.cumsum(fell))
    return grid, {"return": np.stack(returns), "terminations": np.stack(falls)}
