"""NumPy users keep their float64, whatever JAX's default precision is."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Computed in float32.
_NARROW = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(jnp.bfloat16))


def in_own_precision(function: Callable[..., jax.Array], *arrays: Any, parameters: object = None) -> Any:
    """Call a JAX function on array-likes (or None) in the precision of the arrays.

    With any JAX array among them, or a traced one among the parameters (a tree), the call is plain. NumPy arrays,
    lists and the like are computed in float64 unless all of them are float32 or of half precision, and the result is
    NumPy's.
    """
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(parameters))
    if traced or any(isinstance(array, jax.Array) for array in arrays):
        return function(*arrays)
    given = [None if array is None else np.asarray(array) for array in arrays]
    wide = any(array is not None and array.dtype not in _NARROW for array in given)
    with jax.enable_x64(wide):
        return np.asarray(function(*given))[()]
