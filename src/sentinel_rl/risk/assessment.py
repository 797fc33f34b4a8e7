"""Where the risk of a belief comes from: how much is dice, how much is ignorance."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl.belief import Belief
from sentinel_rl.risk.composite import Aggregate, across_members
from sentinel_rl.risk.distortion import Expectation
from sentinel_rl.risk.measure import RiskMeasure

_COLUMNS = (
    "mean",
    "aleatory_penalty",
    "epistemic_penalty",
    "composite",
    "additive",
    "total",
    "paper_A",
    "paper_E",
)


class Assessment(eqx.Module):
    """The risk of a belief, decomposed; every number has the leading axes of the belief after its member axis.

    ``mean - composite = aleatory_penalty + epistemic_penalty``, and for risk-averse measures no penalty is negative.
    """

    mean: Float[Array, "..."]
    additive: Float[Array, "..."]
    composite: Float[Array, "..."]
    total: Float[Array, "..."]
    paper_E: Float[Array, "..."]  # noqa: N815 - the paper's E(.)
    member_risks: Float[Array, "K ..."]
    weights: Float[Array, "K ..."]

    @property
    def aleatory_penalty(self) -> Float[Array, "..."]:
        """What chance costs, ``mean - additive``."""
        return self.mean - self.additive

    @property
    def epistemic_penalty(self) -> Float[Array, "..."]:
        """What ignorance costs, ``additive - composite``."""
        return self.additive - self.composite

    @property
    def paper_A(self) -> Float[Array, "..."]:  # noqa: N802 - the paper's A(.)
        """The paper's ``A = additive - total``. It is zero when the members agree: it measures disagreement."""
        return self.additive - self.total

    def __str__(self) -> str:
        """Return a table with one row per action (or whatever the leading axes are)."""
        columns = {name: np.ravel(getattr(self, name)) for name in _COLUMNS}
        shape = np.shape(self.mean)
        labels = ["".join(f"[{i}]" for i in index) for index in np.ndindex(shape)]
        width = max(len(name) for name in _COLUMNS) + 1
        head = " " * 8 + "".join(f"{name:>{width}}" for name in _COLUMNS)
        rows = [
            f"{label:<8}" + "".join(f"{columns[name][row]:>{width}.4g}" for name in _COLUMNS)
            for row, label in enumerate(labels)
        ]
        return "\n".join([head, *rows])


def assess(
    belief: Belief, epistemic: RiskMeasure, aleatory: RiskMeasure, aggregate: Aggregate = "belief"
) -> Assessment:
    """Decompose the composite risk of a belief.

    Args:
        belief: K laws and their weights.
        epistemic: risk measure across the members.
        aleatory: risk measure of each member's law.
        aggregate: what the weights do in the composite risk, see `Composite`.

    Returns:
        mean, additive, composite, total (the risk ``rho_A`` of the mixture), the two penalties, the paper's
        ``A = additive - total`` and ``E = rho_E`` of the member means, the K member risks and the weights.

    Example:
        >>> from sentinel_rl.returns import CategoricalReturn
        >>> from sentinel_rl.risk import CVaR
        >>> safe, bold = [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]
        >>> belief = Belief(CategoricalReturn([0.0, 1.0, 2.0], [[safe, bold], [safe, safe]]))  # K = 2, two actions
        >>> print(assess(belief, CVaR(0.5), CVaR(0.5)))
                              mean  aleatory_penalty epistemic_penalty ...
        [0]                      1                 0                 0 ...
        [1]                      1               0.5               0.5 ...
    """
    neutral = Expectation()
    member_means, member_risks = neutral(belief.members), aleatory(belief.members)
    return Assessment(
        mean=across_members(neutral, member_means, belief.weights),
        additive=across_members(neutral, member_risks, belief.weights),
        composite=across_members(epistemic, member_risks, belief.weights, aggregate),
        total=aleatory(belief.mixture()),
        paper_E=across_members(epistemic, member_means, belief.weights),
        member_risks=jnp.asarray(member_risks),
        weights=belief.weights,
    )
