"""Distortion risk measures: expectations under a distorted CDF.

Sort the atoms ascending and let ``F_j`` be the cumulative probability. With a distortion ``g`` (increasing,
``g(0) = 0``, ``g(1) = 1``)

    rho_g(Z) = sum_j z_j (g(F_j) - g(F_{j-1})) = z_n - sum_{j<n} g(F_j) (z_{j+1} - z_j),

and the second, the layer form, is what we compute: it never evaluates ``g(1)`` and needs no differences of ``g``.
A concave ``g`` puts more weight on the worst outcomes: the measure is then risk-averse and coherent
(Wang, Young and Panjer 1997). ``g(u) = u`` is the expectation.
"""

import abc
import itertools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

from sentinel_rl import _checks
from sentinel_rl._numerics import (
    cumulative,
    log_cdf,
    log_survival,
    normal_cdf,
    normal_quantile,
    running_sums,
    tiny,
    unrolls,
    unrolls_long,
)
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.returns.categorical import reaches
from sentinel_rl.risk.measure import Parameter, RiskMeasure


class Distortion(RiskMeasure):
    """A risk measure given by a distortion ``g`` of the CDF.

    Your own is three lines, as a class or from a function.

    Example:
        >>> class Square(Distortion):
        ...     def g(self, u):
        ...         return 2 * u - u**2
        >>> float(Square().of([1, 2, 3, 4]))
        1.875
        >>> float(Distortion.from_function(lambda u: u**0.5).of([0, 4]).round(3))
        1.172
    """

    # Up to this many atoms g is cheap enough to be unrolled; see `_one_pass`.
    _longest_pass: ClassVar[int] = 0

    @abc.abstractmethod
    def g(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        """Distort cumulative probabilities ``u`` in [0, 1]."""

    def distort(self, u: Float[Array, "..."], s: Float[Array, "..."]) -> Float[Array, "..."]:
        """``g(u)``, given also ``s = 1 - u`` with all its digits. Override it where ``g`` is steep at 1."""
        del s
        return self.g(u)

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        size = law.probs.shape[-1]
        if not unrolls(size) and size <= self._longest_pass and unrolls_long():
            return _one_pass(self, law)
        value: Array = (_unrolled if unrolls(size) else _in_arrays)(self, law)
        return value

    @staticmethod
    def from_function(g: Callable[[Array], Array]) -> "Distortion":
        """Make a measure of a function ``g`` of the CDF; `check_coherence` tells what it is."""
        return _FunctionDistortion(g)


class _FunctionDistortion(Distortion):
    function: Callable[[Array], Array] = eqx.field(static=True)

    def g(self, u: Array) -> Array:
        return self.function(u)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


class _TailDistortion(Distortion):
    """A distortion that is written with both ``u`` and ``1 - u``."""

    def g(self, u: Array) -> Array:
        """Distort cumulative probabilities ``u`` in [0, 1]."""
        u = jnp.asarray(u, dtype=jnp.result_type(float, u))
        return self.distort(u, 1 - u)

    @abc.abstractmethod
    def distort(self, u: Array, s: Array) -> Array:
        """``g(u)``, given also ``s = 1 - u``."""


class Expectation(Distortion):
    """The mean, ``g(u) = u``: risk-neutral."""

    name: ClassVar[str] = "expectation"
    _longest_pass: ClassVar[int] = 64

    def g(self, u: Array) -> Array:
        """``u``."""
        return u


class CVaR(Distortion):
    """Conditional value at risk: the mean of the worst ``alpha`` of the outcomes, ``g(u) = min(u / alpha, 1)``.

    The atom on the boundary is split (Rockafellar and Uryasev 2002). ``alpha = 1`` is the mean; for the limit
    ``alpha -> 0`` use `WorstCase`.

    Args:
        alpha: mass of the worst tail, in (0, 1].

    Example:
        >>> float(CVaR(0.25).of([4, 3, 2, 1]))
        1.0
    """

    name: ClassVar[str] = "cvar"
    _longest_pass: ClassVar[int] = 64
    alpha: Parameter

    def __check_init__(self) -> None:
        _checks.parameter(
            "CVaR alpha",
            self.alpha,
            lambda x: (0 < x) & (x <= 1),
            "in (0, 1] (1: mean; for the limit 0: WorstCase)",
        )

    def g(self, u: Array) -> Array:
        """``min(u / alpha, 1)``."""
        u = jnp.asarray(u, dtype=jnp.result_type(float, u))
        return jnp.minimum(u / jnp.maximum(self.alpha, tiny(u)), 1.0)


class VaR(_TailDistortion):
    """Value at risk: the lower ``alpha``-quantile ``inf {z : F(z) >= alpha}``; ``g`` steps from 0 to 1 at alpha.

    Not coherent: it is not superadditive.

    Args:
        alpha: level, in (0, 1].
    """

    name: ClassVar[str] = "var"
    alpha: Parameter

    def __check_init__(self) -> None:
        _checks.parameter(
            "VaR alpha", self.alpha, lambda x: (0 < x) & (x <= 1), "in (0, 1] (for the limit 0: WorstCase)"
        )

    def distort(self, u: Array, s: Array) -> Array:
        """1 where ``u >= alpha``, else 0."""
        return reaches(u, s, self.alpha)


class Wang(_TailDistortion):
    """Wang's transform (2000), ``g(u) = Phi(Phi^-1(u) - Phi^-1(alpha))``.

    For a Gaussian it shifts the mean by ``Phi^-1(alpha)`` standard deviations. Coherent for ``alpha <= 1/2``.

    Args:
        alpha: in (0, 1): below 1/2 averse, 1/2 neutral, above seeking.
    """

    name: ClassVar[str] = "wang"
    alpha: Parameter

    def __check_init__(self) -> None:
        _checks.parameter(
            "Wang alpha",
            self.alpha,
            lambda x: (0 < x) & (x < 1),
            "in (0, 1): < 0.5 averse, 0.5 neutral, > 0.5 seeking",
        )

    def distort(self, u: Array, s: Array) -> Array:
        """``Phi(Phi^-1(u) - Phi^-1(alpha))``."""
        shift = ndtri(jnp.asarray(self.alpha, u.dtype))
        inside = normal_cdf(normal_quantile(u, s) - shift)
        return _pin_ends(u, s, inside)


class ProportionalHazard(_TailDistortion):
    """Proportional hazard (Wang 1995), ``g(u) = u^kappa``.

    Args:
        kappa: in (0, 1]; 1 is the mean, smaller is more averse.
    """

    name: ClassVar[str] = "proportional_hazard"
    kappa: Parameter

    def __check_init__(self) -> None:
        _checks.parameter("ProportionalHazard kappa", self.kappa, lambda x: (0 < x) & (x <= 1), "in (0, 1] (1: mean)")

    def distort(self, u: Array, s: Array) -> Array:
        """``u^kappa``."""
        return _pin_ends(u, s, jnp.exp(self.kappa * log_cdf(u, s)))


class DualPower(_TailDistortion):
    """Dual power, ``g(u) = 1 - (1 - u)^k``: for integer ``k`` the mean of the worst of ``k`` draws.

    Args:
        k: at least 1; 1 is the mean, larger is more averse.
    """

    name: ClassVar[str] = "dual_power"
    k: Parameter

    def __check_init__(self) -> None:
        _checks.parameter("DualPower k", self.k, lambda x: x >= 1, "at least 1 (1: mean)")

    def distort(self, u: Array, s: Array) -> Array:
        """``1 - (1 - u)^k``."""
        return -jnp.expm1(self.k * log_survival(u, s))


class MinMaxVar(_TailDistortion):
    """MINMAXVAR (Cherny and Madan 2009), ``g(u) = 1 - (1 - u^(1/(1+x)))^(1+x)``.

    Args:
        x: at least 0; 0 is the mean, larger is more averse.
    """

    name: ClassVar[str] = "minmaxvar"
    x: Parameter

    def __check_init__(self) -> None:
        _checks.parameter("MinMaxVar x", self.x, lambda x: x >= 0, "at least 0 (0: mean)")

    def distort(self, u: Array, s: Array) -> Array:
        """``1 - (1 - u^(1/(1+x)))^(1+x)``."""
        log_root = log_cdf(u, s) / (1 + self.x)
        near_zero = jnp.log1p(-jnp.exp(jnp.minimum(log_root, -0.5)))
        near_one = jnp.log(jnp.maximum(-jnp.expm1(log_root), tiny(u)))
        return _pin_ends(u, s, -jnp.expm1((1 + self.x) * jnp.where(log_root < -0.5, near_zero, near_one)))


class CPW(_TailDistortion):
    """Cumulative prospect weighting (Tversky and Kahneman 1992), ``g(u) = u^eta / (u^eta + (1-u)^eta)^(1/eta)``.

    Overweights both tails, so it is neither averse nor coherent below ``eta = 1``. (It stops being increasing
    below about 0.28.)

    Args:
        eta: in (0, 1]; 1 is the mean, 0.71 the fit of Wu and Gonzalez.
    """

    name: ClassVar[str] = "cpw"
    eta: Parameter

    def __check_init__(self) -> None:
        _checks.parameter("CPW eta", self.eta, lambda x: (0 < x) & (x <= 1), "in (0, 1] (1: mean)")

    def distort(self, u: Array, s: Array) -> Array:
        """``u^eta / (u^eta + (1-u)^eta)^(1/eta)``."""
        low, high = self.eta * log_cdf(u, s), self.eta * log_survival(u, s)
        return _pin_ends(u, s, jnp.exp(low - jnp.logaddexp(low, high) / self.eta))


def _in_arrays(measure: Distortion, law: CategoricalReturn) -> Float[Array, "..."]:
    """The layer form through arrays of F and 1 - F."""
    cdf, survival = cumulative(law.probs)
    layers = measure.distort(cdf[..., :-1], survival[..., :-1])
    gaps = jnp.broadcast_to(jnp.diff(law.atoms, axis=-1), layers.shape)
    # The top layer has g(1) = 1; the last probability enters here only with its NaN.
    top = law.values[..., -1] + 0 * cdf[..., -1]
    return top - jnp.sum(layers * gaps, axis=-1)


@jax.jit
def _unrolled(measure: Distortion, law: CategoricalReturn) -> Float[Array, "..."]:
    """The layer form atom by atom, which XLA compiles to one pass over the law, in registers."""
    atoms, probs = jnp.unstack(law.atoms, axis=-1), jnp.unstack(law.probs, axis=-1)
    cdf, survival = running_sums(probs), running_sums(probs[::-1])[::-1]
    layers = [
        measure.distort(jnp.clip(u, 0.0, 1.0), jnp.clip(s, 0.0, 1.0))
        for u, s in zip(cdf[:-1], survival[1:], strict=True)
    ]
    widths = [upper - lower for lower, upper in itertools.pairwise(atoms)]
    # The top layer has g(1) = 1; the last probability enters here only with its NaN.
    top = atoms[-1] + 0 * probs[-1]
    sums = running_sums([layer * width for layer, width in zip(layers, widths, strict=True)])
    return top - sums[-1] if sums else top


@jax.custom_jvp
def _one_pass(measure: Distortion, law: CategoricalReturn) -> Float[Array, "..."]:
    """`_unrolled`, but differentiated through arrays: the derivative of a long unrolled loop is slow."""
    value: Array = _unrolled(measure, law)
    return value


@_one_pass.defjvp
def _one_pass_jvp(
    primals: tuple[Distortion, CategoricalReturn], tangents: tuple[Distortion, CategoricalReturn]
) -> tuple[Array, Array]:
    return jax.jvp(_in_arrays, primals, tangents)


def _pin_ends(u: Array, s: Array, inside: Array) -> Array:
    """Set ``g(0) = 0`` and ``g(1) = 1`` exactly, with zero gradient; a NaN passes through."""
    return jnp.where(u <= 0, jnp.zeros_like(u), jnp.where(s <= 0, jnp.ones_like(u), inside))
