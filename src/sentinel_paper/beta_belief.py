"""The decision problem of example 3: a safe action against one whose odds are only known by a belief.

    Z(a1) = N(0, 1),   Z(a2) = omega N(1, 1) + (1 - omega) N(-1, 1),   omega ~ Beta(c m, c (1 - m))

with mean m and concentration c: worth c observations. With ``rho(omega) = CVaR_alpha`` of Z(a2) given omega,
the uncertain action a2 is worth

    risk-neutral  E Z(a2) = 2 m - 1
    additive      E rho(omega)
    composite     CVaR_alpha of rho(omega)
    known         rho(m), to someone who knows that omega = m; also the total risk, of the mixture over the belief

Both integrals run over the quantiles of omega, by Gauss-Legendre quadrature on [0, alpha] and on [alpha, 1].
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import betaincinv

from sentinel_rl.returns import CategoricalReturn, GaussianMixture
from sentinel_rl.risk import CVaR

NODES = 40
BISECTIONS = 30


@dataclasses.dataclass(frozen=True)
class Values:
    """What the uncertain action is worth to each decision maker, one number per belief."""

    neutral: np.ndarray
    additive: np.ndarray
    composite: np.ndarray
    known: np.ndarray

    def __getitem__(self, place: int | slice) -> "Values":
        """The values for some of the beliefs."""
        return Values(*(getattr(self, field.name)[place] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """The belief means above which a decision maker takes the uncertain action, one per concentration."""

    known: float
    additive: np.ndarray
    composite: np.ndarray


def safe_value(alpha: float) -> float:
    """CVaR of the safe action."""
    with jax.enable_x64(True):
        return float(jax.jit(lambda: GaussianMixture.gaussian(0.0, 1.0).tail_mean(alpha))())


def values(mean: np.ndarray, concentration: np.ndarray, alpha: float) -> Values:
    """What the uncertain action is worth under beliefs with these means and concentrations (two vectors)."""
    levels, masses = _quadrature(alpha)
    omegas = betaincinv((concentration * mean)[:, None], (concentration * (1 - mean))[:, None], levels)
    with jax.enable_x64(True):
        additive, composite, known = map(np.asarray, _risks(omegas, masses, mean, alpha))
    return Values(2 * mean - 1, additive, composite, known)


def thresholds(concentration: np.ndarray, alpha: float, report: Callable[[int, int], None]) -> Thresholds:
    """Where the uncertain action is worth as much as the safe one; all concentrations are bisected at once."""
    safe, beliefs = safe_value(alpha), np.tile(concentration, 3)
    low, high = np.zeros((3, concentration.size)), np.ones((3, concentration.size))
    for step in range(BISECTIONS):
        report(step, BISECTIONS)
        middle = (low + high) / 2
        found = values(middle.ravel(), beliefs, alpha)
        worth = np.stack([found.known, found.additive, found.composite]).reshape(3, 3, -1)[np.arange(3), np.arange(3)]
        low, high = np.where(worth < safe, middle, low), np.where(worth < safe, high, middle)
    report(BISECTIONS, BISECTIONS)
    known, additive, composite = (low + high) / 2
    return Thresholds(float(known[0]), additive, composite)


@functools.lru_cache
def _quadrature(alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantile levels of a belief and their masses; none lies across the level alpha.

    Quantiles are steep at 0 and 1: with ``u = alpha s^4`` and ``1 - u = (1 - alpha) s^4`` the nodes crowd there.
    """
    points, weights = np.polynomial.legendre.leggauss(NODES)
    s = (points + 1) / 2
    masses = 2 * s**3 * weights
    levels = np.concatenate([alpha * s**4, 1 - (1 - alpha) * s**4])
    return levels, np.concatenate([alpha * masses, (1 - alpha) * masses])


@jax.jit
def _risks(
    omegas: Float[Array, "beliefs nodes"], masses: Float[Array, " nodes"], mean: Float[Array, " beliefs"], alpha: float
) -> tuple[Array, Array, Array]:
    """Additive and composite CVaR of the uncertain action, and its CVaR for known omega."""
    odds = jnp.concatenate([omegas, mean[:, None]], axis=1)
    risks = GaussianMixture(jnp.array([1.0, -1.0]), 1.0, jnp.stack([odds, 1 - odds], axis=-1)).tail_mean(alpha)
    believed = CategoricalReturn.from_samples(risks[:, :-1], masses)
    return believed.mean(), CVaR(alpha)(believed), risks[:, -1]
