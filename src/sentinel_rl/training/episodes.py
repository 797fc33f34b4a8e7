"""Episodes out of the steps of training, and the file in which SB3's tools find them."""

import csv
import io
import json
import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
    """Cuts the steps of runs side by side into episodes, as they come.

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
        plain_sums, discounted_sums = self._sums(reward, discounted, ended)
        finished = EpisodeTable(
            run,
            plain_sums[run, last],
            discounted_sums[run, last],
            position[run, last] + 1,
            terminated[run, last],
            self._t + last + 1,
            np.full(run.shape, now),
        )
        open_since = np.maximum(start[:, -1], after_end[:, -1])
        self._length = steps - open_since + np.where(open_since == 0, self._length, 0)
        self._t += steps
        return finished

    def _sums(self, reward: np.ndarray, discounted: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums since the beginning of the episode after every step, added step by step.

        Their last bit does not depend on where the steps were cut into chunks, as a difference of two sums would.
        """
        values = np.ascontiguousarray(np.stack([reward, discounted]).astype(np.float64).transpose(2, 0, 1))
        sums, so_far = np.empty_like(values), np.stack([self._reward, self._discounted])
        for step, over in enumerate(ended.T):
            np.add(so_far, values[step], out=sums[step])
            so_far = np.where(over, 0.0, sums[step])
        self._reward, self._discounted = so_far
        plain, discounting = sums.transpose(1, 2, 0)
        return plain, discounting

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
    """Write episodes in the format of SB3's ``Monitor``: columns r, l, t and ``terminated``.

    Returns are written with all their digits. The first line has a checksum, which SB3's tools pass over.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    rows = zip(episodes.reward, episodes.length, episodes.time, episodes.terminated, strict=True)
    writer.writerows([float(r), int(n), round(float(t), 6), int(ended)] for r, n, t, ended in rows)
    about = {"t_start": started, "env_id": env_id}
    header = {**about, "checksum": _checksum(about, text.getvalue())}
    write_file(path, f"#{json.dumps(header)}\n{text.getvalue()}")


def read_monitor(path: Path, run: int, steps: int) -> EpisodeTable:
    """Read back the episodes of the first `steps` steps; what they were discounted to is not in the file.

    A file that cannot be read, or whose checksum is wrong, is warned about, and gives no episodes. One of version 0.1
    has no checksum.
    """
    try:
        rows = _rows_of(path.read_text())
    except (OSError, TypeError, ValueError, LookupError, OverflowError, RecursionError, csv.Error) as error:
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


_COLUMNS = ["r", "l", "t", "terminated"]
# More than any sum of rewards of 32 bits, and the steps that are counted in 32 bits: others were made up.
_LARGEST_RETURN, _LONGEST_EPISODE = 1e100, 2**31


def _checksum(about: Mapping[str, Any], rows: str) -> int:
    return zlib.crc32((json.dumps(about, sort_keys=True) + rows).encode())


def _rows_of(text: str) -> list[tuple[float, int, bool, float]]:
    """Return, length, end and time of every episode of a monitor file.

    Raises:
        ValueError: for a file that is damaged.
    """
    first, _, rest = text.partition("\n")
    header = json.loads(first.removeprefix("#"))
    about = {name: header[name] for name in ("t_start", "env_id")}
    # A file of version 0.1 has no checksum, and nothing else beside these two.
    legacy = set(header) == set(about)
    if not legacy and header.get("checksum") != _checksum(about, rest):
        raise ValueError("its checksum is wrong: the file is damaged or was edited")
    found = csv.DictReader(rest.splitlines())
    if found.fieldnames != _COLUMNS or not first.startswith("#"):
        raise ValueError(f"its columns are {found.fieldnames}, not {_COLUMNS}")
    rows = [(float(row["r"]), int(row["l"]), row["terminated"] == "1", float(row["t"])) for row in found]
    for reward, length, _, now in rows:
        if not (abs(reward) <= _LARGEST_RETURN and 1 <= length <= _LONGEST_EPISODE and math.isfinite(now)):
            raise ValueError(f"an episode has a return of {reward:g}, {length} steps and a time of {now:g}")
    return rows
