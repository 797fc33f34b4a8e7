"""Laws by their quantiles (QR-DQN, Dabney et al. 2018): no range of returns is needed."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._numerics import sort_values
from sentinel_rl.belief import Divergence, mean_of_members
from sentinel_rl.heads.head import Head, Risk
from sentinel_rl.returns import CategoricalReturn


class QuantileHead(Head):
    """The quantiles of the return at the levels ``(i + .5) / N``, learnt by quantile regression.

    A law has its quantiles as atoms of equal probability. Networks do not return them in order: they are sorted, which
    is what the law of N equally likely values is.

    FTRL's loss of a member is its Wasserstein-1 distance to the law whose quantiles are the members' means, divided by
    the standard deviation of the mixture, so that it has no unit: a Kullback-Leibler divergence between laws on
    different atoms is infinite. It has one direction only, and the option ``divergence`` changes nothing.

    Args:
        size: N.
        kappa: where the Huber loss turns linear; 0 is the absolute loss.

    Example:
        >>> print(QuantileHead(3).law(jnp.array([2.0, 0.0, 1.0])).atoms)
        [0. 1. 2.]
    """

    size: int = eqx.field(static=True, default=51)
    kappa: float = eqx.field(static=True, default=1.0)

    @property
    def outputs(self) -> int:
        """One number per quantile."""
        return self.size

    def law(self, outputs: Float[Array, "... n"]) -> CategoricalReturn:
        """Equally likely atoms, in order."""
        return CategoricalReturn(sort_values(outputs), jnp.full(outputs.shape, 1 / self.size, outputs.dtype))

    def laws_and_losses(
        self, outputs: Float[Array, "K ... n"], divergence: Divergence
    ) -> tuple[CategoricalReturn, Float[Array, "K ..."]]:
        """The laws, and their relative distances to the members' mean quantiles."""
        laws = self.law(outputs)
        return laws, relative_distances(laws.atoms, axis=-1)

    def target(
        self, outputs: Float[Array, " n"], reward: Float[Array, ""], discount: Float[Array, ""]
    ) -> tuple[Float[Array, " n"], dict[str, Float[Array, ""]]]:
        """The moved quantiles, in any order: a target is a set of equally likely values."""
        return reward + discount * outputs, {}

    def loss(self, outputs: Float[Array, " n"], target: Float[Array, " m"]) -> Float[Array, ""]:
        """The quantile Huber loss."""
        return quantile_huber_loss(outputs, target, self.kappa)

    def risks_in_columns(
        self, columns: Float[Array, "K A n batch"], risk: Risk, divergence: Divergence
    ) -> tuple[Float[Array, "K A batch"], Float[Array, "K A batch"]] | None:
        """Sorting is three times as fast where the observations stand side by side."""
        ordered = sort_values(columns, axis=-2)
        atoms = jnp.swapaxes(ordered, -1, -2)
        laws = CategoricalReturn(atoms, jnp.full(atoms.shape, 1 / self.size, atoms.dtype))
        return risk(laws), relative_distances(ordered, axis=-2)

    def options(self) -> Mapping[str, Any]:
        """The number of quantiles; a head with another kappa is its own option."""
        return {"head": "quantile" if self.kappa == 1.0 else self, "atoms": self.size}


def relative_distances(quantiles: Float[Array, "K ..."], axis: int = -1) -> Float[Array, "K ..."]:
    """The Wasserstein-1 distance of every member to the mean of their quantiles, in standard deviations of the mixture.

    Args:
        quantiles: in order along an axis.
        axis: of the quantiles, counted from the end.

    Example:
        >>> print(relative_distances(jnp.array([[0.0, 2.0], [2.0, 4.0]])).round(3))
        [0.707 0.707]
    """
    between = mean_of_members(quantiles)
    centre = jnp.mean(between, axis=axis, keepdims=True)
    variance = mean_of_members(jnp.mean((quantiles - centre[None]) ** 2, axis=axis))
    distance = jnp.mean(jnp.abs(quantiles - between[None]), axis=axis)
    # Members that are one and the same point agree.
    certain = variance <= 0
    spread = jnp.sqrt(jnp.where(certain, 1.0, variance))
    return jnp.where(certain[None], 0.0, distance / spread[None])


def quantile_huber_loss(
    quantiles: Float[Array, " N"], target: Float[Array, " M"], kappa: float = 1.0
) -> Float[Array, ""]:
    """``sum_i mean_j |tau_i - 1{y_j < x_i}| H_kappa(y_j - x_i)`` with ``tau_i = (i + .5) / N`` (Dabney et al. 2018).

    ``H_kappa(u) = u^2 / 2`` up to kappa, ``kappa (|u| - kappa / 2)`` beyond, not divided by kappa; ``|u|`` for kappa 0.
    The target is constant: no gradient goes through it.
    """
    levels = (jnp.arange(quantiles.size, dtype=quantiles.dtype) + 0.5) / quantiles.size
    apart = jax.lax.stop_gradient(target)[None, :] - quantiles[:, None]
    fixed = jax.lax.stop_gradient(apart)
    # H is slope * (u - slope / 2), and the slope is its derivative: held constant, both come out of one product.
    slope = jnp.sign(fixed) if kappa == 0 else jnp.clip(fixed, -kappa, kappa)
    loss = slope * (apart if kappa == 0 else apart - slope / 2)
    weight = jnp.where(fixed < 0, 1 - levels[:, None], levels[:, None])
    return jnp.sum(jnp.mean(weight * loss, axis=1))
