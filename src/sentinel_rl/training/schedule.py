"""When things happen: functions of the one clock that all runs share."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.errors import UsageError


@runtime_checkable
class Schedule(Protocol):
    """The steps after which an agent learns."""

    @property
    def period(self) -> int | None:
        """Steps between two updates where that number never changes, else None."""
        ...

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

    @property
    def period(self) -> None:
        """The updates become rarer and rarer."""
        return None

    def times(self, steps: int) -> np.ndarray:
        """``n (n + 1) / 2`` for n = 1, 2, ..."""
        count = int((np.sqrt(8 * steps + 1) - 1) / 2) + 1
        numbers = np.arange(1, count + 1)
        numbers = numbers * (numbers + 1) // 2
        return numbers[numbers <= steps]


class Exploration(NamedTuple):
    """The decline of epsilon as numbers, which compiled programs take as arguments: other numbers, the same program.

    Args:
        warmup: the step from which epsilon declines.
        rate: share of the decline that a step brings.
        start: epsilon before the decline.
        change: epsilon after the decline, minus `start`.
        before: transitions that the agents took in before step 0, in trainings that went before this one.
    """

    warmup: Int[Array, ""] | np.int32
    rate: Float[Array, ""] | np.float32
    start: Float[Array, ""] | np.float32
    change: Float[Array, ""] | np.float32
    before: Int[Array, ""] | np.int32 = np.int32(0)

    def epsilon(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration at step ``t``, counted from 0."""
        progress = jnp.clip((t - self.warmup).astype(jnp.float32) * self.rate, 0.0, 1.0)
        return self.start + self.change * progress


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
        horizon: steps that the schedules are planned for, where a training is extended beyond them; `steps` when None.
        before: transitions that the agents took in before step 0, where a training follows another; 0 when None.
    """

    steps: int = 100_000
    learn: Schedule = Every(100)
    warmup: int = 100
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_fraction: float = 0.25
    horizon: int | None = None
    before: int | None = None

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

    @property
    def planned_updates(self) -> int:
        """The number of updates that the schedules are planned for."""
        horizon = self.steps if self.horizon is None else self.horizon
        return int(np.count_nonzero(self.learn_times <= horizon))

    @property
    def exploration(self) -> Exploration:
        """The decline of epsilon."""
        horizon = self.steps if self.horizon is None else self.horizon
        span = max(self.epsilon_fraction * (horizon - self.warmup), 1.0)
        return Exploration(
            np.int32(self.warmup),
            np.float32(1) / np.float32(span),  # XLA turns a division by a constant into this product too
            np.float32(self.epsilon_start),
            np.float32(self.epsilon_end - self.epsilon_start),
            np.int32(self.before or 0),
        )

    def epsilon(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration at step ``t``, counted from 0."""
        return self.exploration.epsilon(t)


PLAN_OPTIONS = ("learn_every", "warmup", "epsilon_start", "epsilon_end", "epsilon_fraction")


def make_plan(steps: int, defaults: Mapping[str, Any], options: Mapping[str, Any], horizon: int | None = None) -> Plan:
    """Make a plan from the options that belong to it; `defaults` are those of ``agent.plan_defaults(steps)``.

    With a `horizon` below the steps, a training is extended: the schedules and the defaults are those of the horizon.

    Example:
        >>> make_plan(1_000, {"warmup": 100}, {"learn_every": "triangular", "k": 4}).learn_times[:3]
        array([105, 120, 136])
    """
    chosen = {**defaults, **{name: options[name] for name in PLAN_OPTIONS if name in options}}
    every = chosen.pop("learn_every", 100)
    if every != "triangular" and not isinstance(every, (int, np.integer)):
        raise UsageError(f"learn_every is a number of steps or 'triangular', got {every!r}")
    try:
        return Plan(steps, Triangular() if every == "triangular" else Every(every), **chosen, horizon=horizon)
    except ValueError as error:
        raise UsageError(str(error)) from error
