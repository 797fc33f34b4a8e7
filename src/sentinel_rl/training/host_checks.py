"""What a Gymnasium environment returned, checked: one that misbehaves is named, with the place and what to do.

Environments are other people's code. A reward of text, four values in place of five or an observation of another shape
would end in an error far from its cause, or in none at all.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sentinel_rl._checks import shown
from sentinel_rl.envs.observations import Observations
from sentinel_rl.errors import NumericalError, SentinelError, UsageError

_KEPT = "fix the environment; the last checkpoint is kept, and the same command resumes from it"


@contextmanager
def steps_of(
    name: str, doing: str, where: str, culprit: Callable[[Exception], str] = lambda error: ""
) -> Iterator[None]:
    """Turn what an environment raises into an error with its name and the place.

    Args:
        name: of the environment.
        doing: ``"reset"`` or ``"step"``.
        where: step, episode and seed.
        culprit: tells which copy of a vector raised, where that is known.
    """
    try:
        yield
    except SentinelError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {shown(str(error), 300)}"
        raise UsageError(f"{name} raised {what} in {doing}() ({culprit(error)}{where}): {_KEPT}") from error


def reset_of(returned: Any, name: str, where: str) -> Any:
    """The observation that `reset` returned.

    Raises:
        UsageError: for anything but an observation and a dictionary.
    """
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], Mapping):
        raise UsageError(
            f"reset() of {name} must return an observation and a dictionary, got {_described(returned)} ({where}): an "
            "environment of the old gym needs shimmy's GymV26Environment or GymV21Environment around it"
        )
    return returned[0]


def step_of(returned: Any, name: str, where: str) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
    """The five values that `step` returned.

    Raises:
        UsageError: for another number of them.
    """
    if not isinstance(returned, tuple) or len(returned) != 5 or not isinstance(returned[4], Mapping):
        raise UsageError(
            f"step() of {name} must return observation, reward, terminated, truncated and a dictionary, got "
            f"{_described(returned)} ({where}): an environment of the old gym, with one `done`, needs shimmy's "
            "GymV21Environment around it"
        )
    return returned


def rows_of(
    observations: Observations, values: Any, count: int | None, what: str, where: str
) -> Float[np.ndarray, "n obs"]:
    """Observations as rows of finite numbers.

    Args:
        observations: of the environment.
        values: one observation where `count` is None, else a batch of so many.
        count: of the batch.
        what: for messages, ``"observation of CartPole-v1"``.
        where: step, episode and seed.

    Raises:
        UsageError: for another shape, or something without numbers.
        NumericalError: for a number that is not finite.
    """
    try:
        found = observations.row(values)[None] if count is None else observations.rows(values, count)
    except (TypeError, ValueError, LookupError, AttributeError, AssertionError) as error:
        raise UsageError(
            f"{what} is {_described(values)} ({where}), which is not in {observations.space}: {_KEPT}"
        ) from error
    if found.shape[1] != observations.size:
        raise UsageError(
            f"{what} has the shape {np.shape(values)} ({where}), and {observations.shape} was announced: {_KEPT}"
        )
    return finite_rows(found, len(found), what, where)


def rewards_of(values: Any, count: int, name: str, where: str) -> Float[np.ndarray, " n"]:
    """One finite reward for each environment.

    Raises:
        UsageError: for text, None, or another number of them.
        NumericalError: for a number that is not finite.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "biuf" or given.size != count:
        wanted = "one number" if count == 1 else f"{count} numbers"
        raise UsageError(f"the reward of {name} must be {wanted}, got {_described(values)} ({where}): {_KEPT}")
    with np.errstate(over="ignore"):  # told below
        return finite_rows(given.reshape(count, 1), count, f"reward of {name}", where)[:, 0]


def ends_of(values: Any, count: int, which: str, name: str, where: str) -> Bool[np.ndarray, " n"]:
    """Whether the episode of each environment ended.

    Raises:
        UsageError: for anything but true and false.
    """
    if isinstance(values, bool | np.bool_):
        return np.array([values], bool)
    given = np.asarray(values)
    truth = given.dtype.kind == "b" or (given.dtype.kind in "iu" and np.isin(given, (0, 1)).all())
    if not truth or given.size != count:
        wanted = "true or false" if count == 1 else f"{count} times true or false"
        raise UsageError(f"{which} of {name} must be {wanted}, got {_described(values)} ({where}): {_KEPT}")
    return np.array(given.reshape(count), bool)


def finite_rows(values: Any, count: int, what: str, where: str) -> Float[np.ndarray, "n size"]:
    """Flatten to rows of float32, and stop on what is not finite before it enters the replay."""
    rows = np.asarray(values, dtype=np.float32).reshape(count, -1)
    if not np.isfinite(rows).all():
        run, place = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        which = f"environment {run}, " if count > 1 else ""
        raise NumericalError(
            f"{what} holds {rows[run, place]} at index {place} ({which}{where}): "
            f"fix the environment; the last checkpoint is kept"
        )
    return rows


def copy_of(vector: Any, observations: Observations) -> Callable[[Exception], str]:
    """Tell which copy of a vector raised an error, or shows something that does not fit.

    Gymnasium's own vectors step their copies one by one, and the traceback knows the one that was stepped.
    """

    def culprit(error: Exception) -> str:
        copies = getattr(vector.unwrapped, "envs", None)
        if copies is None:
            return f"one of {vector.num_envs} environments, "
        trace = error.__traceback__
        while trace is not None:
            owner = trace.tb_frame.f_locals.get("self")
            for number, copy in enumerate(copies):
                if owner is copy:
                    return f"environment {number}, "
            trace = trace.tb_next
        for number, shown_last in enumerate(getattr(vector.unwrapped, "_env_obs", ())):
            if shown_last is not None and not observations.space.contains(shown_last):
                return f"environment {number} shows {_described(shown_last)}, "
        return f"one of {vector.num_envs} environments, "

    return culprit


def _described(value: Any) -> str:
    """A value of any kind in a few words."""
    if isinstance(value, tuple):
        return f"{len(value)} values"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"{type(value).__name__} {shown(value, 40)}"
