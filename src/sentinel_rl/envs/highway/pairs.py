"""Compare every vehicle with every other, without a matrix of pairs.

One vehicle after the other is held against all, and the result so far is kept, all of it elementwise: a single pass
in registers, where a matrix would be written to memory and read again.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

_Found = TypeVar("_Found")
_Many = TypeVar("_Many")

# Up to here the vehicles are unrolled; beyond, compiling would take longer than it saves.
_UNROLLED = 24
_BLOCK = 8


def row_numbers(like: Array) -> Int[Array, "V ..."]:
    """The number of each vehicle, along the leading axis."""
    return jnp.arange(like.shape[0]).reshape(-1, *(1,) * (like.ndim - 1))


def fold(compare: Callable[[Any, _Many, _Found], _Found], all_: _Many, found: _Found, start: int, stop: int) -> _Found:
    """Hold the vehicles ``start, ..., stop - 1`` against all, one after the other.

    Args:
        compare: takes the number of a vehicle, its rows of `all_` with a leading axis of 1, and what was found so far.
        all_: arrays ``[vehicles, *batch]``.
        found: to begin with.
        start: the first vehicle.
        stop: the vehicle after the last.
    """
    if stop - start <= _UNROLLED:
        for j in range(start, stop):
            found = compare(j, jax.tree.map(lambda leaf, j=j: leaf[j : j + 1], all_), found)
        return found

    def body(j: Array, found: _Found) -> _Found:
        return compare(j, jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, j, 1), all_), found)

    result: _Found = jax.lax.fori_loop(start, stop, body, found, unroll=_BLOCK)
    return result
