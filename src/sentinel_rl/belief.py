"""Beliefs over K learned laws, and the FTRL weights that express trust in each of them."""

import functools
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sentinel_rl import _checks
from sentinel_rl._numerics import log_mean_exp, ties_at_zero, unrolls
from sentinel_rl.returns.categorical import CategoricalReturn, member_weights
from sentinel_rl.returns.distance import kl_divergence

Divergence = Literal["marginal_to_member", "member_to_marginal"]
Prefer = Literal["consensus", "outliers"]


class Belief(eqx.Module):
    """K laws of the same return, each with a probability of being the right one.

    Args:
        members: laws with the member axis first, ``[K, ...]``.
        weights: ``[K]`` or ``[K, ...]``, summing to 1 over the members within 1e-4; equal when None.

    Example:
        >>> laws = CategoricalReturn([0.0, 1.0], [[0.5, 0.5], [0.1, 0.9]])
        >>> print(Belief(laws).mixture().probs)
        [0.3 0.7]
    """

    members: CategoricalReturn
    weights: Float[Array, "K ..."]

    def __init__(self, members: CategoricalReturn, weights: ArrayLike | None = None):
        if members.probs.ndim < 2:
            raise ValueError(
                f"a belief needs a leading member axis [K, ..., n], got probs of shape {members.probs.shape}: "
                f"for one law use probs[None]"
            )
        self.members = members
        self.weights = member_weights(weights, members.probs.shape[:-1], members.probs.dtype)

    def mixture(self) -> CategoricalReturn:
        """The law of the return with the members averaged out, ``sum_i w_i Z_i``."""
        return self.members.mixture(self.weights)


def marginal(members: CategoricalReturn) -> CategoricalReturn:
    """The unweighted mixture ``(1/K) sum_i Z_i`` over the leading member axis."""
    return members.mixture()


def ftrl_losses(log_probs: ArrayLike, divergence: Divergence = "marginal_to_member") -> Float[Array, "K ..."]:
    """How far each member is from the marginal, the loss of FTRL (section 5.2 of the paper).

    Args:
        log_probs: log-probabilities ``[K, ..., n]`` of the members on one grid (``log_softmax`` of logits).
        divergence: ``"marginal_to_member"`` is ``KL(m || Z_i)``, unbounded, infinite where a member excludes
            what another allows; ``"member_to_marginal"`` is ``KL(Z_i || m) <= ln K``.
    """
    _require_option("divergence", divergence, get_args(Divergence))
    log_members = _log_members(log_probs)
    log_marginal = jnp.broadcast_to(log_mean_exp(log_members, axis=0)[None], log_members.shape)
    if divergence == "marginal_to_member":
        return kl_divergence(log_marginal, log_members)
    return kl_divergence(log_members, log_marginal)


def ftrl_weights(
    log_probs: ArrayLike,
    lam: ArrayLike,
    divergence: Divergence = "marginal_to_member",
    prefer: Prefer = "consensus",
) -> Float[Array, "K ..."]:
    """Weights ``w_i ∝ exp(-lam l_i)`` over the members, with the losses of `ftrl_losses` (equation 3).

    ``lam = 0`` averages, ``lam = inf`` trusts only the member nearest to the marginal (ties share). A member
    with an infinite loss gets no weight; if all are infinite, all get the same.

    Args:
        log_probs: log-probabilities ``[K, ..., n]`` of the members on one grid.
        lam: the regularising parameter, at least 0.
        divergence: the loss, see `ftrl_losses`.
        prefer: ``"consensus"`` trusts members near the marginal; ``"outliers"`` (``+lam``, as the paper prints
            it) trusts those far from it.

    Example:
        >>> import jax
        >>> logits = jnp.array([[0.0, 0.0], [0.0, 0.0], [0.0, 3.0]])
        >>> print(np.asarray(ftrl_weights(jax.nn.log_softmax(logits), lam=10.0)).round(3))
        [0.496 0.496 0.009]
    """
    return weights_of_losses(relative_losses(log_probs, divergence), lam, prefer)


def weights_of_losses(
    losses: Float[Array, "K ..."], lam: ArrayLike, prefer: Prefer = "consensus"
) -> Float[Array, "K ..."]:
    """Weights ``w_i ∝ exp(-lam l_i)`` of members with these losses, or ``exp(lam l_i)`` for ``"outliers"``."""
    _require_option("prefer", prefer, get_args(Prefer))
    if not _checks.known(lam) or not np.all(np.asarray(lam) == np.inf):
        _checks.parameter("lam", lam, lambda x: x >= 0, "at least 0 (0 averages, infinity is greedy)")
    if np.ndim(lam) != 0:
        raise ValueError(f"lam must be one number, got shape {np.shape(lam)}: map over several with jax.vmap")
    if prefer == "consensus":
        regret = _gap(losses, jnp.min(losses, axis=0, keepdims=True))
    else:
        regret = _gap(jnp.max(losses, axis=0, keepdims=True), losses)
    return jax.nn.softmax(-ties_at_zero(jnp.asarray(lam), regret), axis=0)


def mean_surprisal(probs: Float[Array, "..."], log_probs: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """``-sum_j p_j log q_j`` along an axis, with ``0 log 0 = 0``: ``KL(p || q)`` and the entropy of p."""
    possible = probs != 0
    return -jnp.sum(jnp.where(possible, probs * jnp.where(possible, log_probs, 0.0), 0.0), axis=axis)


def mean_of_members(probs: Float[Array, "K ..."]) -> Float[Array, "..."]:
    """The mean over the leading axis; of a few members as sums, which fuse with what surrounds them."""
    members = probs.shape[0]
    if not unrolls(members):
        return jnp.mean(probs, axis=0)
    return functools.reduce(jnp.add, jnp.unstack(probs)) / members


def relative_losses(log_probs: ArrayLike, divergence: Divergence) -> Float[Array, "K ..."]:
    """The losses of `ftrl_losses`, less something that is the same for all members.

    ``KL(m || Z_i)`` is the cross-entropy ``-sum m log Z_i`` less the entropy of ``m``, which need not be computed.
    """
    if divergence != "marginal_to_member":
        return ftrl_losses(log_probs, divergence)
    log_members = _log_members(log_probs)
    mean = jnp.broadcast_to(mean_of_members(jnp.exp(log_members))[None], log_members.shape)
    return mean_surprisal(mean, log_members)


def _gap(high: Array, low: Array) -> Array:
    """``high - low`` of losses, 0 between two infinite ones; infinite gaps carry no gradient."""
    apart = jnp.isposinf(high) & ~jnp.isposinf(low)
    level = jnp.isposinf(low)
    both = apart | level
    finite = jnp.where(both, 0.0, high) - jnp.where(both, 0.0, low)
    return jnp.where(apart, jnp.inf, finite)


def _log_members(log_probs: ArrayLike) -> Float[Array, "K ... n"]:
    """Check log-probabilities of members on one grid."""
    log_members = jnp.asarray(log_probs, dtype=jnp.result_type(float, jnp.asarray(log_probs)))
    if log_members.ndim < 2 or log_members.size == 0:
        raise ValueError(f"log_probs needs axes [K, ..., n], got shape {log_members.shape}")
    if _checks.known(log_members):
        _checks.probabilities("exp(log_probs)", jnp.exp(log_members), axis=-1)
    return log_members


def _require_option(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"unknown {name} {value!r}: choose one of {', '.join(map(repr, allowed))}")
