"""The mean less a penalty on deviations."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl import _checks
from sentinel_rl._numerics import safe_power
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk.measure import Parameter, RiskMeasure


class MeanStd(RiskMeasure):
    """``E Z - c sd(Z)``, the paper's "sd" for ``c = 1``.

    Not coherent: 0 for sure has value 0, but 10 with probability 0.1 and else 0, which is never worse, has
    value -2. `MeanSemideviation` is its coherent replacement.

    Args:
        c: at least 0.
    """

    name: ClassVar[str] = "mean_std"
    c: Parameter = 1.0

    def __check_init__(self) -> None:
        _checks.parameter("MeanStd c", self.c, lambda x: x >= 0, "at least 0 (0: mean)")

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        return law.mean() - self.c * law.std()


class MeanVariance(RiskMeasure):
    """``E Z - c Var(Z)``. Neither monotone nor positively homogeneous.

    Args:
        c: at least 0, in units of one over the return.
    """

    name: ClassVar[str] = "mean_variance"
    c: Parameter = 1.0

    def __check_init__(self) -> None:
        _checks.parameter("MeanVariance c", self.c, lambda x: x >= 0, "at least 0 (0: mean)")

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        return law.mean() - self.c * law.variance()


class MeanSemideviation(RiskMeasure):
    """``E Z - c E[(E Z - Z)_+^p]^(1/p)``: only outcomes below the mean count. Coherent.

    Args:
        c: in [0, 1].
        p: at least 1.
    """

    name: ClassVar[str] = "mean_semideviation"
    c: Parameter = 1.0
    p: Parameter = 2.0

    def __check_init__(self) -> None:
        _checks.parameter("MeanSemideviation c", self.c, lambda x: (0 <= x) & (x <= 1), "in [0, 1] (0: mean)")
        _checks.parameter("MeanSemideviation p", self.p, lambda x: x >= 1, "at least 1")

    def _value(self, law: CategoricalReturn) -> Float[Array, "..."]:
        mean = law.mean()
        shortfall = jnp.where(law.probs == 0, 0.0, jnp.maximum(mean[..., None] - law.values, 0.0))
        scale = jnp.max(shortfall, axis=-1)
        scale = jnp.where(scale == 0, jnp.ones_like(scale), scale)
        # XLA multiplies by the inverse of the scale, which for the largest numbers would be rounded to zero.
        unit = (shortfall / 4) / (scale / 4)[..., None]
        moment = jnp.sum(law.probs * safe_power(unit, self.p), axis=-1)
        return mean - self.c * scale * safe_power(moment, 1 / self.p)
