"""Laws that are corrected by what happened: a map of probability levels, and an agent that looks through it.

A law is calibrated where the return falls below its ``u`` quantile with the frequency ``u``. The map sends the levels
of the predicted laws to frequencies that were seen, ``F'(z) = R(F(z))`` (Kuleshov, Fenner and Ermon 2018). One map
serves all members: it is fitted so that their *mixture* is calibrated, and keeps what they disagree about.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from sentinel_rl._numerics import tiny
from sentinel_rl.agents.agent import Account, best_action, epsilon_greedy
from sentinel_rl.agents.frozen import FrozenWrapper
from sentinel_rl.belief import Belief
from sentinel_rl.errors import UsageError
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Composite, assess
from sentinel_rl.scoring import calibration_error, cdf_at

# Frequencies at which the map is known: every fortieth, and closer to both ends.
_TAIL = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04)
LEVELS = (0.0, *_TAIL, *(round(0.025 * i, 3) for i in range(2, 39)), *(1 - tail for tail in reversed(_TAIL)), 1.0)
# Places at which the quantiles of a slice between two levels are averaged.
_PLACES = 4
_ROUNDS = 20
# Outcomes beyond all atoms, as a share, that call for moving the laws before their levels are corrected.
_OUTSIDE = 0.02


class Recalibration(eqx.Module):
    """A map from the levels of predicted laws to the frequencies that were seen.

    Args:
        predicted: levels of the predicted laws, ascending from 0 to 1.
        seen: how often outcomes fell below them, ascending from 0 to 1, strictly.
        shift: added to every law first, in units of the return.
        widen: factor by which a law is then stretched around its mean.

    Example:
        >>> too_narrow = Recalibration([0.0, 0.01, 0.5, 0.99, 1.0], [0.0, 0.1, 0.5, 0.9, 1.0])
        >>> law = too_narrow.law(CategoricalReturn([0.0, 1.0, 2.0], [0.01, 0.98, 0.01]))
        >>> print(law.probs, law.mean())
        [0.1        0.4        0.39999998 0.10000002] 1.0
    """

    predicted: Float[Array, " m"]
    seen: Float[Array, " m"]
    shift: Float[Array, ""]
    widen: Float[Array, ""]

    def __init__(self, predicted: ArrayLike, seen: ArrayLike, shift: float = 0.0, widen: float = 1.0):
        for name, levels, strict in (("predicted", predicted, False), ("seen", seen, True)):
            numbers = np.asarray(levels, np.float64)
            fine = numbers.ndim == 1 and numbers.size >= 2 and numbers.size == np.size(predicted)
            fine = fine and bool(np.isfinite(numbers).all()) and (numbers[0], numbers[-1]) == (0.0, 1.0)
            steps = np.diff(numbers)
            if not fine or (steps < 0).any() or (strict and (steps <= 0).any()):
                raise UsageError(f"{name} must ascend from 0 to 1, as many levels as there are frequencies seen")
        if not (np.isfinite(shift) and np.isfinite(widen) and widen > 0):
            raise UsageError(f"shift and widen must be finite and widen positive, got {shift} and {widen}")
        self.predicted, self.seen = jnp.asarray(predicted, float), jnp.asarray(seen, float)
        self.shift, self.widen = jnp.asarray(shift, float), jnp.asarray(widen, float)

    def law(self, law: CategoricalReturn) -> CategoricalReturn:
        """The corrected law ``[..., m - 1]``: an atom for each slice between two levels, with the seen frequency.

        The law is read as cells, see `sentinel_rl.scoring.cdf_at`; the atom is the mean of what lies in the slice.
        """
        share = (jnp.arange(_PLACES) + 0.5) / _PLACES
        levels = self.predicted[:-1, None] + jnp.diff(self.predicted)[:, None] * share[None]
        inside = _quantiles(_moved(law, self.shift, self.widen), levels.reshape(-1))
        atoms = jnp.mean(inside.reshape(*inside.shape[:-1], -1, _PLACES), axis=-1)
        atoms = jax.lax.cummax(atoms, axis=atoms.ndim - 1)  # rounding keeps the order
        return CategoricalReturn(atoms, jnp.broadcast_to(jnp.diff(self.seen), atoms.shape))

    def belief(self, belief: Belief) -> Belief:
        """Every member's law corrected, with the weights that it had."""
        return Belief(self.law(belief.members), belief.weights)


def _moved(law: CategoricalReturn, shift: float | Array, widen: float | Array) -> CategoricalReturn:
    """Laws with their means shifted, and stretched around them."""
    mean = law.mean()[..., None]
    return CategoricalReturn(mean + (law.values - mean) * widen + shift, law.probs)


