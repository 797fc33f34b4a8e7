"""Replays cut to what has been written, for checkpoints, and made whole again."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from sentinel_rl.replay import Replay


def filled_part(tree: Any, t: int) -> Any:
    """Cut every replay in a tree to what has been written in the first ``t`` steps; the rest is zero."""

    def cut(node: Any) -> Any:
        if not isinstance(node, Replay):
            return node
        return eqx.tree_at(lambda replay: (replay.rows, replay.queue), node, (node.rows[:t], node.queue[:, :t]))

    return jax.tree.map(cut, tree, is_leaf=lambda node: isinstance(node, Replay))


def padded_like(array: Any, like: jax.ShapeDtypeStruct) -> Any:
    """Append zeros to an array, up to the shape of another."""
    if array.shape == like.shape:
        return array
    return jnp.pad(array, [(0, whole - part) for part, whole in zip(array.shape, like.shape, strict=True)])
