"""Where the scalars of a training go: the terminal, a CSV file, TensorBoard, or a sink of the user's own."""

import csv
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO, runtime_checkable

import numpy as np

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import make_folder, storage_errors

# What metrics are called in logs, where that is not ``train/NAME``.
TAGS: Mapping[str, str] = {
    "loss": "train/loss",
    "clip_low": "risk/support_clip_low",
    "clip_high": "risk/support_clip_high",
}


@runtime_checkable
class Sink(Protocol):
    """Takes the scalars of trainings. Another target is one class with these two methods."""

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Take the scalars of the run of a seed after so many steps."""
        ...

    def close(self) -> None:
        """Training is over: finish the file, the connection or the like."""
        ...


class ConsoleSink:
    """Prints a line per write.

    Example:
        >>> ConsoleSink().write(100, {"rollout/ep_rew_mean": 21.5}, seed=0)
        step 100: rollout/ep_rew_mean 21.5
    """

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Print the scalars."""
        if values:
            print(f"step {step}: " + ", ".join(f"{name} {values[name]:.5g}" for name in sorted(values)), flush=True)

    def close(self) -> None:
        """There is nothing to finish."""


class CSVSink:
    """Writes one line per scalar, ``step,seed,name,value``; a file that is there is continued.

    Args:
        path: of the file.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file: TextIO | None = None

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Append the scalars, and flush them."""
        with storage_errors(f"cannot write {self.path}"):
            if self._file is None:
                make_folder(self.path.parent)
                fresh = not self.path.exists() or self.path.stat().st_size == 0
                self._file = open(self.path, "a", newline="")  # noqa: SIM115 (closed by `close`)
                if fresh:
                    self._file.write("step,seed,name,value\n")
            csv.writer(self._file, lineterminator="\n").writerows([step, seed, *item] for item in values.items())
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class TensorBoardSink:
    """Writes TensorBoard's event files, a fresh folder per run, numbered as SB3 does.

    Args:
        folder: where the folders of the runs are made.
        label: their names begin with it.

    Raises:
        UsageError: when the package tensorboardX is not installed.
    """

    def __init__(self, folder: str | Path, label: str = "run"):
        self.folder, self.label = Path(folder), label
        self._writers: dict[int, Any] = {}
        try:
            self._tensorboard = importlib.import_module("tensorboardX")
        except ImportError as error:
            raise UsageError(
                f"tensorboard_log={str(folder)!r} needs the package tensorboardX, which is not installed: "
                "pip install 'sentinel-rl[tensorboard]'"
            ) from error

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Add the scalars to the event file of the seed's run."""
        if seed not in self._writers:
            self._writers[seed] = self._tensorboard.SummaryWriter(str(self._fresh_folder(seed)))
        for name, value in values.items():
            self._writers[seed].add_scalar(name, value, step)
        self._writers[seed].flush()

    def close(self) -> None:
        """Finish the event files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _fresh_folder(self, seed: int) -> Path:
        """A folder that is not taken, so that runs are not mixed up."""
        stem = f"{self.label}_seed{seed}_"
        numbers = [path.name.removeprefix(stem) for path in self.folder.glob(f"{stem}*")]
        return self.folder / f"{stem}{max((int(n) for n in numbers if n.isdecimal()), default=0) + 1}"


class LoggerSink:
    """Hands the scalars to a logger with SB3's methods, such as that of ``stable_baselines3.common.logger.configure``.

    Args:
        logger: with ``record(key, value)`` and ``dump(step)``; whoever made it closes it.
    """

    def __init__(self, logger: Any):
        self.logger = logger

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Record the scalars, and dump them with all that callbacks recorded."""
        for name, value in values.items():
            self.logger.record(name, value)
        self.logger.dump(step)

    def close(self) -> None:
        """The logger stays open."""


class Logger:
    """Values recorded between two dumps, with the methods of SB3's logger that callbacks use.

    Args:
        sinks: that take what is dumped.
        seed: of the run that it logs.

    Example:
        >>> logger = Logger([ConsoleSink()])
        >>> logger.record("rollout/ep_rew_mean", 21.5)
        >>> logger.dump(100)
        step 100: rollout/ep_rew_mean 21.5
    """

    def __init__(self, sinks: Sequence[Sink] = (), seed: int = 0):
        self.sinks, self.seed = list(sinks), seed
        self.name_to_value: dict[str, Any] = {}
        self._count: dict[str, int] = {}
        self._excluded: dict[str, tuple[str, ...]] = {}

    @property
    def active(self) -> bool:
        """Whether anyone sees what is recorded."""
        return bool(self.sinks)

    def record(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        """Keep a value for the next dump; a later one of the same name replaces it.

        Args:
            key: its tag, for example ``"rollout/ep_rew_mean"``.
            value: a number; anything else is kept, but not written.
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
        """Hand all values recorded since the last dump to the sinks."""
        numbers = {key: number for key, value in self.name_to_value.items() if (number := _number(value)) is not None}
        for sink in self.sinks:
            hidden = _SB3_NAMES.get(type(sink), "")
            sink.write(step, {key: n for key, n in numbers.items() if hidden not in self._excluded[key]}, self.seed)
        for kept in (self.name_to_value, self._count, self._excluded):
            kept.clear()


_SB3_NAMES: Mapping[type, str] = {ConsoleSink: "stdout", TensorBoardSink: "tensorboard", CSVSink: "csv"}


def _number(value: Any) -> float | None:
    """A value as a finite number, or None where it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
