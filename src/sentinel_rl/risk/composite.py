"""Composite and additive risk of a belief: the paper's central formulas.

Members ``i = 1..K`` with belief weights ``w_i`` and return laws ``Z_i``:

    aleatory    A_i = rho_A(Z_i)
    composite   F^C = rho_E of the law that puts mass w_i on A_i        (definition 1)
    additive    F^A = sum_i w_i A_i                                      (= composite with rho_E the mean)

In reward orientation theorem 2 reads ``F^C <= F^A``.
"""

import abc
from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sentinel_rl import _checks
from sentinel_rl._precision import in_own_precision
from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk.distortion import Expectation
from sentinel_rl.risk.measure import RiskMeasure

Aggregate = Literal["belief", "scale"]


class BeliefMeasure(eqx.Module):
    """A risk measure of a `Belief`: one number per state and action from K laws and their weights."""

    @abc.abstractmethod
    def __call__(self, belief: Belief) -> Float[Array, "..."]:
        """Return the risk for every leading axis after the member axis."""

    def of(self, values: ArrayLike, weights: ArrayLike | None = None, belief: ArrayLike | None = None) -> Any:
        """Return the risk of samples ``[K, ..., n]``: K models, n (weighted) samples from each.

        Args:
            values: samples, member axis first, sample axis last.
            weights: sample weights, normalised; equal when None.
            belief: member weights, normalised; equal when None.

        Example:
            >>> from sentinel_rl.risk import CVaR
            >>> float(Composite(CVaR(0.5), CVaR(0.5)).of([[1, 2, 3, 4], [5, 6, 7, 8]]))
            1.5
        """

        def risk(v: ArrayLike, w: ArrayLike | None, b: ArrayLike | None) -> Array:
            law = CategoricalReturn.from_samples(v, w)
            return self(Belief(law, None if b is None else _normalised(jnp.asarray(b))))

        return in_own_precision(risk, values, weights, belief, parameters=self)


class Composite(BeliefMeasure):
    """Composite risk: a risk measure across the members of a risk measure of each (definition 1).

    Theorem 1: with coherent `epistemic` and `aleatory` it is coherent.

    Args:
        epistemic: applied across members, where the uncertainty is ignorance.
        aleatory: applied to each member's law, where it is chance.
        aggregate: ``"belief"``: the weights are probability masses. ``"scale"``: the values are multiplied by the
            weights, as algorithm 1 prints it; a shift of all returns can then change the choice.
    """

    epistemic: RiskMeasure
    aleatory: RiskMeasure
    aggregate: Aggregate = eqx.field(static=True, default="belief")

    def __check_init__(self) -> None:
        if self.aggregate not in get_args(Aggregate):
            raise ValueError(f"unknown aggregate {self.aggregate!r}: choose one of {get_args(Aggregate)}")

    def __call__(self, belief: Belief) -> Float[Array, "..."]:
        """``rho_E`` of the member risks ``rho_A(Z_i)`` under the belief."""
        return across_members(self.epistemic, self.aleatory(belief.members), belief.weights, self.aggregate)

    def __str__(self) -> str:
        """Return the text that `parse_risk` reads back; left is epistemic."""
        return f"{self.epistemic} o {'scaled ' if self.aggregate == 'scale' else ''}{self.aleatory}"


class Additive(BeliefMeasure):
    """Additive risk ``sum_i w_i rho_A(Z_i)``: the composite with a risk-neutral epistemic part (theorem 2 i)."""

    aleatory: RiskMeasure

    def __call__(self, belief: Belief) -> Float[Array, "..."]:
        """The mean of the member risks ``rho_A(Z_i)`` under the belief."""
        return across_members(Expectation(), self.aleatory(belief.members), belief.weights)

    def __str__(self) -> str:
        """Return the text that `parse_risk` reads back."""
        return f"additive o {self.aleatory}"


def _normalised(belief: Array) -> Float[Array, "K ..."]:
    """Divide member weights by their sum, after the check of what the division would hide."""
    _checks.masses("belief weights", belief, axis=0)
    return belief / jnp.sum(belief, axis=0, keepdims=True)


def across_members(
    epistemic: RiskMeasure,
    member_values: Float[Array, "K ..."],
    weights: Float[Array, "K ..."],
    aggregate: Aggregate = "belief",
) -> Float[Array, "..."]:
    """``rho_E`` of the law that puts mass ``w_i`` on the value of member i."""
    if aggregate == "scale":
        member_values, weights = weights * member_values, jnp.ones_like(weights)
    values, masses = jnp.moveaxis(member_values, 0, -1), jnp.moveaxis(weights, 0, -1)
    return epistemic(CategoricalReturn.from_samples(values, masses))
