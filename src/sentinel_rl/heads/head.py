"""What a head is: the law of the return that a network's outputs stand for, its target, its loss, its divergence.

A head is written for one law; agents map it over members, actions and samples. One of your own derives from `Head`; its
name goes into `sentinel_rl.heads.named`.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from sentinel_rl.belief import Divergence
from sentinel_rl.replay import Replay
from sentinel_rl.returns import CategoricalReturn

# The risk of laws, a number each: a risk measure.
Risk = Callable[[CategoricalReturn], Float[Array, "..."]]


class Head(eqx.Module):
    """The law of the return of one action, from ``outputs`` numbers of a network."""

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """The numbers that a network returns for every action."""

    @abc.abstractmethod
    def law(self, outputs: Float[Array, "... n"]) -> CategoricalReturn:
        """The laws that outputs stand for."""

    @abc.abstractmethod
    def laws_and_losses(
        self, outputs: Float[Array, "K ... n"], divergence: Divergence
    ) -> tuple[CategoricalReturn, Float[Array, "K ..."]]:
        """The laws of K members, and FTRL's losses: how far each is from what all of them say together."""

    @abc.abstractmethod
    def target(
        self, outputs: Float[Array, " n"], reward: Float[Array, ""], discount: Float[Array, ""]
    ) -> tuple[Float[Array, " m"], dict[str, Float[Array, ""]]]:
        """What the law of an action is compared with when ``reward + discount Z`` is, and numbers for the metrics.

        Args:
            outputs: those of the law Z of the successor.
            reward: of the step, or of several.
            discount: of the successor; 0 where there is none.
        """

    @abc.abstractmethod
    def loss(self, outputs: Float[Array, " n"], target: Float[Array, " m"]) -> Float[Array, ""]:
        """How far the law of an action is from a target; its gradient is what is learnt from."""

    @abc.abstractmethod
    def options(self) -> Mapping[str, Any]:
        """The options that make this head again, its name under ``head``; one without a name gives itself."""

    @property
    def upwards(self) -> tuple[float, ...]:
        """What to add to the outputs so that the law moves up: to all of them the same, as for quantiles."""
        return (1.0,) * self.outputs

    def risks_in_columns(
        self, columns: Float[Array, "K A n batch"], risk: Risk, divergence: Divergence
    ) -> tuple[Float[Array, "K A batch"], Float[Array, "K A batch"]] | None:
        """Risks and losses of many observations along the last axis, which a CPU does many at a time; None: it can not.

        The numbers are those of `laws_and_losses`.
        """
        return None

    def warning(self, gamma: float, t: int, metrics: Mapping[str, float], replay: Callable[[], Replay]) -> str | None:
        """What to tell the user after ``t`` steps, given the mean metrics of the latest updates; None if nothing."""
        return None
