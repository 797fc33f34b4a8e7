"""Gaussian laws and mixtures of them, in closed form."""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, ndtri
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sentinel_rl import _checks
from sentinel_rl._numerics import normal_cdf, tiny

_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2 * np.pi))


class GaussianMixture(eqx.Module):
    """A return with density ``sum_i w_i N(mu_i, sd_i^2)``; one component is a plain Gaussian.

    The components stand on the last axis. The three arrays are broadcast to one shape, and the leading axes
    (member, action, batch) are free: every method gives one number per leading index, and a point or level that is
    an array is broadcast against the leading axes.

    Args:
        means: finite.
        stds: finite and positive.
        weights: non-negative, summing to 1 along the last axis within 1e-4; equal when None.

    Raises:
        ValueError: for values or shapes that are not a law. Inside ``jit`` only shapes are checked.

    Example:
        >>> law = GaussianMixture(means=[1.0, -1.0], stds=[1.0, 1.0], weights=[0.75, 0.25])
        >>> print(f"{law.mean():.4f} {law.tail_mean(0.25):.4f}")
        0.5000 -1.2780
    """

    means: Float[Array, "... n"]
    stds: Float[Array, "... n"]
    weights: Float[Array, "... n"]

    def __init__(self, means: ArrayLike, stds: ArrayLike, weights: ArrayLike | None = None):
        parts = [jnp.asarray(part) for part in (means, stds, 1.0 if weights is None else weights)]
        shape = _common_shape(*(part.shape for part in parts))
        dtype = jnp.result_type(*parts, 1.0)
        self.means, self.stds, masses = (jnp.broadcast_to(part.astype(dtype), shape) for part in parts)
        self.weights = masses / shape[-1] if weights is None else masses
        _checks.parameter("GaussianMixture means", self.means, np.isfinite, "finite")
        _checks.parameter("GaussianMixture stds", self.stds, lambda x: x > 0, "positive")
        _checks.probabilities("GaussianMixture weights", self.weights, axis=-1)

    @classmethod
    def gaussian(cls, mean: ArrayLike, std: ArrayLike) -> Self:
        """Plain Gaussians, one for every entry of `mean` and `std`.

        Example:
            >>> print(f"{GaussianMixture.gaussian(mean=2.0, std=1.0).tail_mean(0.25):.4f}")
            0.7289
        """
        return cls(jnp.asarray(mean)[..., None], jnp.asarray(std)[..., None])

    def mean(self) -> Float[Array, "..."]:
        """Expectation, ``sum_i w_i mu_i``."""
        return jnp.sum(self.weights * self.means, axis=-1)

    def variance(self) -> Float[Array, "..."]:
        """Variance, ``sum_i w_i (sd_i^2 + (mu_i - mean)^2)``."""
        centred = self.means - self.mean()[..., None]
        return jnp.sum(self.weights * (self.stds**2 + centred**2), axis=-1)

    def std(self) -> Float[Array, "..."]:
        """Standard deviation, the root of `variance`."""
        return jnp.sqrt(self.variance())

    def log_pdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Logarithm of the density at `x`, finite far out in the tails."""
        law, point = self._aligned(x)
        z = law._standardised(point)
        return logsumexp(-0.5 * z**2 - jnp.log(law.stds) - _LOG_ROOT_TWO_PI, b=law.weights, axis=-1)

    def pdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Density at `x`, ``sum_i w_i phi(z_i) / sd_i`` with ``z_i = (x - mu_i) / sd_i``."""
        return jnp.exp(self.log_pdf(x))

    def cdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Probability of at most `x`, ``sum_i w_i Phi(z_i)``."""
        law, point = self._aligned(x)
        return jnp.sum(law.weights * normal_cdf(law._standardised(point)), axis=-1)

    def quantile(self, u: ArrayLike) -> Float[Array, "..."]:
        """The point `q` with ``cdf(q) = u``, for levels `u` in (0, 1), by bisection to the last digit.

        A mixture's quantile lies between the smallest and the largest quantile of its components: that is the
        bracket. Gradients are those of the implicit function, ``dq/du = 1 / pdf(q)``.
        """
        _checks.parameter("quantile level u", u, lambda x: (0 < x) & (x < 1), "in (0, 1)")
        law, level = self._aligned(u)
        point = jax.lax.stop_gradient(law._bisect(level))
        density = jnp.maximum(law.pdf(point), tiny(point))
        newton = (level - law.cdf(point)) / jax.lax.stop_gradient(density)
        return point + newton - jax.lax.stop_gradient(newton)

    def tail_mean(self, alpha: ArrayLike) -> Float[Array, "..."]:
        """Mean of the worst `alpha` of the outcomes, the CVaR, for `alpha` in (0, 1].

        With ``q = quantile(alpha)`` and ``z_i = (q - mu_i) / sd_i``

            (1 / alpha) sum_i w_i (mu_i Phi(z_i) - sd_i phi(z_i)),

        computed as ``q - (1 / alpha) E[(q - Z)_+]`` (Rockafellar and Uryasev 2002), whose derivative by `q` is
        zero: neither the value nor its gradient feels the last digits of `q`.
        """
        _checks.parameter("tail_mean alpha", alpha, lambda x: (0 < x) & (x <= 1), "in (0, 1] (1: the mean)")
        law, level = self._aligned(alpha)
        point = jax.lax.stop_gradient(law._bisect(jnp.minimum(level, 1 - jnp.finfo(level.dtype).eps)))
        z = law._standardised(point)
        shortfall = law.stds * (z * normal_cdf(z) + jnp.exp(-0.5 * z**2 - _LOG_ROOT_TWO_PI))
        tail = point - jnp.sum(law.weights * shortfall, axis=-1) / level
        return jnp.where(level == 1, law.mean(), tail)

    def _aligned(self, x: ArrayLike) -> tuple[Self, Float[Array, "..."]]:
        """The law and a point or level, both with the leading axes of both."""
        points = jnp.asarray(x, self.means.dtype)
        leading = jnp.broadcast_shapes(points.shape, self.means.shape[:-1])
        law = jax.tree.map(lambda part: jnp.broadcast_to(part, (*leading, part.shape[-1])), self)
        return law, jnp.broadcast_to(points, leading)

    def _standardised(self, x: Float[Array, "..."]) -> Float[Array, "... n"]:
        return (x[..., None] - self.means) / self.stds

    def _bisect(self, level: Float[Array, "..."]) -> Float[Array, "..."]:
        """Solve ``cdf(q) = level``; the bracket is halved until it is below the dtype's resolution."""
        ends = self.means + self.stds * ndtri(level)[..., None]
        start = (jnp.min(ends, axis=-1), jnp.max(ends, axis=-1))

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            middle = 0.5 * (low + high)
            too_low = self.cdf(middle) < level
            return jnp.where(too_low, middle, low), jnp.where(too_low, high, middle)

        steps = jnp.finfo(level.dtype).nmant + 4
        bracket: tuple[Array, Array] = jax.lax.fori_loop(0, steps, halve, start)
        return 0.5 * (bracket[0] + bracket[1])


def _common_shape(means: tuple[int, ...], stds: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """The shape all three broadcast to, with a component axis."""
    given = f"means of shape {means}, stds of shape {stds} and weights of shape {weights}"
    try:
        shape = jnp.broadcast_shapes(means, stds, weights)
    except ValueError:
        raise ValueError(f"{given} do not match: give all three the same components on the last axis") from None
    if not shape:
        raise ValueError(f"{given} have no component axis: for one Gaussian use GaussianMixture.gaussian(mean, std)")
    return shape
