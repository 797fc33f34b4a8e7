"""What is needed to compare estimates with a Gaussian mixture: its grid projection and its distances.

All of it follows from the integrated tails

    L(x) = int_{-inf}^x F(z) dz = E (x - Z)_+        U(x) = int_x^inf (1 - F(z)) dz = E (Z - x)_+

for which a Gaussian has ``L(x) = sd (z Phi(z) + phi(z))`` with ``z = (x - mean) / sd``.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, ArrayLike, Float

from sentinel_rl.returns.categorical import CategoricalReturn, Support
from sentinel_rl.returns.gaussian import GaussianMixture

# Beyond so many standard deviations a Gaussian has no mass that float64 could add to 1.
_REACH = 10.0
_POINTS = 8193


def lower(law: GaussianMixture, x: ArrayLike) -> Float[Array, "..."]:
    """``L(x) = E (x - Z)_+`` of a law without leading axes, small in the lower tail."""
    points = jnp.asarray(x, law.means.dtype)
    total = jnp.zeros_like(points)
    for weight, mean, std in zip(law.weights, law.means, law.stds, strict=True):
        z = (points - mean) / std
        total += weight * std * (z * norm.cdf(z) + norm.pdf(z))
    return total


def upper(law: GaussianMixture, x: ArrayLike) -> Float[Array, "..."]:
    """``U(x) = E (Z - x)_+`` of a law without leading axes, small in the upper tail."""
    return lower(GaussianMixture(-law.means, law.stds, law.weights), -jnp.asarray(x))


def on_grid(law: GaussianMixture, support: Support) -> CategoricalReturn:
    """Project on a grid: every outcome is split between its two neighbours in proportion to nearness.

    ``p_j = E hat_j(Z)`` with the hat function of atom ``j``, which is a second difference of `lower` or, equally,
    of `upper`: of each the half where it is small is used, and no digit is lost. Outcomes beyond an edge go to it.
    """
    atoms, step = support.atoms, support.step
    low, high = lower(law, atoms), upper(law, atoms)
    inner = jnp.where(atoms[1:-1] < law.mean(), jnp.diff(low, 2), jnp.diff(high, 2))
    probs = jnp.concatenate([low[1:2] - low[:1], inner, high[-2:-1] - high[-1:]]) / step
    return CategoricalReturn(atoms, jnp.maximum(probs, 0.0))


def wasserstein1(law: GaussianMixture, estimate: CategoricalReturn | GaussianMixture) -> Float[Array, "..."]:
    """Wasserstein-1 distance ``int |F - G| dz`` of a law without leading axes and an estimate."""
    if isinstance(estimate, CategoricalReturn):
        return _to_atoms(law, estimate)
    ends = [(part.means - _REACH * part.stds, part.means + _REACH * part.stds) for part in (law, estimate)]
    low = jnp.minimum(*(jnp.min(start) for start, _ in ends))
    high = jnp.maximum(*(jnp.max(stop) for _, stop in ends))
    points = jnp.linspace(low, high, _POINTS)
    return jnp.trapezoid(jnp.abs(law.cdf(points) - estimate.cdf(points)), points)


def _to_atoms(law: GaussianMixture, estimate: CategoricalReturn) -> Float[Array, "..."]:
    """Exact distance to a law on atoms, whose CDF is the constant ``c_j`` between two of them.

    There ``int |F - c|`` is split at the point ``q`` with ``F(q) = c``, moved into the cell ``[a, b]``: with
    ``L`` from above it is ``L(a) + L(b) - 2 L(q) + c (2 q - a - b)``.
    """
    atoms = estimate.values
    a, b = atoms[..., :-1], atoms[..., 1:]
    c = estimate.cdf()[..., :-1]
    info = np.finfo(c.dtype)
    q = jnp.clip(law.quantile(jnp.clip(c, info.tiny, 1 - info.epsneg)), a, b)
    cells = lower(law, a) + lower(law, b) - 2 * lower(law, q) + c * (2 * q - a - b)
    return lower(law, atoms[..., 0]) + jnp.sum(cells, axis=-1) + upper(law, atoms[..., -1])
