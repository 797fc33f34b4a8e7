"""When things happen: functions of the one clock that all runs share."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl._checks import is_number, is_whole, shown
from sentinel_rl.errors import UsageError

# Steps are counted in 32 bits on the device.
LARGEST_STEP = 2**31 - 2
LONGEST_BOUT = 65_536


@runtime_checkable
class Schedule(Protocol):
    """The steps after which an agent learns."""

    @property
    def period(self) -> int | None:
        """Steps between two updates where that number never changes, else None."""
        ...

    def count(self, steps: int) -> int:
        """The number of updates in the first `steps`."""
        ...

    def time(self, number: Any) -> Any:
        """The step count of an update, counted from 1, or of an array of them; 0 is the beginning."""
        ...

    def times(self, steps: int, begin: int = 0) -> np.ndarray:
        """The ascending step counts after `begin`, up to `steps`."""
        times: np.ndarray = self.time(np.arange(self.count(begin) + 1, self.count(steps) + 1))
        return times


@dataclasses.dataclass(frozen=True)
class Every(Schedule):
    """Learn after every ``period`` steps (CartPole: 100)."""

    period: int = 100

    def __post_init__(self) -> None:
        if not is_whole(self.period, 1, LARGEST_STEP):
            raise ValueError(f"Every needs a period of at least 1 step and at most {LARGEST_STEP}, got {self.period}")

    def count(self, steps: int) -> int:
        """Whole periods."""
        return steps // self.period

    def time(self, number: Any) -> Any:
        """``period, 2 period, ...``."""
        return number * self.period


@dataclasses.dataclass(frozen=True)
class Triangular(Schedule):
    """Learn at the triangular numbers 1, 3, 6, 10, ... (highway)."""

    @property
    def period(self) -> None:
        """The updates become rarer and rarer."""
        return None

    def count(self, steps: int) -> int:
        """The largest n with ``n (n + 1) / 2 <= steps``."""
        return (math.isqrt(8 * steps + 1) - 1) // 2

    def time(self, number: Any) -> Any:
        """``n (n + 1) / 2`` for n = 1, 2, ..."""
        return number * (number + 1) // 2


class Exploration(NamedTuple):
    """The decline of epsilon as numbers, which compiled programs take as arguments: other numbers, the same program.

    Args:
        warmup: the step from which epsilon declines.
        rate: share of the decline that a step brings.
        start: epsilon before the decline.
        change: epsilon after the decline, minus `start`.
        before: transitions that the agents took in before step 0, in trainings that went before this one.
        bout: the length of the longest bouts, a power of two; None where every step explores by itself.
    """

    warmup: Int[Array, ""] | np.int32
    rate: Float[Array, ""] | np.float32
    start: Float[Array, ""] | np.float32
    change: Float[Array, ""] | np.float32
    before: Int[Array, ""] | np.int32 = np.int32(0)
    bout: Int[Array, ""] | np.int32 | None = None

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
        longest_bout: steps for which an exploring action is repeated, at most, see `sentinel_rl.training.fused`; every
            step explores by itself when None.
    """

    steps: int = 100_000
    learn: Schedule = Every(100)
    warmup: int = 100
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_fraction: float = 0.25
    horizon: int | None = None
    before: int | None = None
    longest_bout: int | None = None

    def __post_init__(self) -> None:
        require_steps(self.steps)
        if self.longest_bout is not None and not is_whole(self.longest_bout, 1, LONGEST_BOUT):
            told = f"longest_bout must be a whole number of steps from 1 to {LONGEST_BOUT}, or None"
            raise ValueError(f"{told}, got {shown(self.longest_bout)}")
        if not is_whole(self.warmup, 0, LARGEST_STEP):
            raise ValueError(
                f"warmup must be a whole number of steps from 0 to {LARGEST_STEP}, got {shown(self.warmup)}"
            )
        for name in ("epsilon_start", "epsilon_end", "epsilon_fraction"):
            if not is_number(getattr(self, name), 0, 1):
                raise ValueError(f"{name} must be a number in [0, 1], got {shown(getattr(self, name))}")

    @property
    def learn_times(self) -> np.ndarray:
        """The step counts after which an update is made, as long a list as there are updates; `updates` counts them."""
        return self.learn.times(self.steps, min(self.warmup, self.steps))

    def updates(self, t: int) -> int:
        """The number of updates that are made in the first ``t`` steps.

        Example:
            >>> plan = Plan(steps=10**9, learn=Every(2), warmup=100)
            >>> plan.updates(100), plan.updates(102), plan.updates(plan.steps)
            (0, 1, 499999950)
        """
        return max(0, self.learn.count(min(t, self.steps)) - self.learn.count(self.warmup))

    @property
    def planned_updates(self) -> int:
        """The number of updates that the schedules are planned for."""
        return self.updates(self.steps if self.horizon is None else self.horizon)

    @property
    def exploration(self) -> Exploration:
        """The decline of epsilon."""
        horizon = self.steps if self.horizon is None else self.horizon
        span = max(self.epsilon_fraction * (horizon - self.warmup), 1.0)
        longest = int(self.longest_bout or 1)
        return Exploration(
            np.int32(self.warmup),
            np.float32(1) / np.float32(span),  # XLA turns a division by a constant into this product too
            np.float32(self.epsilon_start),
            np.float32(self.epsilon_end - self.epsilon_start),
            np.int32(self.before or 0),
            None if longest == 1 else np.int32(1 << (longest.bit_length() - 1)),
        )

    def epsilon(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration at step ``t``, counted from 0."""
        return self.exploration.epsilon(t)


# JAX keeps 32 bits of a seed: a larger one would be the same run as a small one.
LARGEST_SEED = 2**32 - 1
MOST_SEEDS = 100_000


def require_steps(steps: object) -> int:
    """Return a number of steps.

    Raises:
        UsageError: for what is no whole number in the range of the clock.
    """
    if not is_whole(steps, 1, LARGEST_STEP):
        told = f"a run needs at least 1 step and at most {LARGEST_STEP}, a whole number"
        raise UsageError(f"{told}, got steps={str(steps)[:80]}")
    return int(steps)  # type: ignore[call-overload, no-any-return]


def require_seed(seed: object) -> int:
    """Return a seed as a plain number.

    Raises:
        UsageError: for what is no whole number in the range of seeds.
    """
    if not is_whole(seed, 0, LARGEST_SEED):
        raise UsageError(f"a seed must be a whole number from 0 to {LARGEST_SEED}, got {shown(seed)}")
    return int(seed)  # type: ignore[call-overload, no-any-return]


def require_seeds(seeds: object) -> list[int]:
    """The seeds of runs side by side, each once; a number n stands for 0 to n - 1.

    Raises:
        UsageError: for none, too many, the same twice, or what is no seed.
    """
    told = f"training needs seeds of at least 0, each once, at most {MOST_SEEDS} of them"
    if is_whole(seeds, 1, MOST_SEEDS):
        return list(range(int(seeds)))  # type: ignore[call-overload]
    if (
        isinstance(seeds, bool | int | float | str | bytes)
        or not isinstance(seeds, Iterable)
        or getattr(seeds, "ndim", 1) != 1
    ):
        raise UsageError(f"{told}, got {shown(seeds)}: give how many, or a list")
    listed = [require_seed(seed) for seed in islice(seeds, MOST_SEEDS + 1)]
    if not listed or len(listed) > MOST_SEEDS or len(set(listed)) < len(listed):
        raise UsageError(f"{told}, got {len(listed) or 'none'}: {str(listed)[:80]}")
    return listed


PLAN_OPTIONS = ("learn_every", "warmup", "epsilon_start", "epsilon_end", "epsilon_fraction", "longest_bout")


def make_plan(steps: int, defaults: Mapping[str, Any], options: Mapping[str, Any], horizon: int | None = None) -> Plan:
    """Make a plan from the options that belong to it; `defaults` are those of ``agent.plan_defaults(steps)``.

    With a `horizon` below the steps, a training is extended: the schedules and the defaults are those of the horizon.

    Example:
        >>> make_plan(1_000, {"warmup": 100}, {"learn_every": "triangular", "k": 4}).learn_times[:3]
        array([105, 120, 136])
    """
    chosen = {**defaults, **{name: options[name] for name in PLAN_OPTIONS if name in options}}
    every = chosen.pop("learn_every", 100)
    triangular = isinstance(every, str) and every == "triangular"
    if not triangular and not is_whole(every, 1, LARGEST_STEP):
        raise UsageError(f"learn_every is a number of steps of at least 1, or 'triangular', got {shown(every)}")
    try:
        return Plan(steps, Triangular() if triangular else Every(every), **chosen, horizon=horizon)
    except ValueError as error:
        raise UsageError(str(error)) from error
