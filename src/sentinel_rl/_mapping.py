"""Functions of one mapped over many."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def each_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Map a function over the first axis of all its arguments; an axis of length 1 is taken off instead.

    One alone is computed without a batch. Matrix products with axes of length 1 are slow on a GPU as well: XLA computes
    their gradients transposed, and every step of the optimiser transposes them back.

    Example:
        >>> mapped = each_of(lambda x, y: x + y)
        >>> print(mapped(jnp.ones(1), jnp.ones(1)), mapped(jnp.ones(2), jnp.arange(2.0)))
        [2.] [1. 2.]
    """

    def mapped(*args: Any) -> Any:
        if jax.tree.leaves(args)[0].shape[0] == 1:
            alone = function(*jax.tree.map(lambda leaf: jnp.squeeze(leaf, 0), args))
            return jax.tree.map(lambda leaf: leaf[None], alone)
        return jax.vmap(function)(*args)

    return mapped
