"""How far laws are from each other."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.returns.categorical import CategoricalReturn


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


def mean_wasserstein1(laws: CategoricalReturn) -> Float[Array, "..."]:
    """The mean Wasserstein-1 distance between two different laws of several, ``[K, ..., n]``; 0 of one law.

    The laws may have atoms of their own: their CDFs are compared between all neighbouring atoms of all of them.

    Example:
        >>> print(mean_wasserstein1(CategoricalReturn([[0.0], [1.0], [4.0]], [[1.0], [1.0], [1.0]])).round(4))
        2.6667
    """
    count, size = laws.probs.shape[0], laws.probs.shape[-1]
    values, probs = (
        jnp.moveaxis(part, 0, -2) for part in (jnp.broadcast_to(laws.values, laws.probs.shape), laws.probs)
    )
    flat = values.reshape(*values.shape[:-2], -1)
    order = jnp.argsort(flat, axis=-1)
    atoms = jnp.take_along_axis(flat, order, axis=-1)
    mass = jnp.take_along_axis(probs.reshape(flat.shape), order, axis=-1)
    owner = jax.nn.one_hot(order // size, count, axis=-2, dtype=mass.dtype)
    cdfs = jnp.sort(jnp.cumsum(owner * mass[..., None, :], axis=-1), axis=-2)
    # Of sorted numbers x_1 <= ... <= x_K the differences of all pairs add up to sum_i (2 i - K - 1) x_i.
    signs = 2 * jnp.arange(count, dtype=mass.dtype) - count + 1
    between = jnp.einsum("k,...kn->...n", signs, cdfs)
    width = jnp.diff(atoms, axis=-1, append=atoms[..., -1:])
    return jnp.sum(between * width, axis=-1) / max(count * (count - 1) / 2, 1)
