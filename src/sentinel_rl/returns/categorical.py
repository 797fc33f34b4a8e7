"""Laws of a return on finitely many atoms, the output of a categorical (C51) network."""

import functools
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sentinel_rl import _checks
from sentinel_rl._numerics import cumulative, safe_sqrt, sort_few, unrolls


class Support(eqx.Module):
    """A uniform grid of return values, ``z_j = low + j (high - low) / (size - 1)``.

    Example:
        >>> Support(0.0, 1.0, 5).atoms
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """

    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    size: int = eqx.field(static=True, default=51)

    def __check_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"Support needs finite low < high, got low={self.low}, high={self.high}")
        if self.size < 2:
            raise ValueError(f"Support needs at least 2 atoms, got size={self.size}")

    @property
    def step(self) -> float:
        """Distance between neighbouring atoms."""
        return (self.high - self.low) / (self.size - 1)

    @property
    def atoms(self) -> Float[Array, " n"]:
        """The grid, built in float64 and then cast to JAX's default float."""
        return jnp.asarray(np.linspace(self.low, self.high, self.size), dtype=jnp.result_type(float))


class CategoricalReturn(eqx.Module):
    """A return distribution: probability ``probs[..., j]`` on the value ``atoms[..., j]``.

    The atoms ascend (ties are allowed) and either have the shape of `probs` or broadcast to it: a grid of
    shape ``[n]`` shared by all laws is the usual case. Leading axes (member, action, batch) are free.

    Args:
        atoms: finite values, ascending along the last axis.
        probs: non-negative, summing to 1 along the last axis within 1e-4.

    Raises:
        ValueError: for values or shapes that are not a law. Inside ``jit`` only shapes are checked.

    Example:
        >>> coin = CategoricalReturn([0.0, 10.0], [0.9, 0.1])
        >>> print(coin.mean(), coin.std())
        1.0 3.0
    """

    atoms: Float[Array, "... n"]
    probs: Float[Array, "... n"]

    def __init__(self, atoms: ArrayLike, probs: ArrayLike):
        self.atoms, self.probs = _floats(atoms, probs)
        if self.probs.ndim == 0 or self.atoms.ndim == 0:
            raise ValueError(
                f"a law needs arrays of atoms and of probs, got shapes {self.atoms.shape} and {self.probs.shape}"
            )
        _require_broadcast(self.atoms.shape, self.probs.shape)
        _checks.ascending("atoms", self.atoms)
        _checks.probabilities("probs", self.probs, axis=-1)

    @classmethod
    def from_samples(cls, values: ArrayLike, weights: ArrayLike | None = None, axis: int = -1) -> Self:
        """Build the law of (weighted) samples: sorts them and normalises the weights.

        Args:
            values: finite samples, in any order.
            weights: non-negative, not all zero, of the shape of `values` or one weight per sample along
                `axis`; equal when None.
            axis: the axis of `values` that runs over the samples.
        """
        samples, masses = _floats(values, 1.0 if weights is None else weights)
        _checks.samples(samples, masses, axis)
        samples = jnp.moveaxis(samples, axis, -1)
        masses = jnp.moveaxis(masses, axis, -1) if masses.ndim > 1 else masses
        masses = jnp.broadcast_to(masses, samples.shape)
        if unrolls(samples.shape[-1]):
            return cls(*_sort_few(samples, masses))
        if weights is None:
            ordered = jnp.sort(samples, axis=-1)
            ordered = jnp.where(jnp.isnan(ordered[..., -1:]), jnp.nan, ordered)  # NaN, sorted to the end, spoils all
            return cls(ordered, jnp.full(samples.shape, 1 / samples.shape[-1], samples.dtype))
        samples, masses = jax.lax.sort((_inside(samples, masses), masses), num_keys=1)
        # Dividing by the largest first keeps the sum from overflowing or vanishing.
        masses = masses / jnp.max(masses, axis=-1, keepdims=True)
        return cls(samples, masses / jnp.sum(masses, axis=-1, keepdims=True))

    @property
    def values(self) -> Float[Array, "... n"]:
        """The atoms, broadcast to the shape of `probs`."""
        return jnp.broadcast_to(self.atoms, self.probs.shape)

    def mean(self) -> Float[Array, "..."]:
        """Expectation, ``sum_j p_j z_j``."""
        return jnp.sum(self.probs * self.values, axis=-1)

    def variance(self) -> Float[Array, "..."]:
        """Variance, summed around the mean."""
        centred = self.values - self.mean()[..., None]
        return jnp.sum(self.probs * centred**2, axis=-1)

    def std(self) -> Float[Array, "..."]:
        """Standard deviation; its gradient at a point mass is zero."""
        return safe_sqrt(self.variance())

    def cdf(self) -> Float[Array, "... n"]:
        """Cumulative probabilities ``F_j = p_1 + ... + p_j`` at the atoms, clipped to [0, 1]."""
        return cumulative(self.probs)[0]

    def survival(self) -> Float[Array, "... n"]:
        """``1 - F_j``, summed from the top so that no digit is lost where it is small."""
        return cumulative(self.probs)[1]

    def quantile(self, u: ArrayLike) -> Float[Array, "..."]:
        """Lower quantile ``inf {z : F(z) >= u}`` of every law, for one level `u` in (0, 1]."""
        if np.ndim(u) != 0:
            raise ValueError(f"quantile takes one level u, got shape {np.shape(u)}: use jax.vmap(law.quantile)(u)")
        _checks.parameter("quantile level u", u, lambda x: (0 < x) & (x <= 1), "in (0, 1]")
        reached = reaches(self.cdf(), self.survival(), u)
        above = jnp.minimum(jnp.sum(1 - reached, axis=-1), self.probs.shape[-1] - 1)
        atom = jnp.take_along_axis(self.values, above[..., None].astype(int), axis=-1)[..., 0]
        return jnp.where(jnp.isnan(above), jnp.nan, atom)

    def mixture(self, weights: ArrayLike | None = None) -> Self:
        """Mix the laws of the leading (member) axis, ``sum_i w_i Z_i``.

        Members on one shared grid stay on it; members with atoms of their own give a law on all atoms.

        Args:
            weights: ``[K]`` or ``[K, ...]``, summing to 1 over the members; equal when None.
        """
        if self.probs.ndim < 2:
            raise ValueError(f"mixture needs a leading member axis, got probs of shape {self.probs.shape}")
        masses = member_weights(weights, self.probs.shape[:-1], self.probs.dtype)
        weighted = masses[..., None] * self.probs
        if self.atoms.ndim < self.probs.ndim or self.atoms.shape[0] == 1:
            atoms = self.atoms if self.atoms.ndim < self.probs.ndim else self.atoms[0]
            return type(self)(atoms, jnp.sum(weighted, axis=0))
        atoms, mixed = (jnp.concatenate(list(part), axis=-1) for part in (self.values, weighted))
        return type(self)(*jax.lax.sort((atoms, mixed), num_keys=1))


