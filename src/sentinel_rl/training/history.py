"""What a training is remembered by: its episodes, and learning curves of everything that was measured."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from sentinel_rl.training.episodes import Episode, EpisodeCounter, EpisodeTable
from sentinel_rl.training.metrics import TAIL, Episodes, tail_mean

_TABLE, _PARTIAL, _METRIC, _REPORT, _EVALUATION = "episodes/", "partial/", "metric/", "report/", "evaluation/"


def curve_steps(steps: int, points: int, horizon: int | None = None) -> np.ndarray:
    """The step counts at which curves are given: evenly spread, the last one last.

    A training that is extended beyond its `horizon` goes on with the same distance between the points.

    >>> curve_steps(1_000, 4)
    array([ 250,  500,  750, 1000])
    >>> curve_steps(1_600, 4, horizon=1_000)
    array([ 250,  500,  750, 1000, 1250, 1500, 1600])
    """
    planned = steps if horizon is None else horizon
    count = -(-steps * points // planned)
    grid = -(-np.arange(1, count + 1, dtype=np.int64) * planned // points)  # rounded up
    return np.unique(np.minimum(grid, steps))


class History:
    """Collects the episodes and metrics of runs side by side.

    Args:
        runs: how many.
        steps: of each.
        points: of the curves.
        gamma: discount of the returns.
        horizon: see `curve_steps`.
    """

    def __init__(self, runs: int, steps: int, points: int, gamma: float, horizon: int | None = None):
        self.runs, self.grid = runs, curve_steps(steps, points, horizon)
        self._begin(0.0)
        self._counter = EpisodeCounter(runs, gamma)
        self._tables: list[EpisodeTable] = []
        self._ordered: EpisodeTable | None = None
        self._sums: dict[str, np.ndarray] = {}
        self._counts = np.zeros(len(self.grid))
        self._report_times: list[int] = []
        self._reports: list[Any] = []
        self._evaluations: list[tuple[int, Episodes]] = []

    @property
    def elapsed(self) -> float:
        """Seconds since training began."""
        return round(time.monotonic() - self._began, 6)

    def _begin(self, elapsed: float) -> None:
        """Training has gone on for so many seconds. The clock on the wall may be set, and is not asked again."""
        self._began, self.started = time.monotonic() - elapsed, time.time() - elapsed

    def extend(self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Take in the next steps of all runs, ``[runs, steps]``."""
        self._tables.append(self._counter.extend(reward, terminated, truncated, self.elapsed))

    def add_episodes(self, run: int, episodes: Sequence[Episode]) -> None:
        """Take in episodes that were counted elsewhere."""
        if episodes:
            self._tables.append(EpisodeTable.of_episodes(run, episodes))

    def add_metrics(self, ends: np.ndarray, metrics: Mapping[str, np.ndarray]) -> None:
        """Take in the metrics of updates ``[runs, updates]`` made after the steps `ends`; NaN is no update."""
        for number, (name, given) in enumerate(metrics.items()):
            values = np.asarray(given, np.float64)
            due = ~np.isnan(values).all(axis=0)
            point = np.searchsorted(self.grid, ends[due])
            sums = self._sums.setdefault(name, np.zeros((len(self.grid), self.runs)))
            np.add.at(sums, point, values[:, due].T)
            if number == 0:
                self._counts += np.bincount(point, minlength=len(self.grid))

    def add_report(self, t: int, parts: list[Any]) -> None:
        """Take in what the agents report of themselves after ``t`` steps, as dictionaries of arrays by group of runs.

        The arrays may still be computed on a device: they are fetched when somebody asks for them.
        """
        self._report_times.append(t)
        self._reports.append(parts)

    def add_evaluation(self, t: int, played: Episodes) -> None:
        """Take in the episodes ``[runs, E]`` of an evaluation after ``t`` steps."""
        self._evaluations.append((t, Episodes(*(np.asarray(field) for field in played))))

    def evaluations(self) -> tuple[np.ndarray, Episodes] | None:
        """The step counts ``[N]`` of the evaluations and their episodes ``[runs, N, E]``, if there were any."""
        if not self._evaluations:
            return None
        times, played = zip(*self._evaluations, strict=True)
        return np.array(times), Episodes(*(np.stack(fields, axis=1) for fields in zip(*played, strict=True)))

    def table(self) -> EpisodeTable:
        """All finished episodes, by run and in their order."""
        if self._ordered is None or len(self._tables) > 1 or self._tables[0] is not self._ordered:
            table = EpisodeTable.join(self._tables)
            order = np.argsort(table.run, kind="stable")
            self._ordered = EpisodeTable(*(column[order] for column in table))
            self._tables = [self._ordered]
        return self._ordered

    def count(self, run: int) -> int:
        """The number of finished episodes of a run."""
        begin, end = np.searchsorted(self.table().run, (run, run + 1))
        return int(end - begin)

    def recent(self, run: int, count: int = 100) -> EpisodeTable:
        """The latest episodes of a run."""
        table = self.table()
        begin, end = np.searchsorted(table.run, (run, run + 1))
        return EpisodeTable(*(column[max(begin, end - count) : end] for column in table))

    def last_report(self) -> dict[str, np.ndarray]:
        """What the agents last reported, by name, each ``[runs]``."""
        if not self._reports:
            return {}
        self._reports[-1] = self._fetched(self._reports[-1])
        return dict(self._reports[-1])

    def curves(self) -> dict[str, np.ndarray]:
        """Learning curves ``[runs, points]`` by name, and ``steps``, the step counts of their points.

        ``return`` is the mean undiscounted return of the episodes that ended since the point before, NaN where none
        did; ``terminations`` is cumulative; metrics of updates are means since the point before; reports of the agent
        are those of the first look at or after the point.
        """
        _, count, falls, reward = self._by_point()
        curves = {"steps": self.grid, "return": ratio(reward, count), "terminations": np.cumsum(falls, axis=1)}
        for name, sums in self._sums.items():
            curves[name] = ratio(sums.T, np.broadcast_to(self._counts, sums.T.shape))
        return curves | self._held()

    def totals(self) -> dict[str, np.ndarray]:
        """Sums and means over the whole training, one per run."""
        table, count, falls, reward = self._by_point()
        episodes = count.sum(axis=1)
        discounted = np.bincount(table.run, table.discounted, self.runs)
        per_run = np.split(table.discounted, np.cumsum(episodes.astype(int))[:-1])
        return {
            "terminations": falls.sum(axis=1),
            "episodes": episodes,
            "return": ratio(reward.sum(axis=1), episodes),
            "discounted": ratio(discounted, episodes),
            "tail": np.array([tail_mean(values, TAIL) if len(values) else np.nan for values in per_run]),
        }

    def _by_point(self) -> tuple[EpisodeTable, np.ndarray, np.ndarray, np.ndarray]:
        """All episodes, and how many there are, how many terminated and their rewards by run and point."""
        table, points = self.table(), len(self.grid)
        place = table.run * points + np.searchsorted(self.grid, table.end)

        def per_point(weights: np.ndarray) -> np.ndarray:
            return np.bincount(place, weights, self.runs * points).reshape(self.runs, points)

        return table, per_point(np.ones(len(place))), per_point(table.terminated.astype(float)), per_point(table.reward)

    def _held(self) -> dict[str, np.ndarray]:
        """Reports as curves: a point has the first report from there on."""
        if not self._reports:
            return {}
        self._reports = [self._fetched(report) for report in self._reports]
        times = np.array(self._report_times)
        look = np.minimum(np.searchsorted(times, self.grid), len(times) - 1)
        names = self._reports[0]
        stacked = {name: np.stack([report[name] for report in self._reports], axis=1) for name in names}
        return {name: values[:, look] for name, values in stacked.items()}

    def _fetched(self, report: Any) -> dict[str, np.ndarray]:
        if isinstance(report, dict):
            return report
        parts = jax.device_get(report)
        names = parts[0] if parts else {}
        return {name: np.concatenate([np.asarray(p[name], np.float64) for p in parts])[: self.runs] for name in names}

    def state(self) -> dict[str, np.ndarray]:
        """All of it as arrays by name, for a checkpoint."""
        self._reports = [self._fetched(report) for report in self._reports]
        names = self._reports[0] if self._reports else {}
        reports = {f"{_REPORT}{name}": np.stack([report[name] for report in self._reports], axis=1) for name in names}
        return {
            **{f"{_TABLE}{name}": column for name, column in self.table()._asdict().items()},
            **{f"{_PARTIAL}{name}": column for name, column in self._counter.state().items()},
            **{f"{_METRIC}{name}": sums for name, sums in self._sums.items()},
            **reports,
            **self._evaluation_state(),
            "counts": self._counts,
            "report_times": np.array(self._report_times, np.int64),
            "elapsed": np.array(self.elapsed),
        }

    def _evaluation_state(self) -> dict[str, np.ndarray]:
        found = self.evaluations()
        if found is None:
            return {}
        return {f"{_EVALUATION}t": found[0]} | {f"{_EVALUATION}{k}": v for k, v in found[1]._asdict().items()}

    def restore(self, t: int, state: Mapping[str, Any]) -> None:
        """Go back to what `state` gave after step ``t``."""
        arrays = {name: np.asarray(values) for name, values in state.items()}  # they may come from a device

        def named(prefix: str) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}

        self._tables = [EpisodeTable(**named(_TABLE))]
        self._counter.restore(t, **named(_PARTIAL))
        # What a shorter training had for its last point belongs to that point, or to a part of it.
        self._sums = {name: self._on_grid(values) for name, values in named(_METRIC).items()}
        self._counts = self._on_grid(arrays["counts"])
        self._report_times = [int(moment) for moment in arrays["report_times"]]
        reports = named(_REPORT)
        self._reports = [
            {name: values[:, i] for name, values in reports.items()} for i in range(len(self._report_times))
        ]
        played = named(_EVALUATION)
        moments = [int(moment) for moment in played.pop("t", ())]
        self._evaluations = [(at, Episodes(**{k: v[:, i] for k, v in played.items()})) for i, at in enumerate(moments)]
        self._begin(float(arrays["elapsed"]))

    def _on_grid(self, values: np.ndarray) -> np.ndarray:
        """Numbers of the first points, with zeros for the others; there are none of steps that were not made."""
        fitting = values[: len(self.grid)]
        return np.pad(fitting, [(0, len(self.grid) - len(fitting)), *[(0, 0)] * (values.ndim - 1)])

    def restore_episodes(self, t: int, tables: Sequence[EpisodeTable], reward: np.ndarray, length: np.ndarray) -> None:
        """Go back to step ``t`` of a run that kept its episodes but no curves; see `sentinel_rl.training.legacy`."""
        self._tables = list(tables)
        self._begin(max((float(table.time[-1]) for table in tables if len(table.time)), default=0.0))
        self._counter.restore(t, reward, np.full(self.runs, np.nan), length)


def ratio(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, NaN where there is nothing to take one of."""
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
