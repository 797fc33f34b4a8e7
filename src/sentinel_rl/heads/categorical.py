"""Categorical laws on a grid (C51, Bellemare et al. 2017), the paper's: the range of returns must be known."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.belief import Divergence, mean_of_members, mean_surprisal, relative_losses
from sentinel_rl.heads.head import Head, Risk
from sentinel_rl.heads.support import support_warning
from sentinel_rl.replay import Replay
from sentinel_rl.returns import CategoricalReturn, Support
from sentinel_rl.returns.projection import clipped_mass, project


class CategoricalHead(Head):
    """Logits of the atoms of a grid, learnt by the cross-entropy to the projected target.

    Args:
        support: the grid.

    Example:
        >>> head = CategoricalHead(Support(0.0, 2.0, 3))
        >>> print(head.law(jnp.zeros(3)).mean())
        1.0
    """

    support: Support

    @property
    def outputs(self) -> int:
        """One logit per atom."""
        return self.support.size

    def law(self, outputs: Float[Array, "... n"]) -> CategoricalReturn:
        """The softmax of the logits."""
        return CategoricalReturn(self.support.atoms, jax.nn.softmax(outputs))

    def laws_and_losses(
        self, outputs: Float[Array, "K ... n"], divergence: Divergence
    ) -> tuple[CategoricalReturn, Float[Array, "K ..."]]:
        """The laws, and their Kullback-Leibler divergences to the mixture, up to what is the same for all."""
        log_probs = jax.nn.log_softmax(outputs)
        return CategoricalReturn(self.support.atoms, jnp.exp(log_probs)), relative_losses(log_probs, divergence)

    def target(
        self, outputs: Float[Array, " n"], reward: Float[Array, ""], discount: Float[Array, ""]
    ) -> tuple[Float[Array, " n"], dict[str, Float[Array, ""]]]:
        """The probabilities of the projected law, and the mass that fell beyond either edge."""
        probs = jax.nn.softmax(outputs)
        low, high = clipped_mass(self.support, probs, reward, discount)
        return project(self.support, probs, reward, discount), {"clip_low": low, "clip_high": high}

    def loss(self, outputs: Float[Array, " n"], target: Float[Array, " n"]) -> Float[Array, ""]:
        """The cross-entropy."""
        return -jnp.sum(target * jax.nn.log_softmax(outputs))

    @property
    def upwards(self) -> tuple[float, ...]:
        """From -1 at the lowest atom to 1 at the highest: logits that are tilted."""
        return tuple(2 * place / max(self.outputs - 1, 1) - 1 for place in range(self.outputs))

    def risks_in_columns(
        self, columns: Float[Array, "K A n batch"], risk: Risk, divergence: Divergence
    ) -> tuple[Float[Array, "K A batch"], Float[Array, "K A batch"]] | None:
        """Member by member: written as one array, XLA computes a member's risk anew at every place that reads it."""
        if divergence != "marginal_to_member":
            return None
        below = columns - jnp.max(columns, axis=-2, keepdims=True)
        masses = jnp.exp(below)
        total = jnp.sum(masses, axis=-2, keepdims=True)
        probs, log_probs = masses / total, below - jnp.log(total)
        marginal = mean_of_members(probs)

        def member(law: tuple[Float[Array, "A n batch"], Float[Array, "A n batch"]]) -> tuple[Array, Array]:
            risks = risk(CategoricalReturn(self.support.atoms, jnp.swapaxes(law[0], -1, -2)))
            return risks, mean_surprisal(marginal, law[1], axis=-2)

        found: tuple[Array, Array] = jax.lax.map(member, (probs, log_probs))
        return found

    def warning(self, gamma: float, t: int, metrics: Mapping[str, float], replay: Callable[[], Replay]) -> str | None:
        """Warn when the support is too small for the returns that were seen."""
        return support_warning(self.support, gamma, t, metrics, replay)

    def options(self) -> Mapping[str, Any]:
        """The grid."""
        return {
            "head": "categorical",
            "atoms": self.support.size,
            "v_min": self.support.low,
            "v_max": self.support.high,
        }
