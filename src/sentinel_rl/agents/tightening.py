"""Alpha schedules: an agent begins with a milder measure, by default a neutral one, and tightens it while it learns.

An agent that is risk-averse from its first update may never find out what success is worth (Greenberg et al. 2022 call
it blindness to success). The measure that a user gives is the one at the end: frozen policies and explanations use it
at all times, and only what is learnt and how is explored follow the schedule.
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.risk import CVaR, EVaR, RiskMeasure

# The share of the updates after which the measures are those that were asked for, where none is given.
FRACTION = 0.5
# Measures that are the mean at alpha = 1, and the more cautious the smaller it is.
_WITH_ALPHA = (CVaR, EVaR)


def has_alpha(measure: RiskMeasure) -> bool:
    """Whether a measure can be tightened: CVaR and EVaR can."""
    return isinstance(measure, _WITH_ALPHA)


def loosened(measure: RiskMeasure, start: float | Array, share: float | Float[Array, ""]) -> RiskMeasure:
    """The measure on the way from ``alpha = start`` to its own, after a share of the way; others stay as they are.

    Example:
        >>> loosened(CVaR(0.5), 1.0, 0.5), loosened(CVaR(0.5), 1.0, 1.0)
        (CVaR(alpha=0.75), CVaR(alpha=0.5))
    """
    if not has_alpha(measure):
        return measure
    return dataclasses.replace(measure, alpha=(1 - share) * start + share * measure.alpha)  # type: ignore[call-arg,attr-defined]


def share_after(
    update: Int[Array, ""], updates: int | Array | None, fraction: float | Array | None
) -> Float[Array, ""]:
    """The share of the way that is done after an update.

    Args:
        update: its number, counted from 1.
        updates: of the whole training; where nobody has planned it (`Agent.planned`) the way is done at once.
        fraction: of them after which the way is done.
    """
    if updates is None:
        return jnp.ones(())
    way = (FRACTION if fraction is None else fraction) * jnp.asarray(updates, jnp.float32)
    return jnp.clip(update / jnp.maximum(way, 1.0), 0.0, 1.0)
