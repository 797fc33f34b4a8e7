"""Episodes out of the steps of training, and the file in which SB3's tools find them."""

import csv
import io
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentinel_rl.errors import SentinelWarning
from sentinel_rl.storage.atomic import write_file

MONITOR = "monitor.csv"


class Episode(NamedTuple):
    """One finished episode of training.

    Args:
        reward: undiscounted return.
        discounted: return, discounted as the task judges it; NaN where it is not known.
        length: number of steps.
        terminated: whether it ended by a fall, a crash or the like.
        end: the step count of the run after its last step.
        time: seconds since training began.
    """

    reward: float
    discounted: float
    length: int
    terminated: bool
    end: int
    time: float


class EpisodeTable(NamedTuple):
    """Finished episodes of all runs as columns, in the order in which they were noticed; see `Episode`."""

    run: np.ndarray
    reward: np.ndarray
    discounted: np.ndarray
    length: np.ndarray
    terminated: np.ndarray
    end: np.ndarray
    time: np.ndarray

    def of_run(self, run: int) -> "EpisodeTable":
        """The episodes of one run."""
        own = self.run == run
        return EpisodeTable(*(column[own] for column in self))

    @classmethod
    def join(cls, parts: Sequence["EpisodeTable"]) -> "EpisodeTable":
        """Tables one after the other."""
        if not parts:
            return cls(*(np.zeros(0, dtype) for dtype in _DTYPES))
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @classmethod
    def of_episodes(cls, run: int, episodes: Sequence[Episode]) -> "EpisodeTable":
        """The table of one run's episodes."""
        columns = list(zip(*episodes, strict=True)) or [()] * len(Episode._fields)
        whole = (np.full(len(episodes), run), *columns)
        return cls(*(np.asarray(column, dtype) for column, dtype in zip(whole, _DTYPES, strict=True)))


_DTYPES = (np.int64, np.float64, np.float64, np.int64, np.bool_, np.int64, np.float64)


class EpisodeCounter:
    """Cuts the steps of runs side by side into episodes, as they come: no loop over episodes.

    Args:
        runs: how many.
        gamma: discount of the returns.
    """

    def __init__(self, runs: int, gamma: float):
        self._gamma, self._t = gamma, 0
        # Of the episodes that go on: sums and length.
        self._reward, self._discounted = np.zeros(runs), np.zeros(runs)
        self._length = np.zeros(runs, np.int64)

    def extend(self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, now: float) -> EpisodeTable:
        """Take in the next steps, ``[runs, steps]``; returns the episodes that ended in them."""
        steps = reward.shape[1]
        ended = terminated | truncated
        run, last = np.nonzero(ended)
        # Steps since the last end, per run: a running maximum of the places of the ends.
        place = np.arange(steps)
        after_end = np.where(ended, place[None] + 1, 0)
        start = np.maximum.accumulate(np.pad(after_end, ((0, 0), (1, 0)))[:, :-1], axis=1)
        position = place[None] - start + np.where(start == 0, self._length[:, None], 0)
        discounted = reward * np.power(self._gamma, np.arange(int(position.max()) + 1))[position]
        plain_sums, discounted_sums = (
            np.pad(np.cumsum(values, axis=1, dtype=np.float64), ((0, 0), (1, 0))) for values in (reward, discounted)
        )
        begin, end = (run, start[run, last]), (run, last + 1)
        first = start[run, last] == 0
        finished = EpisodeTable(
            run,
            plain_sums[end] - plain_sums[begin] + np.where(first, self._reward[run], 0.0),
            discounted_sums[end] - discounted_sums[begin] + np.where(first, self._discounted[run], 0.0),
            position[run, last] + 1,
            terminated[run, last],
            self._t + last + 1,
            np.full(run.shape, now),
        )
        self._carry(np.maximum(start[:, -1], after_end[:, -1]), steps, plain_sums, discounted_sums)
        self._t += steps
        return finished

    def _carry(self, start: np.ndarray, steps: int, plain_sums: np.ndarray, discounted_sums: np.ndarray) -> None:
        """Keep what belongs to the episodes that go on."""
        rows, whole = np.arange(len(start)), start == 0
        for sums, name in ((plain_sums, "_reward"), (discounted_sums, "_discounted")):
            rest = sums[:, -1] - sums[rows, start]
            setattr(self, name, rest + np.where(whole, getattr(self, name), 0.0))
        self._length = steps - start + np.where(whole, self._length, 0)

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps of the episodes that go on."""
        return {"reward": self._reward, "discounted": self._discounted, "length": self._length}

    def restore(self, t: int, reward: np.ndarray, discounted: np.ndarray, length: np.ndarray) -> None:
        """Go back to what `state` gave after step ``t``."""
        self._t = t
        self._reward, self._discounted = np.array(reward, np.float64), np.array(discounted, np.float64)
        self._length = np.array(length, np.int64)


class EpisodeLog:
    """The episode that goes on in one environment which is stepped from Python."""

    def __init__(self, gamma: float):
        self._gamma = gamma
        self.begin()

    def begin(self) -> None:
        """Begin a new episode."""
        self.reward, self.discounted, self.length = 0.0, 0.0, 0

    def add(self, reward: float, terminated: bool, truncated: bool, t: int, now: float) -> Episode | None:
        """Take in a step, after which the run has done ``t``; returns the episode if it ended."""
        self.reward += reward
        self.discounted += self._gamma**self.length * reward
        self.length += 1
        if not (terminated or truncated):
            return None
        episode = Episode(self.reward, self.discounted, self.length, terminated, t, now)
        self.begin()
        return episode


def monitor_file(folder: Path, seed: int) -> Path:
    """Where the episodes of a seed are written; SB3's ``load_results`` finds them."""
    return folder / f"seed_{seed}.{MONITOR}"


def write_monitor(path: Path, episodes: EpisodeTable, env_id: str, started: float) -> None:
    """Write episodes in the format of SB3's ``Monitor``: columns r, l, t and ``terminated``."""
    text = io.StringIO()
    text.write("#" + json.dumps({"t_start": started, "env_id": env_id}) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["r", "l", "t", "terminated"])
    rows = zip(episodes.reward, episodes.length, episodes.time, episodes.terminated, strict=True)
    writer.writerows([round(float(r), 6), int(n), round(float(t), 6), int(ended)] for r, n, t, ended in rows)
    write_file(path, text.getvalue())


def read_monitor(path: Path, run: int, steps: int) -> EpisodeTable:
    """Read back the episodes of the first `steps` steps; what they were discounted to is not in the file.

    A file that cannot be read is warned about, and gives no episodes.
    """
    try:
        _, *lines = path.read_text().splitlines()
        rows = [(float(r["r"]), int(r["l"]), r["terminated"] == "1", float(r["t"])) for r in csv.DictReader(lines)]
    except (OSError, ValueError, KeyError) as error:
        warnings.warn(
            f"the episodes before step {steps} are lost, training goes on: {path} is not readable ({error})",
            SentinelWarning,
            stacklevel=3,
        )
        rows = []
    ends = np.cumsum([length for _, length, _, _ in rows], dtype=np.int64)
    found = [
        Episode(reward, float("nan"), length, terminated, int(end), now)
        for (reward, length, terminated, now), end in zip(rows, ends, strict=True)
        if end <= steps
    ]
    return EpisodeTable.of_episodes(run, found)


def seconds_since(started: float) -> float:
    """The seconds since a moment of ``time.time()``."""
    return round(time.time() - started, 6)
