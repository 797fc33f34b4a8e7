"""What is measured of a trained agent, one number per run, and how tables show it."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from sentinel_paper.output import Row
from sentinel_paper.trained import FROZEN, Contender, Records
from sentinel_rl.study import Comparison, Record, Summary, compare, summarise
from sentinel_rl.training import Episodes, measure

Better = Literal["low", "high"]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number per run.

    Args:
        name: what files call it.
        title: what tables call it.
        better: low or high.
        of: takes it from a record.
        digits: that are shown.
    """

    name: str
    title: str
    better: Better
    of: Callable[[Record], np.ndarray]
    digits: int = 2

    @property
    def worse(self) -> Better:
        """Where the worst quarter lies."""
        return "low" if self.better == "high" else "high"


def _array(name: str) -> Callable[[Record], np.ndarray]:
    return lambda record: np.asarray(record.arrays[name], np.float64)


def evaluated(name: str, evaluation: str = FROZEN) -> Callable[[Record], np.ndarray]:
    """A metric of the frozen policy's episodes, by its name in the library's table."""

    def of(record: Record) -> np.ndarray:
        episodes = Episodes(*(record.arrays[f"eval/{evaluation}/{part}"] for part in Episodes._fields))
        return np.asarray(measure(episodes, [name])[name], np.float64)

    return of


FALLS = Metric("falls", "falls", "low", _array("terminations"), 1)
CRASHES = Metric("crashes", "crashes", "low", _array("terminations"), 1)
VALUE = Metric("value", "value", "high", evaluated("value"))
TAIL = Metric("tail", "CVaR .25", "high", evaluated("tail"))
TRAINING_VALUE = Metric("training_value", "value in training", "high", _array("train_discounted_mean"))
TRAINING_TAIL = Metric("training_tail", "CVaR .25 in training", "high", _array("train_discounted_tail"))
TAILS = (
    Metric("cvar_05", "CVaR .05", "high", evaluated("cvar_05")),
    Metric("cvar_10", "CVaR .10", "high", evaluated("cvar_10")),
    Metric("worst", "worst episode", "high", evaluated("worst")),
    Metric("ends_per_1000", "ends per 1000 episodes", "low", evaluated("terminations_per_1000"), 1),
)


def values(records: Records, metric: Metric) -> dict[str, np.ndarray]:
    """The numbers of every contender, one per run."""
    return {label: metric.of(record) for label, record in records.found.items()}


def summaries(records: Records, metric: Metric) -> dict[str, Summary]:
    """Their statistics."""
    return {label: _summarised(found.tobytes(), metric.worse) for label, found in values(records, metric).items()}


@functools.lru_cache(4_096)
def _summarised(numbers: bytes, worse: Better) -> Summary:
    """A page asks for the same intervals many times, and a bootstrap takes long."""
    return summarise(np.frombuffer(numbers), worse=worse)


def against(records: Records, metric: Metric, ours: str, others: Sequence[str]) -> dict[str, Comparison]:
    """One contender compared with others, run by run with the same seed; differences are ours minus theirs."""
    found = values(records, metric)
    return compare(found[ours], {label: found[label] for label in others}, better=metric.better)


def shown(summary: Summary, digits: int = 2) -> str:
    """Mean, standard error and interval as text."""
    mean, sem, low, high = (_number(part, digits) for part in (summary.mean, summary.sem, summary.low, summary.high))
    return f"{mean} ± {sem} [{low}, {high}]"


def printed(pair: tuple[float, float] | None, digits: int = 2) -> str:
    """A number of the paper as text."""
    return "" if pair is None else f"{_number(pair[0], digits)} ± {_number(pair[1], digits)}"


def overview(records: Records, contenders: Sequence[Contender], metrics: Sequence[Metric]) -> list[Row]:
    """A table: contenders down, metrics across, the paper's numbers beside ours where it has any."""
    told = {metric.name: summaries(records, metric) for metric in metrics}
    rows: list[Row] = []
    for contender in contenders:
        row: dict[str, Any] = {"agent": contender.label}
        for metric in metrics:
            row[metric.title] = shown(told[metric.name][contender.label], metric.digits)
            if any(metric.name in other.printed for other in contenders):
                row[f"paper: {metric.title}"] = printed(contender.printed.get(metric.name), metric.digits)
        rows.append(row)
    return rows


def comparisons(records: Records, metrics: Sequence[Metric], ours: str, others: Sequence[str]) -> list[Row]:
    """A table of our agent against the others: paired differences, and how probable an improvement is."""
    rows: list[Row] = []
    for metric in metrics:
        for label, told in against(records, metric, ours, others).items():
            low, high, middle = (_number(part, metric.digits) for part in (told.low, told.high, told.difference))
            rows.append(
                {"metric": metric.title, "against": label, "difference": f"{middle} [{low}, {high}]"}
                | {"better in": f"{100 * told.probability_of_improvement:.0f}% of runs"}
                | {"p, Holm": f"{told.p_holm:.2g}"}
            )
    return rows


def numbers(records: Records, contenders: Sequence[Contender], metrics: Sequence[Metric]) -> list[Row]:
    """All statistics, one row per contender and metric."""
    rows: list[Row] = []
    for metric in metrics:
        told = summaries(records, metric)
        for contender in contenders:
            paper = contender.printed.get(metric.name, ("", ""))
            row = {"agent": contender.label, "metric": metric.name, **told[contender.label]._asdict()}
            rows.append(row | {"paper_mean": paper[0], "paper_sem": paper[1]})
    return rows


def runs(records: Records, metrics: Sequence[Metric]) -> list[Row]:
    """The numbers of every single run."""
    found = {metric.name: values(records, metric) for metric in metrics}
    return [
        {"agent": label, "seed": seed} | {name: _known(float(of[label][place])) for name, of in found.items()}
        for label in records.found
        for place, seed in enumerate(records.settings.seeds)
    ]


def _known(value: float) -> float | str:
    """A cell of a CSV, empty where there is no number."""
    return value if math.isfinite(value) else ""


def last_means(record: Record, name: str, share: float = 0.1) -> np.ndarray:
    """The mean of a curve over its last tenth for every run, NaN where there is none."""
    return _mean_over(record, name, slice(-max(1, round(share * _points(record))), None))


def first_means(record: Record, name: str, share: float = 0.1) -> np.ndarray:
    """The mean of a curve over the first tenth in which it is known for every run, NaN where there is none."""
    return _mean_over(record, name, slice(0, max(1, round(share * _points(record)))))


def _points(record: Record) -> int:
    return len(record.arrays["steps"])


def _mean_over(record: Record, name: str, part: slice) -> np.ndarray:
    curve = record.arrays.get(name)
    if curve is None:
        return np.full(len(record.cell.seeds), math.nan)
    shown = np.asarray(curve, np.float64)[:, np.isfinite(curve).any(axis=0)][:, part]
    known = np.isfinite(shown)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, shown, 0.0).sum(axis=1) / known.sum(axis=1))


def _number(value: float, digits: int) -> str:
    return "?" if not math.isfinite(value) else f"{value:.{digits}f}"