def reaches(cdf: Array, survival: Array, level: ArrayLike) -> Array:
    """1 where ``F >= level`` and 0 where not, forgiving the rounding of the running sum; NaN stays NaN."""
    slack = 4 * jnp.finfo(cdf.dtype).eps
    level = jnp.asarray(level, cdf.dtype)
    excess = jnp.where(cdf > 0.5, (1 - level) - survival, cdf - level)
    return jnp.where(excess >= -slack, 1.0, jnp.where(excess < -slack, 0.0, excess)).astype(cdf.dtype)


def member_weights(weights: ArrayLike | None, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Check weights over the leading axis and broadcast them to ``shape``; equal weights for None."""
    if weights is None:
        return jnp.full(shape, 1.0 / shape[0], dtype)
    masses = jnp.asarray(weights, dtype)
    if masses.ndim == 1:
        masses = masses.reshape((-1,) + (1,) * (len(shape) - 1))
    try:
        masses = jnp.broadcast_to(masses, shape)
    except ValueError:
        raise ValueError(
            f"weights of shape {np.shape(weights)} do not fit members of shape {shape}: "
            f"give one weight per member [{shape[0]}], or {shape}"
        ) from None
    _checks.probabilities("weights", masses, axis=0)
    return masses


def _inside(samples: Array, masses: Array) -> Array:
    """Move samples of zero weight into the range of the others: far away, they would cost digits in every sum."""
    low = jnp.min(jnp.where(masses > 0, samples, jnp.inf), axis=-1, keepdims=True)
    high = jnp.max(jnp.where(masses > 0, samples, -jnp.inf), axis=-1, keepdims=True)
    return jnp.clip(samples, low, high)


def _sort_few(samples: Array, masses: Array) -> tuple[Array, Array]:
    """Sort and normalise a few samples like `CategoricalReturn.from_samples`, without a reduction over an axis."""
    values, weights = jnp.unstack(samples, axis=-1), jnp.unstack(masses, axis=-1)
    pairs = list(zip(values, weights, strict=True))
    low = functools.reduce(jnp.minimum, [jnp.where(w > 0, v, jnp.inf) for v, w in pairs])
    high = functools.reduce(jnp.maximum, [jnp.where(w > 0, v, -jnp.inf) for v, w in pairs])
    largest = functools.reduce(jnp.maximum, weights)
    scaled = [w / largest for w in weights]
    total = functools.reduce(jnp.add, scaled)
    keys, ordered = sort_few([jnp.clip(v, low, high) for v in values], [w / total for w in scaled])
    return jnp.stack(keys, axis=-1), jnp.stack(ordered, axis=-1)


def _floats(*arrays: ArrayLike) -> tuple[Array, ...]:
    """Convert to JAX arrays of one floating dtype, float32 in place of half precision: sums need its digits."""
    converted = [jnp.asarray(array) for array in arrays]
    dtype = jnp.result_type(*converted, 1.0)
    dtype = jnp.promote_types(dtype, jnp.float32)
    return tuple(array.astype(dtype) for array in converted)


def _require_broadcast(atoms: tuple[int, ...], probs: tuple[int, ...]) -> None:
    """Raise unless atoms broadcast to probs, without adding axes to them."""
    fits = len(atoms) <= len(probs) and atoms[-1] == probs[-1]
    fits = fits and all(a in (1, p) for a, p in zip(atoms[::-1], probs[::-1], strict=False))
    if not fits:
        raise ValueError(
            f"atoms of shape {atoms} and probs of shape {probs} do not match: "
            f"the last axes must be equal and the leading axes of atoms must broadcast to those of probs"
        )
