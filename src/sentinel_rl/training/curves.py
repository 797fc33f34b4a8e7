"""Curves and sums of a training, from the steps of its chunks: all runs at once, no loop over episodes."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from sentinel_rl.training.loop import Chunk
from sentinel_rl.training.tail import tail_mean

TAIL = 0.25


def curve_steps(steps: int, points: int) -> np.ndarray:
    """The step counts at which curves are given: evenly spread, the last one last.

    >>> curve_steps(1_000, 4)
    array([ 250,  500,  750, 1000])
    """
    return np.unique(-(-np.arange(1, points + 1, dtype=np.int64) * steps // points))  # rounded up


@dataclasses.dataclass(frozen=True)
class Finished:
    """Finished episodes of all runs, flat.

    Args:
        run: whose.
        end: the step count after the last step.
        terminated: whether by a fall, a crash or the like.
        reward: undiscounted return.
        discounted: return.
    """

    run: np.ndarray
    end: np.ndarray
    terminated: np.ndarray
    reward: np.ndarray
    discounted: np.ndarray


class EpisodeCounter:
    """Cuts the steps of runs side by side into episodes, as they come.

    Args:
        runs: how many.
        gamma: discount of the returns.
    """

    def __init__(self, runs: int, gamma: float):
        self._gamma, self._t = gamma, 0
        # Of the episodes under way: sums and length.
        self._reward, self._discounted = np.zeros(runs), np.zeros(runs)
        self._length = np.zeros(runs, np.int64)
        self._finished: list[Finished] = []

    def extend(self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Take in the next steps, ``[runs, steps]``."""
        steps = reward.shape[1]
        ended = terminated | truncated
        run, last = np.nonzero(ended)
        # Steps since the last end, per run: a running maximum of the places of the ends.
        place = np.arange(steps)
        after_end = np.where(ended, place[None] + 1, 0)
        start = np.maximum.accumulate(np.pad(after_end, ((0, 0), (1, 0)))[:, :-1], axis=1)
        position = place[None] - start + np.where(start == 0, self._length[:, None], 0)
        discounted = reward * self._powers(int(position.max()))[position]
        plain_sums, discounted_sums = (
            np.pad(np.cumsum(values, axis=1, dtype=np.float64), ((0, 0), (1, 0))) for values in (reward, discounted)
        )
        begin, end = (run, start[run, last]), (run, last + 1)
        first = start[run, last] == 0
        self._finished.append(
            Finished(
                run,
                self._t + last + 1,
                terminated[run, last],
                plain_sums[end] - plain_sums[begin] + np.where(first, self._reward[run], 0.0),
                discounted_sums[end] - discounted_sums[begin] + np.where(first, self._discounted[run], 0.0),
            )
        )
        self._carry(np.maximum(start[:, -1], after_end[:, -1]), steps, plain_sums, discounted_sums)
        self._t += steps

    def _carry(self, start: np.ndarray, steps: int, plain_sums: np.ndarray, discounted_sums: np.ndarray) -> None:
        """Keep what belongs to the episodes that go on."""
        rows, whole = np.arange(len(start)), start == 0
        for sums, name in ((plain_sums, "_reward"), (discounted_sums, "_discounted")):
            rest = sums[:, -1] - sums[rows, start]
            setattr(self, name, rest + np.where(whole, getattr(self, name), 0.0))
        self._length = steps - start + np.where(whole, self._length, 0)

    def _powers(self, longest: int) -> np.ndarray:
        return np.power(self._gamma, np.arange(longest + 1))

    def finished(self) -> Finished:
        """The episodes that have ended, by run and in their order."""
        fields = [field.name for field in dataclasses.fields(Finished)]
        joined = {name: np.concatenate([getattr(part, name) for part in self._finished]) for name in fields}
        order = np.argsort(joined["run"], kind="stable")
        return Finished(**{name: values[order] for name, values in joined.items()})


class Curves:
    """What a training is remembered by.

    Args:
        runs: how many.
        steps: of each.
        points: of the curves.
        gamma: discount of the returns.
    """

    def __init__(self, runs: int, steps: int, points: int, gamma: float):
        self._runs, self._grid = runs, curve_steps(steps, points)
        self._episodes = EpisodeCounter(runs, gamma)
        self._metrics: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}

    def extend(self, chunk: Chunk, metrics: Mapping[str, np.ndarray]) -> None:
        """Take in a chunk of steps and the metrics of its updates, ``[runs, stretches]``."""
        self._episodes.extend(chunk.reward, chunk.terminated, chunk.truncated)
        for name, values in metrics.items():
            self._metrics.setdefault(name, []).append((chunk.ends, np.asarray(values, np.float64)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a record that training makes."""
        metrics = {f"metric/{name}": self._mean_metric(parts) for name, parts in self._metrics.items()}
        return {"steps": self._grid, **self._episode_arrays(), **metrics}

    def held(self, t: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Looks ``[runs, looks]`` at the step counts `t` as a curve: a point has the first look from there on."""
        look = np.minimum(np.searchsorted(t, self._grid), len(t) - 1)
        return np.asarray(values, np.float64)[:, look]

    def _episode_arrays(self) -> dict[str, np.ndarray]:
        done, points = self._episodes.finished(), len(self._grid)
        cell = done.run * points + np.searchsorted(self._grid, done.end)

        def per_point(weights: np.ndarray) -> np.ndarray:
            return np.bincount(cell, weights, self._runs * points).reshape(self._runs, points)

        count, falls = per_point(np.ones(len(cell))), per_point(done.terminated.astype(float))
        per_run = np.split(done.discounted, np.cumsum(count.sum(axis=1).astype(int))[:-1])
        return {
            "terminations": falls.sum(axis=1),
            "episodes": count.sum(axis=1),
            "terminations_curve": np.cumsum(falls, axis=1),
            "return_curve": _ratio(per_point(done.reward), count),
            "train_return_mean": _ratio(per_point(done.reward).sum(axis=1), count.sum(axis=1)),
            "train_discounted_mean": _ratio(per_point(done.discounted).sum(axis=1), count.sum(axis=1)),
            "train_discounted_tail": np.array(
                [tail_mean(values, TAIL) if len(values) else np.nan for values in per_run]
            ),
        }

    def _mean_metric(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The mean over the updates of every stretch; an update that is not due is NaN and does not count."""
        ends, values = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts], axis=1)
        due = ~np.isnan(values).all(axis=0)
        point = np.searchsorted(self._grid, ends[due])
        sums = np.zeros((len(self._grid), self._runs))
        np.add.at(sums, point, values[:, due].T)
        return _ratio(sums.T, np.broadcast_to(np.bincount(point, minlength=len(self._grid)), sums.T.shape))


def _ratio(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, NaN where there is nothing to take one of."""
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
