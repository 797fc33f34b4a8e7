"""When things happen: functions of the one clock that all runs share."""

import dataclasses
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


@runtime_checkable
class Schedule(Protocol):
    """The steps after which an agent learns."""

    def times(self, steps: int) -> np.ndarray:
        """Return the ascending step counts in [1, steps]."""
        ...


@dataclasses.dataclass(frozen=True)
class Every:
    """Learn after every ``period`` steps (CartPole: 100)."""

    period: int = 100

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ValueError(f"Every needs a period of at least 1 step, got {self.period}")

    def times(self, steps: int) -> np.ndarray:
        """``period, 2 period, ...``."""
        return np.arange(self.period, steps + 1, self.period)


@dataclasses.dataclass(frozen=True)
class Triangular:
    """Learn at the triangular numbers 1, 3, 6, 10, ... (highway)."""

    def times(self, steps: int) -> np.ndarray:
        """``n (n + 1) / 2`` for n = 1, 2, ..."""
        count = int((np.sqrt(8 * steps + 1) - 1) / 2) + 1
        numbers = np.arange(1, count + 1)
        numbers = numbers * (numbers + 1) // 2
        return numbers[numbers <= steps]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The course of a run.

    Args:
        steps: environment steps in all.
        learn: when to learn.
        warmup: no update while ``t <= warmup``.
        epsilon_start: exploration before and during the warm-up.
        epsilon_end: exploration after the decline.
        epsilon_fraction: share of the steps after the warm-up over which epsilon declines linearly.
    """

    steps: int = 100_000
    learn: Schedule = Every(100)
    warmup: int = 100
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_fraction: float = 0.25

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"a run needs at least 1 step, got steps={self.steps}")
        for name in ("epsilon_start", "epsilon_end", "epsilon_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")

    @property
    def learn_times(self) -> np.ndarray:
        """The step counts after which an update is made."""
        times = self.learn.times(self.steps)
        return times[times > self.warmup]

    def epsilon(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration at step ``t``, counted from 0."""
        span = max(self.epsilon_fraction * (self.steps - self.warmup), 1.0)
        progress = jnp.clip((t - self.warmup) / span, 0.0, 1.0)
        return self.epsilon_start + (self.epsilon_end - self.epsilon_start) * progress


@dataclasses.dataclass(frozen=True)
class Segments:
    """Stretches of steps, each followed by an update or not: ``begin <= t < end``, then update number ``update``.

    ``length`` is set when all stretches are equally long: a loop of known length needs no question to the host.
    """

    begin: np.ndarray | Array
    end: np.ndarray | Array
    update: np.ndarray | Array
    length: int | None

    def __len__(self) -> int:
        """The number of stretches."""
        return len(self.begin)

    def __getitem__(self, part: slice) -> "Segments":
        """A part of the stretches."""
        return Segments(self.begin[part], self.end[part], self.update[part], self.length)


def segments(plan: Plan, begin: int, longest: int = 2_000) -> Segments:
    """Cut the steps of a plan from ``begin`` on at its updates, and where a stretch would be too long.

    An ``update`` of 0 means that none follows.
    """
    times = plan.learn_times
    cuts = np.union1d(plan.learn.times(plan.steps), np.arange(0, plan.steps, longest))
    cuts = np.union1d(cuts[cuts > begin], [plan.steps])
    starts = np.concatenate([[begin], cuts[:-1]])
    update = np.where(np.isin(cuts, times), np.searchsorted(times, cuts, side="right"), 0)
    lengths = cuts - starts
    even = int(lengths[0]) if np.all(lengths == lengths[0]) else None
    return Segments(starts.astype(np.int32), cuts.astype(np.int32), update.astype(np.int32), even)