def _quantiles(law: CategoricalReturn, levels: Float[Array, " m"]) -> Float[Array, "... m"]:
    """The quantiles of laws that are read as cells."""
    values, probs, upto = law.values, law.probs, law.cdf()
    middles = (values[..., 1:] + values[..., :-1]) / 2
    left, right = (
        jnp.concatenate(parts, axis=-1) for parts in ([values[..., :1], middles], [middles, values[..., -1:]])
    )
    ends = jnp.broadcast_to(upto[..., None, :-1], (*upto.shape[:-1], levels.size, upto.shape[-1] - 1))
    cell = jnp.sum(ends <= jnp.broadcast_to(levels[:, None], ends.shape), axis=-1)
    low, high, mass, reached = (jnp.take_along_axis(part, cell, axis=-1) for part in (left, right, probs, upto))
    share = 1 - (reached - jnp.broadcast_to(levels, reached.shape)) / jnp.maximum(mass, tiny(mass))
    return low + jnp.clip(share, 0.0, 1.0) * (high - low)


def fit_recalibration(members: CategoricalReturn, weights: ArrayLike, outcome: ArrayLike) -> Recalibration:
    """Fit the map on what happened, so that the mixture of the corrected members is calibrated.

    Args:
        members: predicted laws ``[K, T, n]``.
        weights: of the members, ``[K, T]``.
        outcome: what happened, ``[T]``.

    Raises:
        UsageError: for fewer outcomes than the map has levels.
    """
    y = np.asarray(outcome, np.float64)
    if y.ndim != 1 or y.size < len(LEVELS):
        raise UsageError(f"a map of {len(LEVELS)} levels needs at least as many outcomes, got shape {y.shape}")
    masses, seen = np.asarray(weights, np.float64), np.array(LEVELS)
    shift, widen = _reach(members, masses, y)
    below, upto = cdf_at(_moved(members, shift, widen), np.broadcast_to(y, members.probs.shape[:-1]))
    middle = (below + upto) / 2
    predicted, best, error = seen, seen, np.inf
    # Mixing corrected laws is not correcting their mixture: the map is corrected until the mixture is.
    for _ in range(_ROUNDS):
        mixed = (masses * np.interp(middle, *_increasing(predicted, seen))).sum(0)
        if (now := calibration_error(mixed)) < error:
            best, error = predicted, now
        wanted = np.quantile(mixed, seen[1:-1])
        predicted = np.concatenate([[0.0], np.interp(wanted, seen, predicted), [1.0]])
    return Recalibration(best, seen, shift, widen)


def _reach(members: CategoricalReturn, weights: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """By how much laws must be shifted and widened so that nearly all outcomes lie within them; 0 and 1 if they do.

    A map of levels cannot move a law to where it has no mass, and the atoms of quantiles may be far from what happens.
    """
    values, means = np.asarray(members.values, np.float64), np.asarray(members.mean(), np.float64)
    low, high, mean = values[..., 0].min(0), values[..., -1].max(0), (weights * means).sum(0)
    if np.mean((y < low) | (y > high)) <= _OUTSIDE:
        return 0.0, 1.0
    shift = float(np.median(y - mean))
    left = y - mean - shift
    sides = ((-left, np.median(mean - low)), (left, np.median(high - mean)))
    widen = max(float(np.quantile(far, 1 - _OUTSIDE / 2) / reach) if reach > 0 else 1.0 for far, reach in sides)
    return shift, max(widen, 1.0)


def _increasing(predicted: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The map without places at which it jumps: equal levels get the mean of their frequencies."""
    levels, place, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    frequencies = np.bincount(place, seen) / counts
    frequencies[0], frequencies[-1] = (0.0 if counts[0] == 1 else frequencies[0]), 1.0
    return levels, frequencies


class Recalibrated(FrozenWrapper):
    """A trained agent that acts and explains itself with corrected laws; its state is that of the agent inside.

    Args:
        agent: one with laws: it has ``belief(state, obs)`` and ``composite``.
        recalibration: the map.
    """

    agent: Any
    recalibration: Recalibration

    def __check_init__(self) -> None:
        if not (hasattr(self.agent, "belief") and hasattr(self.agent, "composite")):
            raise UsageError(f"{type(self.agent).__name__} has no laws of the return that could be recalibrated")

    @property
    def composite(self) -> Composite:
        """The composite risk that is maximised."""
        composite: Composite = self.agent.composite
        return composite

    def belief(self, state: Any, obs: Float[Array, " obs"]) -> Belief:
        """What the members expect of every action at one observation, corrected."""
        return self.recalibration.belief(self.agent.belief(state, obs))

    def act(self, state: Any, obs: Float[Array, " obs"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest composite risk of the corrected laws, or with probability epsilon any."""
        return epsilon_greedy(self.composite(self.belief(state, obs)), epsilon, key)

    def greedy(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest composite risk of the corrected laws, the first of equals."""
        return best_action(self.composite(self.belief(state, obs)))

    def account(self, state: Any, obs: Float[Array, " obs"]) -> Account:
        """The composite risk of every action and its two penalties."""
        composite = self.composite
        why = assess(self.belief(state, obs), composite.epistemic, composite.aleatory, composite.aggregate)
        penalties = {"aleatory": why.aleatory_penalty, "epistemic": why.epistemic_penalty}
        return Account(why.composite, {**penalties, "composite": why.composite})

    @property
    def caveat(self) -> str:
        """The numbers are corrected."""
        return " ".join(filter(None, ["laws recalibrated on held-out episodes", self.agent.caveat]))
