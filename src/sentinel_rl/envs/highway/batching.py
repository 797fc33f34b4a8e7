"""Let ``jax.vmap`` put the batch on the last axis instead of the first.

The dynamics are written for arrays ``[vehicles, *batch]``: then a vehicle's row is contiguous, branches stay branches,
and one program serves a single world and thousands. Outside, a batch of states looks as ``vmap`` makes it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp


def batched(function: Callable[..., Any], env: Any, *args: Any) -> Any:
    """Call ``function(env, *args)`` so that ``vmap`` calls it once more, with the mapped axis last.

    Args:
        function: works on arrays with any number of batch axes at the end.
        env: its leaves, which only a reset reads, are left out.
        args: arrays, batched or not.
    """
    return _at_depth(function, False)(jax.tree.map(lambda _: None, env), *args)


@cache
def _at_depth(function: Callable[..., Any], has_batch: bool) -> Callable[..., Any]:
    """The function for a single world, or for worlds that are on one last axis already."""

    @jax.custom_batching.custom_vmap
    def call(env: Any, *args: Any) -> Any:
        return function(env, *args)

    @call.def_vmap
    def rule(size: int, are_batched: list[Any], env: Any, *args: Any) -> tuple[Any, Any]:
        full = jax.tree.map(lambda leaf, is_batched: _to_last(leaf, is_batched, size), list(args), are_batched[1:])
        if has_batch:
            width = jax.tree.leaves(full)[-1].shape[-2]
            out = _at_depth(function, True)(env, *jax.tree.map(_merge, full))
            out = jax.tree.map(lambda leaf: leaf.reshape(*leaf.shape[:-1], width, size), out)
        else:
            out = _at_depth(function, True)(env, *full)
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), out), jax.tree.map(lambda _: True, out)

    return call


def _to_last(leaf: Any, is_batched: bool, size: int) -> jax.Array:
    """Put the mapped axis at the end, or repeat what is not mapped."""
    constant = jnp.asarray(leaf)
    if is_batched:
        return jnp.moveaxis(constant, 0, -1)
    return jnp.broadcast_to(constant[..., None], (*constant.shape, size))


def _merge(leaf: jax.Array) -> jax.Array:
    """Two batch axes as one."""
    return leaf.reshape(*leaf.shape[:-2], -1)
