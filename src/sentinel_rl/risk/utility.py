"""Risk measures from the exponential utility: no distortion of the CDF expresses them."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl import _checks
from sentinel_rl._numerics import tiny
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk.extreme import best, worst
from sentinel_rl.risk.measure import Parameter, RiskMeasure


class Entropic(RiskMeasure):
    """The entropic certainty equivalent, ``-(1/beta) log E exp(-beta Z)``.

    Additive over independent returns, and the only law-invariant measure that is the same computed in one step
    or nested: ``Entropic o Entropic`` with one beta is `Entropic` of the mixture. Not positively homogeneous.

    Args:
        beta: any real: positive averse, 0 the mean, negative seeking.
    """

    name: ClassVar[str] = "entropic"
    beta: Parameter

    def __check_init__(self) -> None:
        _checks.parameter("Entropic beta", self.beta, np.isfinite, "a finite number (0: mean, negative: seeking)")

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        beta = jnp.asarray(self.beta, law.probs.dtype)
        edge = jnp.where(beta >= 0, worst(law), best(law))
        distance = jnp.where(law.probs == 0, 0.0, law.values - edge[..., None])
        # Below this beta the expansion to second order is exact to rounding; the quotient would be 0/0 at 0.
        small = jnp.abs(beta) * (best(law) - worst(law)) < jnp.sqrt(jnp.finfo(law.probs.dtype).eps)
        rate = jnp.where(small, jnp.where(beta >= 0, 1.0, -1.0), beta)
        expansion = law.mean() - 0.5 * beta * law.variance()
        return jnp.where(small, expansion, edge - _log_laplace(law.probs, distance, rate) / rate)


class EVaR(RiskMeasure):
    """Entropic value at risk (Ahmadi-Javid 2012), ``sup_{t>0} -(1/t) (log E exp(-tZ) - log alpha)``.

    The tightest bound that Chernoff's inequality gives on CVaR and VaR of the same level, and the worst mean
    over all laws Q with ``KL(Q || P) <= -log alpha``. The mean at ``alpha = 1``, the smallest atom when
    ``alpha`` is at most its probability. Computed by bisection in ``log t`` on that divergence; the gradient is that
    of the objective at the optimal t.

    Args:
        alpha: in (0, 1].
    """

    name: ClassVar[str] = "evar"
    alpha: Parameter

    def __check_init__(self) -> None:
        _checks.parameter(
            "EVaR alpha",
            self.alpha,
            lambda x: (0 < x) & (x <= 1),
            "in (0, 1] (1: mean; for the limit 0: WorstCase)",
        )

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        log_alpha = jnp.log(jnp.maximum(jnp.asarray(self.alpha, law.probs.dtype), tiny(law.probs)))
        low = worst(law)
        span = jax.lax.stop_gradient(best(law) - low)
        # Of one atom the optimal t is infinite, and the value is that atom, however small it is.
        certain = span < tiny(law.probs)
        span = jnp.where(certain, jnp.ones_like(span), span)
        unit = jnp.where(law.probs == 0, 0.0, (law.values - low[..., None]) / 4 / (span / 4)[..., None])
        t = _optimal_rate(*jax.lax.stop_gradient((law.probs, unit, log_alpha)))
        # Where the worst atom is likelier than alpha, t has no largest value either.
        above = jnp.where(law.probs == 0, 0.0, law.values - low[..., None])
        counts = certain[..., None] | (jax.lax.stop_gradient(above) == 0)
        mass = jax.lax.stop_gradient(jnp.sum(law.probs, axis=-1, where=counts & (law.probs > 0)))
        reached = certain | (mass >= jnp.exp(log_alpha))
        of_worst = low + jnp.sum(law.probs * above, axis=-1, where=counts) / jnp.where(reached, mass, 1.0)
        inside = low + span * (log_alpha - _log_laplace(law.probs, unit, t)) / t
        return jnp.where(reached, of_worst, inside)


def _log_laplace(probs: Array, distance: Array, rate: Array) -> Array:
    """``log E exp(-rate * distance)`` for ``rate * distance >= 0``, exact for small and for large rates."""
    exponent = -rate[..., None] * distance
    shortfall = jnp.sum(probs * jnp.expm1(exponent), axis=-1)
    total = jnp.sum(probs * jnp.exp(exponent), axis=-1)
    small = shortfall > -0.5
    return jnp.where(small, jnp.log1p(jnp.where(small, shortfall, 0.0)), jnp.log(jnp.where(small, 1.0, total)))


def _optimal_rate(probs: Array, unit: Array, log_alpha: Array) -> Array:
    """The t at which the tilted law is ``-log alpha`` nats from P, for distances in [0, 1].

    The divergence ``KL(P_t || P)`` of ``P_t ∝ P exp(-t Z)`` rises with t. The objective is flat at its optimum, so
    half the digits of t give all digits of the value.
    """
    wide = probs.dtype == jnp.float64
    steps, low, high = (48, -36.0, 46.0) if wide else (30, -16.0, 30.0)

    def halve(_: object, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        lower, upper = bracket
        middle = 0.5 * (lower + upper)
        t = jnp.exp(middle)
        tilt = probs * jnp.exp(-t[..., None] * unit)
        mean = jnp.sum(tilt * unit, axis=-1) / jnp.sum(tilt, axis=-1)
        divergence = -t * mean - _log_laplace(probs, unit, t)
        inside = divergence < -log_alpha
        return jnp.where(inside, middle, lower), jnp.where(inside, upper, middle)

    start = jnp.full(probs.shape[:-1], low, probs.dtype), jnp.full(probs.shape[:-1], high, probs.dtype)
    lower, upper = jax.lax.fori_loop(0, steps, halve, start)
    return jnp.exp(0.5 * (lower + upper))
