"""Checks of what was read from a file: types, ranges and sizes. Nothing in a file is believed.

The checks raise `ValueError` with the name, what is allowed and what was found; `from_file` makes a `CorruptError` of
that and of whatever else a forged entry provokes.
"""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sentinel_rl.errors import CorruptError

LONGEST_TEXT, LONGEST_NAME, MOST_NAMES = 2000, 100, 1000
# What no axis of an array here has: a forged file cannot ask for more.
LARGEST_AXIS = 1_000_000_000
# Seeds and counters.
LARGEST_WHOLE = 2**63 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@contextmanager
def from_file(where: str, what: str = "file") -> Iterator[None]:
    """Raise `CorruptError` for anything that an entry of a file provokes in the block."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise CorruptError(f"{where} is no {what} of sentinel-rl, or was edited: {error}") from error


def require(holds: bool, name: str, got: object, allowed: str) -> None:
    """Raise `ValueError` unless something holds."""
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {str(got)[:80]!r}")


def is_text(value: object, longest: int) -> bool:
    """Whether a value is a text of printable characters."""
    return isinstance(value, str) and len(value) <= longest and not _CONTROL.search(value)


def text(name: str, value: object, longest: int = LONGEST_TEXT) -> None:
    """Require a text of printable characters."""
    require(is_text(value, longest), name, value, f"a text of at most {longest} printable characters")


def names(name: str, values: object, at_least: int = 0) -> None:
    """Require a list of short texts."""
    fine = isinstance(values, list | tuple) and at_least <= len(values) <= MOST_NAMES
    fine = fine and all(is_text(value, LONGEST_NAME) for value in values)  # type: ignore[attr-defined]
    require(fine, name, values, f"a list of at least {at_least} short names")


def whole(name: str, value: object, low: int = 0, high: int = LARGEST_WHOLE) -> None:
    """Require a whole number in a range."""
    fine = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    require(fine, name, value, f"a whole number from {low} to {high}")


def number(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> None:
    """Require a finite number in a range."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    require(fine and low <= value <= high, name, value, f"a number from {low:g} to {high:g}")  # type: ignore[operator]


def sizes(name: str, values: object, low: int = 0) -> None:
    """Require the shape of an array."""
    require(isinstance(values, list | tuple), name, values, "a list of whole numbers")
    for size in values:  # type: ignore[attr-defined]
        whole(name, size, low, LARGEST_AXIS)


def entries(name: str, value: object, known: Mapping[str, Any] | set[str]) -> None:
    """Require a dictionary that has no other keys than these."""
    require(isinstance(value, dict), name, value, "a dictionary")
    unknown = sorted(set(value) - set(known))  # type: ignore[call-overload]
    require(not unknown, name, ", ".join(map(str, unknown[:5])), "a dictionary of known entries")
