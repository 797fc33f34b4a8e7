"""Scalars of a training, under the names that users of SB3 know: kept, printed, and written for TensorBoard."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sentinel_rl.errors import UsageError
from sentinel_rl.training.episodes import EpisodeLog

# What an agent measures while it learns, and the tag it is shown under.
TAGS: Mapping[str, str] = {
    "loss": "train/loss",
    "clip_low": "risk/support_clip_low",
    "clip_high": "risk/support_clip_high",
}


class Logger:
    """Values recorded between two dumps, with the methods of SB3's logger that callbacks use.

    Args:
        folder: where TensorBoard's event files go; None writes none.
        shown: print what is dumped.

    Example:
        >>> logger = Logger(shown=True)
        >>> logger.record("rollout/ep_rew_mean", 21.5)
        >>> logger.dump(100)
        step 100: rollout/ep_rew_mean 21.5
    """

    def __init__(self, folder: str | Path | None = None, shown: bool = False):
        self.shown = shown
        self.name_to_value: dict[str, Any] = {}
        self._count: dict[str, int] = {}
        self._excluded: dict[str, tuple[str, ...]] = {}
        self._writer = None if folder is None else _event_writer(folder)

    @property
    def active(self) -> bool:
        """Whether anyone sees what is recorded."""
        return self.shown or self._writer is not None

    def record(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        """Keep a value for the next dump; a later one of the same name replaces it.

        Args:
            key: its tag, for example ``"rollout/ep_rew_mean"``.
            value: a number; anything else is kept, but neither printed nor written.
            exclude: ``"stdout"`` or ``"tensorboard"``, where it shall not appear.
        """
        self.name_to_value[key] = value
        self._excluded[key] = (exclude,) if isinstance(exclude, str) else exclude or ()

    def record_mean(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        """Keep the mean of all values that are given under this name before the next dump; None is not counted."""
        if value is None:
            return
        count = self._count.get(key, 0)
        mean = (self.name_to_value.get(key, 0.0) if count else 0.0) * count + value
        self._count[key] = count + 1
        self.record(key, mean / (count + 1), exclude)

    def dump(self, step: int = 0) -> None:
        """Print and write all values recorded since the last dump."""
        numbers = {key: number for key, value in self.name_to_value.items() if (number := _number(value)) is not None}
        if self._writer is not None:
            for key, number in numbers.items():
                if "tensorboard" not in self._excluded[key]:
                    self._writer.add_scalar(key, number, step)
            self._writer.flush()
        if self.shown and numbers:
            seen = (f"{key} {n:.5g}" for key, n in sorted(numbers.items()) if "stdout" not in self._excluded[key])
            print(f"step {step}: " + ", ".join(seen), flush=True)
        for kept in (self.name_to_value, self._count, self._excluded):
            kept.clear()

    def close(self) -> None:
        """Finish the event file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def record_training(
    logger: Logger, log: EpisodeLog, metrics: Mapping[str, float], risk: Mapping[str, float], fps: float
) -> None:
    """Record where a training stands: recent episodes, speed, the agent's metrics and the risk it sees."""
    recent = log.episodes[-100:]
    if recent:
        logger.record("rollout/ep_rew_mean", float(np.mean([episode.reward for episode in recent])))
        logger.record("rollout/ep_len_mean", float(np.mean([episode.length for episode in recent])))
    logger.record("time/fps", fps)
    for name, value in metrics.items():
        logger.record(TAGS.get(name, f"train/{name}"), value)
    for name, value in risk.items():
        logger.record(f"risk/{name}", value)


def _number(value: Any) -> float | None:
    """A value as a finite number, or None where it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def _event_writer(folder: str | Path) -> Any:
    try:
        tensorboard = importlib.import_module("tensorboardX")
    except ImportError as error:
        raise UsageError(
            f"tensorboard_log={str(folder)!r} needs the package tensorboardX, which is not installed: "
            "pip install tensorboardX"
        ) from error
    return tensorboard.SummaryWriter(str(folder))
