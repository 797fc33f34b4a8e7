"""Configurations as JSON: one text per configuration, its hash, and how two of them differ."""

import dataclasses
import hashlib
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from sentinel_rl.errors import UsageError

ABSENT = "absent"
# Arrays of up to this many numbers are listed in an identity; of larger ones there is a hash.
_LISTED = 64


class Difference(NamedTuple):
    """A value that was saved beside the one that is asked for."""

    what: str
    saved: str
    asked: str


def plain(value: Any, where: str = "value") -> Any:
    """Reduce a value to what JSON knows: tuples, ranges and arrays become lists, NumPy numbers plain ones.

    JSON has no infinity: it becomes the text ``"inf"``, NaN ``"nan"``.

    Raises:
        UsageError: when there is something else in it, with its place.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), where)
    raise UsageError(
        f"{where} is of type {type(value).__name__}, which cannot be saved: "
        "use numbers, texts, None, and lists and dictionaries of them"
    )


def restored(content: Any) -> Any:
    """Undo what `plain` does to tuples and infinity: lists become tuples, the texts ``"inf"`` and ``"-inf"`` numbers.

    >>> restored({"hidden": [32, 32], "lam": "inf"})
    {'hidden': (32, 32), 'lam': inf}
    """
    if isinstance(content, Mapping):
        return {name: restored(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return tuple(restored(value) for value in content)
    return float(content) if content in ("inf", "-inf") else content


def identity(value: Any, where: str = "value") -> Any:
    """What names an object in a file: its class, all its fields, and its ``version`` where it has one.

    A class of this library is named without its module, which may move. A field that is None is left out: a later
    version may add options that are off, and names the same run. Small arrays are listed, large ones hashed. A
    whole number is the same whether it was typed as 4 or as 4.0.

    Raises:
        UsageError: for an object that cannot be named, with its place and what to do.

    >>> from fractions import Fraction
    >>> identity({"hidden": (32, 32), "gamma": 0.99})
    {'hidden': [32, 32], 'gamma': 0.99}
    >>> identity((4, 4.0, np.float32(4)))
    [4, 4, 4]
    >>> identity(Fraction(1, 2), "agent.alpha")
    Traceback (most recent call last):
    sentinel_rl.errors.UsageError: agent.alpha is of type Fraction, which cannot be named in a file: ...
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, (bool, int, float, str, PurePath)):
        return plain(value, where)
    if isinstance(value, Mapping):
        return {str(key): identity(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [identity(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        described = {name: identity(part, f"{where}.{name}") for name, part in fields.items() if part is not None}
        version = getattr(value, "version", None)
        named = {} if "version" in fields or not isinstance(version, (int, str)) else {"version": version}
        return {"class": class_name(type(value), where), **named, **described}
    if isinstance(value, type) or inspect.isroutine(value):
        return {"function": class_name(value, where)}
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        if value.size <= _LISTED:
            return identity(value.tolist(), where)
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": f"{value.dtype}{list(value.shape)}", "sha256": content}
    raise UsageError(
        f"{where} is of type {type(value).__name__}, which cannot be named in a file: use numbers, texts, arrays, "
        "dataclasses or equinox modules, or give no folder"
    )


def class_name(named: Any, where: str) -> str:
    """The name of a class or function by which its objects are known.

    Raises:
        UsageError: for one that is defined inside a function, and so has no name of its own.
    """
    module, name = named.__module__, named.__qualname__
    if "<" in name:
        raise UsageError(
            f"{where} is {name!r}, which cannot be named in a file: define it at the top of a module, or give no folder"
        )
    return f"{module.partition('.')[0] if module.startswith('sentinel_rl.') else module}.{name}"


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces.

    >>> canonical({"k": 4, "alpha": 0.25, "lam": float("inf"), "seeds": range(3)})
    '{"alpha":0.25,"k":4,"lam":"inf","seeds":[0,1,2]}'
    """
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """A short hash of a value: equal configurations have equal ones, in every process and on every machine.

    >>> digest({"k": 4, "seeds": (0, 1)}) == digest({"seeds": [0, 1], "k": 4})
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def differences(saved: Any, asked: Any, what: str = "") -> list[Difference]:
    """Where two values differ, down to the keys of their dictionaries.

    >>> differences({"k": 4, "env": {"id": "Toy"}}, {"k": 8, "env": {"id": "Toy"}})
    [Difference(what='k', saved='4', asked='8')]
    """
    saved, asked = plain(saved), plain(asked)
    if canonical(saved) == canonical(asked):
        return []
    if not (isinstance(saved, dict) and isinstance(asked, dict)):
        return [Difference(what or "value", canonical(saved), canonical(asked))]
    rows: list[Difference] = []
    for key in sorted({*saved, *asked}):
        name = f"{what}.{key}" if what else key
        if key not in saved or key not in asked:
            sides = (canonical(side[key]) if key in side else ABSENT for side in (saved, asked))
            rows.append(Difference(name, *sides))
        else:
            rows += differences(saved[key], asked[key], name)
    return rows


def table(rows: Sequence[Difference], longest: int = 12, widest: int = 48) -> str:
    """A small table of differences, for a message.

    >>> print(table([Difference("k", "4", "8"), Difference("env.id", '"Toy"', '"CartPole-v1"')]))
              saved  asked
      k       4      8
      env.id  "Toy"  "CartPole-v1"
    """
    cells = [Difference("", "saved", "asked"), *rows[:longest]]
    cut = [[cell if len(cell) <= widest else f"{cell[: widest - 3]}..." for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in cut) for column in range(2)]
    lines = [f"  {what:<{widths[0]}}  {saved:<{widths[1]}}  {asked}" for what, saved, asked in cut]
    if len(rows) > longest:
        lines.append(f"  ... and {len(rows) - longest} more")
    return "\n".join(lines)
