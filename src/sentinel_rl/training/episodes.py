"""Episodes out of the traces of steps, and the file in which SB3's tools find them."""

import csv
import io
import json
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentinel_rl.errors import SentinelWarning
from sentinel_rl.storage.atomic import write_file

MONITOR = "monitor.csv"


class Episode(NamedTuple):
    """One finished episode: its return and length, whether it terminated (fell, crashed), and when it was logged."""

    reward: float
    length: int
    terminated: bool
    time: float


class EpisodeLog:
    """The episodes of one run, from its steps in order; ``reward`` and ``length`` are those of the one under way."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []
        self.reward, self.length = 0.0, 0
        self.started = time.time()

    def extend(self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> list[Episode]:
        """Take in the next steps; returns the episodes that ended in them."""
        ends = np.flatnonzero(terminated | truncated)
        fresh = []
        start, now = 0, round(time.time() - self.started, 6)
        for end in ends:
            total = self.reward + float(np.sum(reward[start : end + 1], dtype=np.float64))
            fresh.append(Episode(total, self.length + int(end) + 1 - start, bool(terminated[end]), now))
            self.reward, self.length, start = 0.0, 0, int(end) + 1
        self.reward += float(np.sum(reward[start:], dtype=np.float64))
        self.length += len(reward) - start
        self.episodes += fresh
        return fresh

    @property
    def terminations(self) -> int:
        """Episodes that ended by a fall, a crash or the like."""
        return sum(episode.terminated for episode in self.episodes)

    def recent(self, count: int = 100) -> float:
        """Mean return of the latest episodes; NaN before the first."""
        latest = [episode.reward for episode in self.episodes[-count:]]
        return float(np.mean(latest)) if latest else float("nan")

    def save(self, path: Path, env_id: str) -> None:
        """Write them in the format of SB3's ``Monitor``: columns r, l, t and ``terminated``."""
        text = io.StringIO()
        text.write("#" + json.dumps({"t_start": self.started, "env_id": env_id}) + "\n")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["r", "l", "t", "terminated"])
        writer.writerows([round(e.reward, 6), e.length, e.time, int(e.terminated)] for e in self.episodes)
        write_file(path, text.getvalue())

    def load(self, path: Path, steps: int) -> None:
        """Read back what `save` wrote, as far as the first `steps` steps: the file may be ahead of a checkpoint."""
        header, *lines = path.read_text().splitlines()
        self.started = float(json.loads(header[1:])["t_start"])
        self.episodes, done = [], 0
        for row in csv.DictReader(lines):
            done += int(row["l"])
            if done > steps:
                break
            self.episodes.append(Episode(float(row["r"]), int(row["l"]), row["terminated"] == "1", float(row["t"])))


def monitor_file(folder: Path, seed: int) -> Path:
    """Where the episodes of a seed are written; SB3's ``load_results`` finds them."""
    return folder / f"seed_{seed}.{MONITOR}"


def read_episodes(log: EpisodeLog, path: Path, steps: int) -> None:
    """Read the episodes of the first `steps` steps, with a warning where they are lost."""
    try:
        log.load(path, steps)
    except (OSError, ValueError, KeyError) as error:
        warnings.warn(
            f"the episodes before step {steps} are lost, training goes on: {path} is not readable ({error})",
            SentinelWarning,
            stacklevel=3,
        )
