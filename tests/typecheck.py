"""The run-time type checker of the tests: every annotation of the library, shapes included, on every call."""

from collections.abc import Sequence
from typing import Any, Self, get_args, get_origin

from beartype import BeartypeConf, FrozenDict, beartype
from numpy.typing import ArrayLike

# `Self` cannot be checked from within a method. NumPy's nested sequences ask for `__reversed__`, which a tuple lacks.
_nested = [hint for hint in get_args(ArrayLike) if getattr(get_origin(hint), "__name__", "") == "_NestedSequence"]
_overrides: dict[Any, Any] = {Self: Any, **dict.fromkeys(_nested, Sequence[Any])}

# An int is a float, as for every static checker.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict(_overrides)))
