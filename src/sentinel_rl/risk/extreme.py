"""The extremes of what can happen."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk.measure import RiskMeasure


class WorstCase(RiskMeasure):
    """The smallest outcome of positive probability: the limit of CVaR for ``alpha -> 0``. Coherent."""

    name: ClassVar[str] = "worst_case"

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        return worst(law)


class BestCase(RiskMeasure):
    """The largest outcome of positive probability: as risk-seeking as can be. Not superadditive."""

    name: ClassVar[str] = "best_case"

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        return best(law)


def worst(law: CategoricalReturn) -> Float[Array, "..."]:
    """Smallest atom of positive probability; NaN where an atom or a probability is."""
    return jnp.min(_possible(law, jnp.inf), axis=-1)


def best(law: CategoricalReturn) -> Float[Array, "..."]:
    """Largest atom of positive probability; NaN where an atom or a probability is."""
    return jnp.max(_possible(law, -jnp.inf), axis=-1)


def _possible(law: CategoricalReturn, otherwise: float) -> Array:
    impossible = (law.probs <= 0) & ~jnp.isnan(law.values)
    return jnp.where(impossible, otherwise, jnp.where(law.probs > 0, law.values, jnp.nan))
