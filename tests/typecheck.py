"""The run-time type checker of the tests: every annotation of the library, shapes included, on every call."""

from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

# An int is a float, as for every static checker. `Self` cannot be checked from within a method, so it is let through.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Self: Any})))
