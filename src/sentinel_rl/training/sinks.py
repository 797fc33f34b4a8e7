"""Where the scalars of a training go: the terminal, a CSV file, TensorBoard, or a sink of the user's own."""

import csv
import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO, runtime_checkable

import numpy as np

from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.atomic import make_folder, storage_errors, write_file

# The mean return of the latest episodes, in logs.
RETURN = "rollout/ep_rew_mean"

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


class RunStart(NamedTuple):
    """What a sink may know of a run before its first scalar.

    Args:
        seed: of the run.
        step: at which it begins, or goes on.
        resumed: whether it goes on in the folder of a run that began before, so that its log is continued.
        about: agent, environment, steps and options, by name.
    """

    seed: int
    step: int
    resumed: bool
    about: Mapping[str, Any]


class Histogram(NamedTuple):
    """The law of a number: its mass between each two of the ascending edges."""

    edges: np.ndarray
    masses: np.ndarray


@runtime_checkable
class StartingSink(Protocol):
    """What a sink adds that wants to know the run, for example to note its hyperparameters."""

    def start(self, run: RunStart) -> None:
        """A run begins, or is resumed."""
        ...


@runtime_checkable
class HistogramSink(Protocol):
    """What a sink adds that takes the laws of returns beside scalars."""

    def write_histograms(self, step: int, histograms: Mapping[str, Histogram], seed: int) -> None:
        """Take the histograms of the run of a seed after so many steps."""
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

    Of a run that is resumed, the lines after the step at which it goes on are removed: they are written again.

    Args:
        path: of the file.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file: TextIO | None = None

    def start(self, run: RunStart) -> None:
        """Go back to the step at which a run is resumed."""
        if not run.resumed or self._file is not None or not self.path.exists():
            return
        try:
            with open(self.path, newline="") as file:
                head, *rows = csv.reader(file) if self.path.stat().st_size else [[]]
            kept = [row for row in rows if len(row) == 4 and not (row[1] == str(run.seed) and int(row[0]) > run.step)]
        except (csv.Error, ValueError) as error:
            raise CorruptError(
                f"{self.path} is no log of scalars, or is damaged ({error}): move it away, or log to another file"
            ) from error
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([head, *kept])
        write_file(self.path, text.getvalue())

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
    """Writes TensorBoard's event files: scalars, the hyperparameters of the run, and histograms of return laws.

    Every run gets a fresh folder, numbered as SB3 does; a run that is resumed goes on in its newest one.

    Args:
        folder: where the folders of the runs are made.
        label: their names begin with it.

    Raises:
        UsageError: when the package tensorboardX is not installed.
    """

    def __init__(self, folder: str | Path, label: str = "run"):
        self.folder, self.label = Path(folder), label
        self._writers: dict[int, Any] = {}
        self._starts: dict[int, RunStart] = {}
        try:
            self._tensorboard = importlib.import_module("tensorboardX")
        except ImportError as error:
            raise UsageError(
                f"tensorboard_log={str(folder)!r} needs the package tensorboardX, which is not installed: "
                "pip install 'sentinel-rl[tensorboard]'"
            ) from error

    def start(self, run: RunStart) -> None:
        """Keep what shall stand in the event file, which is made with the first scalar."""
        self._starts[run.seed] = run

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Add the scalars to the event file of the seed's run."""
        writer = self._writer(seed)
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    def write_histograms(self, step: int, histograms: Mapping[str, Histogram], seed: int) -> None:
        """Add the histograms to the event file of the seed's run."""
        writer = self._writer(seed)
        for name, (edges, masses) in histograms.items():
            middles = (edges[:-1] + edges[1:]) / 2
            sums = float(masses @ middles), float(masses @ middles**2)
            limits = edges[1:].tolist(), masses.tolist()
            writer.add_histogram_raw(name, float(edges[0]), float(edges[-1]), 1, *sums, *limits, step)
        writer.flush()

    def close(self) -> None:
        """Finish the event files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._starts.clear()

    def _writer(self, seed: int) -> Any:
        if seed not in self._writers:
            run = self._starts.get(seed)
            newest = self._newest(seed)
            if run is not None and run.resumed and newest > 0:
                # What was written after the step at which the run goes on is written again: TensorBoard drops it.
                place = str(self._place(seed, newest))
                self._writers[seed] = self._tensorboard.SummaryWriter(place, purge_step=run.step + 1)
            else:
                self._writers[seed] = self._tensorboard.SummaryWriter(str(self._place(seed, newest + 1)))
                if run is not None:
                    self._note(self._writers[seed], run)
        return self._writers[seed]

    def _note(self, writer: Any, run: RunStart) -> None:
        """Write the hyperparameters, for TensorBoard's table of runs."""
        options = {"seed": run.seed, **{name: value for name, value in run.about.items() if name != "options"}}
        options |= {f"options/{name}": value for name, value in run.about.get("options", {}).items()}
        told = {n: v if isinstance(v, (bool, int, float, str)) else str(v) for n, v in options.items() if v is not None}
        summary = importlib.import_module("tensorboardX.summary")
        for part in summary.hparams(hparam_dict=told, metric_dict={RETURN: 0.0}):
            writer.file_writer.add_summary(part)

    def _place(self, seed: int, number: int) -> Path:
        return self.folder / f"{self.label}_seed{seed}_{number}"

    def _newest(self, seed: int) -> int:
        """The number of the newest folder of a seed; 0 where there is none."""
        stem = f"{self.label}_seed{seed}_"
        numbers = [path.name.removeprefix(stem) for path in self.folder.glob(f"{stem}*")]
        return max((int(number) for number in numbers if number.isdecimal()), default=0)


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

    @property
    def takes_histograms(self) -> bool:
        """Whether anyone sees histograms."""
        return any(isinstance(sink, HistogramSink) for sink in self.sinks)

    def start(self, step: int, resumed: bool, about: Mapping[str, Any]) -> None:
        """Tell the sinks that want to know it which run begins, or goes on."""
        for sink in self.sinks:
            if isinstance(sink, StartingSink):
                sink.start(RunStart(self.seed, step, resumed, about))

    def dump_histograms(self, step: int, histograms: Mapping[str, Histogram]) -> None:
        """Hand histograms to the sinks that take them."""
        for sink in self.sinks:
            if isinstance(sink, HistogramSink):
                sink.write_histograms(step, histograms, self.seed)

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
