"""How far two laws on one grid are from each other."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def kl_divergence(log_p: Float[Array, "... n"], log_q: Float[Array, "... n"]) -> Float[Array, "..."]:
    """Kullback-Leibler divergence ``sum_j p_j (log p_j - log q_j)`` from log-probabilities.

    ``0 log 0`` is 0; infinite where some ``p_j > 0 = q_j``. Gradients are finite, and zero where it is infinite.
    """
    p = jnp.exp(log_p)
    absent = (p == 0) & ~jnp.isnan(log_q)
    impossible = (p > 0) & jnp.isneginf(log_q)
    skip = absent | impossible
    zero = jnp.zeros_like(p)
    terms = jnp.where(skip, zero, p) * (jnp.where(skip, zero, log_p) - jnp.where(skip, zero, log_q))
    total = jnp.sum(terms, axis=-1)
    return jnp.where(jnp.any(impossible, axis=-1) & ~jnp.isnan(total), jnp.inf, total)


def wasserstein1(
    atoms: Float[Array, "... n"], p: Float[Array, "... n"], q: Float[Array, "... n"]
) -> Float[Array, "..."]:
    """Wasserstein-1 distance ``sum_j |P_j - Q_j| (z_{j+1} - z_j)`` of two laws on the same ascending atoms."""
    gap = jnp.abs(jnp.cumsum(p - q, axis=-1))
    # Beyond the last atom the gap is zero (or NaN, which must not be lost) and has no width.
    width = jnp.diff(atoms, axis=-1, append=atoms[..., -1:])
    return jnp.sum(gap * jnp.broadcast_to(width, gap.shape), axis=-1)
