"""What a risk measure is."""

import abc
import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sentinel_rl._checks import known
from sentinel_rl._precision import in_own_precision
from sentinel_rl.returns import CategoricalReturn

# The classes of measures by their names.
MEASURES: "dict[str, type[RiskMeasure]]" = {}

Parameter = float | np.number | np.ndarray | Array


class RiskMeasure(eqx.Module):
    """A certainty equivalent: maps the law of a return to a number in its units, **higher is better**.

    A measure is coherent (Artzner et al. 1999, in reward orientation) when for all returns X, Y

    * monotone: ``X <= Y`` surely implies ``rho(X) <= rho(Y)``
    * translation invariant: ``rho(X + c) = rho(X) + c``
    * positively homogeneous: ``rho(c X) = c rho(X)`` for ``c >= 0``
    * superadditive: ``rho(X + Y) >= rho(X) + rho(Y)`` (diversification never hurts)

    `sentinel_rl.risk.check_coherence` searches for counterexamples. Parameters are pytree leaves: a measure
    passes through ``jit``, and ``vmap`` maps over its parameters as over data. Values are checked when a measure
    is made; inside ``jit`` they are not known and the formula is evaluated as it stands.

    A class with a ``name`` registers itself: `sentinel_rl.risk.parse_risk`, command lines and saved policies know it as
    ``name:parameter,parameter``.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Register the class under its own name."""
        super().__init_subclass__(**arguments)
        if (name := cls.__dict__.get("name")) is None:
            return
        known = MEASURES.get(name.lower(), cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"the risk measure {name!r} is {known.__qualname__} already: choose another name")
        MEASURES[name.lower()] = cls

    @abc.abstractmethod
    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        """The risk of every law, given scalar parameters."""

    def __call__(self, law: CategoricalReturn) -> Float[Array, "..."]:
        """Return the risk of every law along the last axis."""
        for leaf in jax.tree.leaves(self):
            if jnp.ndim(leaf) != 0:
                raise ValueError(
                    f"{type(self).__name__} holds parameters of shape {jnp.shape(leaf)}: one measure has scalar "
                    f"parameters. Map over them: jax.vmap(lambda m: m(law))(measure)"
                )
        value = self._value(law)
        _require_finite(self, value, law)
        return value

    def of(self, values: ArrayLike, weights: ArrayLike | None = None, axis: int = -1) -> Any:
        """Return the risk of (weighted) samples along an axis, in any order.

        NumPy arrays and lists are computed in their own precision (lists in float64) and give NumPy back,
        whatever JAX's default precision is; JAX arrays give JAX arrays.

        Args:
            values: finite samples.
            weights: non-negative, normalised here; the shape of `values` or one per sample. Equal when None.
            axis: the axis of the samples.

        Example:
            >>> from sentinel_rl.risk import CVaR
            >>> float(CVaR(0.25).of([3, 1, 4, 2]))
            1.0
        """

        def risk(v: ArrayLike, w: ArrayLike | None) -> Array:
            return self(CategoricalReturn.from_samples(v, w, axis))

        return in_own_precision(risk, values, weights, parameters=self)

    def __str__(self) -> str:
        """Return the text that `parse_risk` reads back, for example ``cvar:0.25``."""
        parameters = ",".join(_shortest(getattr(self, field.name)) for field in dataclasses.fields(self))
        name = getattr(self, "name", type(self).__name__)
        return f"{name}:{parameters}" if parameters else name


def _require_finite(measure: RiskMeasure, value: Array, law: CategoricalReturn) -> None:
    """Raise `ValueError` where a risk of finite atoms is beyond the largest number; a NaN that came in stays one."""
    if not known(value, law.atoms, law.probs) or np.isfinite(np.asarray(value)).all():
        return
    if all(np.isfinite(np.asarray(part)).all() for part in (law.atoms, law.probs)):
        largest = float(np.max(np.abs(np.asarray(law.atoms))))
        raise ValueError(
            f"the risk {measure} of atoms as large as {largest:.4g} cannot be computed in {law.probs.dtype}: a sum is "
            f"beyond its largest number, {jnp.finfo(law.probs.dtype).max:.4g}. Give float64, or divide by a unit"
        )


def _shortest(value: Parameter) -> str:
    """The shortest decimal that reads back as the same number; arrays and tracers as they print."""
    return repr(float(value)) if known(value) and jnp.ndim(value) == 0 else str(value)
