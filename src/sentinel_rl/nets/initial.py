"""How the weights of networks are drawn."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Init = Callable[[jax.Array, tuple[int, ...]], Array]


def glorot_uniform(key: jax.Array, shape: tuple[int, ...]) -> Float[Array, "... _ _"]:
    """Draw weights ``[..., in, out]`` from ``U(-l, l)``, ``l = sqrt(6 / (in + out))``."""
    limit = (6 / (shape[-2] + shape[-1])) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def fan_in_uniform(key: jax.Array, shape: tuple[int, ...]) -> Float[Array, "... _ _"]:
    """Draw weights ``[..., in, out]`` from ``U(-l, l)``, ``l = sqrt(3 / in)``: a variance of ``1 / in``."""
    limit = (3 / shape[-2]) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def orthogonal(gain: float) -> Init:
    """Draw weights ``[..., in, out]`` with orthogonal rows or columns of length `gain` (Saxe et al. 2014)."""

    def draw(key: jax.Array, shape: tuple[int, ...]) -> Array:
        *batch, rows, columns = shape
        vectors = jax.random.normal(key, (*batch, min(rows, columns), max(rows, columns)))
        basis = jnp.vectorize(_orthonormal, signature="(m,n)->(m,n)")(vectors)
        return gain * (basis if rows <= columns else jnp.swapaxes(basis, -1, -2))

    return draw


def _orthonormal(vectors: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """Gram-Schmidt, each vector twice so that rounding does not add up: of Gaussian vectors, uniform over all bases.

    LAPACK's QR never returns when it is called on several CPU devices at once.
    """

    def step(i: Array, basis: Array) -> Array:
        rest = vectors[i]
        for _ in range(2):
            shares = jnp.dot(basis, rest, precision="highest")
            rest = rest - jnp.dot(shares, basis, precision="highest")
        return basis.at[i].set(rest / jnp.linalg.norm(rest))

    basis: Array = jax.lax.fori_loop(0, vectors.shape[0], step, jnp.zeros_like(vectors))
    return basis
