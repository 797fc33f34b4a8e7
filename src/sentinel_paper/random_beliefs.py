"""Beliefs drawn at random, and the paper's notions of their risk, each by its own formula.

Members ``i = 1..K`` with weights ``w_i`` and laws on n atoms, ``z_ij = m + c_i + d_ij``: a common mean, what the
members disagree about (``sum_i w_i c_i = 0``), and chance (``sum_j p_ij d_ij = 0`` for every i).
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from sentinel_rl.risk import Composite, RiskMeasure

# How far disagreement and chance reach, each drawn on its own: now the one rules, now the other.
SCALES = (0.1, 1.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Beliefs:
    """``weights [N, K]``, ``probs [N, K, n]``, and the parts of the values: ``mean``, ``disagreement``, ``chance``."""

    weights: np.ndarray
    probs: np.ndarray
    mean: np.ndarray
    disagreement: np.ndarray
    chance: np.ndarray

    def values(self, disagreement: float = 1.0, chance: float = 1.0) -> np.ndarray:
        """The atoms ``[N, K, n]``, with disagreement or chance stretched by a factor."""
        return np.asarray(self.mean + disagreement * self.disagreement + chance * self.chance)


class Risks(NamedTuple):
    """Of every belief ``[N]``: composite and additive risk, and each kind alone.

    ``epistemic`` is the epistemic measure of the members' means, ``aleatory`` the paper's ``A``: additive minus total.
    """

    composite: np.ndarray
    additive: np.ndarray
    epistemic: np.ndarray
    aleatory: np.ndarray


def draw(count: int, members: int, atoms: int, seed: int) -> Beliefs:
    """Draw beliefs; disagreement and chance have scales of their own."""
    rng = np.random.default_rng(seed)
    weights, probs = rng.dirichlet(np.ones(members), count), rng.dirichlet(np.ones(atoms), (count, members))
    reach = rng.choice(SCALES, (2, count, 1, 1))
    middles = reach[0] * rng.normal(size=(count, members, 1))
    chance = reach[1] * rng.gamma(2.0, size=(count, members, 1)) * rng.normal(size=(count, members, atoms))
    mean = np.sum(weights[:, :, None] * middles, axis=1, keepdims=True)
    return Beliefs(weights, probs, mean, middles - mean, chance - np.sum(probs * chance, axis=2, keepdims=True))


def risks(beliefs: Beliefs, epistemic: RiskMeasure, aleatory: RiskMeasure, values: np.ndarray) -> Risks:
    """The risks of beliefs with these atoms; additive risk is a plain sum, not a composite with another measure."""
    weights, probs = beliefs.weights, beliefs.probs
    inner = np.asarray(aleatory.of(values, probs))
    additive = np.sum(weights * inner, axis=1)
    count = len(weights)
    total = np.asarray(aleatory.of(values.reshape(count, -1), (weights[:, :, None] * probs).reshape(count, -1)))
    composite = Composite(epistemic, aleatory).of(np.moveaxis(values, 1, 0), np.moveaxis(probs, 1, 0), weights.T)
    means = np.sum(probs * values, axis=2)
    return Risks(np.asarray(composite), additive, np.asarray(epistemic.of(means, weights)), additive - total)
