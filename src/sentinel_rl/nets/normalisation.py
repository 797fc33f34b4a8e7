"""Layer normalisation (Ba et al. 2016): the sums of a hidden layer are brought to one size, observation by observation.

What a layer passes on then depends neither on how large its weights have grown nor on the scale of what it sees.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

# Added to the variance: sums that are all equal have none.
EPSILON = 1e-5


def init_norm(features: int, chosen: bool | None) -> tuple[Float[Array, " features"], ...]:
    """Gains of one and shifts of zero, where a layer is normalised; else nothing."""
    return (jnp.ones(features), jnp.zeros(features)) if chosen else ()


def normalised(x: Float[Array, "*rows features"], norm: Sequence[Array]) -> Float[Array, "*rows features"]:
    """What `layer_norm` makes of the sums of a layer that has a gain and a shift; others stay as they are."""
    if not norm:
        return x
    gain, shift = norm
    return layer_norm(x, gain, shift)


def layer_norm(
    x: Float[Array, "*rows features"], gain: Float[Array, " features"], shift: Float[Array, " features"]
) -> Float[Array, "*rows features"]:
    """Normalise over the last axis: ``gain (x - mean(x)) / sqrt(var(x) + 1e-5) + shift``.

    The variance is the mean square of what the features differ from their mean by (Ba et al. 2016, equation 3).

    Example:
        >>> [round(float(y), 3) for y in layer_norm(jnp.array([1.0, 3.0]), jnp.ones(2), jnp.array([0.0, 5.0]))]
        [-1.0, 6.0]
    """
    away = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(away**2, axis=-1, keepdims=True)
    scaled = away / jnp.sqrt(variance + EPSILON)
    return scaled * jnp.broadcast_to(gain, x.shape) + jnp.broadcast_to(shift, x.shape)
