"""Branches for speed that change no result, on a CPU.

On an accelerator every branch costs more than what it saves: there all phases simply run.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool


def stage(phase: Callable[..., Any], always: Bool[Array, ""], *args: Any) -> Any:
    """Run a phase so that its results are written to memory once, instead of anew for every use.

    On a CPU, XLA fuses a producer into each of its consumers and so computes it many times over. It cannot look
    through a branch that it cannot decide.

    Args:
        phase: a pure function of arrays.
        always: true at run time, in a way that the compiler cannot know.
        args: of the phase.
    """
    return when(lambda: always, phase, *args)


def when(needed: Callable[[], Bool[Array, ""]], phase: Callable[..., Any], *args: Any) -> Any:
    """Run a phase where it is needed; otherwise its results, which must be zeros then, cost nothing."""
    if jax.default_backend() != "cpu":
        return phase(*args)

    def skip(*args: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(phase, *args))

    return jax.lax.cond(needed(), phase, skip, *args)
