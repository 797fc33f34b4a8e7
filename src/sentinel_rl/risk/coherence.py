"""A search for counterexamples to the axioms of coherence."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from sentinel_rl.risk.composite import BeliefMeasure
from sentinel_rl.risk.measure import RiskMeasure

_TOLERANCE = 1e-7  # relative to the values at stake; the measures are evaluated in float64
_SCENARIOS = 4
_RANDOM_CASES = 400

Risk = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Counterexample:
    """Two returns on common scenarios (with their probabilities) for which an axiom fails."""

    probs: np.ndarray
    x: np.ndarray
    y: np.ndarray
    left: float
    right: float
    claim: str
    relation: str

    def __str__(self) -> str:
        """Return the scenario table in one line, with the violated claim."""
        scenarios = f"p={_show(self.probs)} X={_show(self.x)} Y={_show(self.y)}"
        return f"{self.claim} asks {self.left:.6g} {self.relation} {self.right:.6g}, {scenarios}"


@dataclasses.dataclass(frozen=True)
class CoherenceReport:
    """Which axioms hold on every case tried, with a counterexample for each that does not.

    Truthy when all hold. A search can refute, not prove: `tried` says how many cases each axiom survived.
    """

    measure: str
    counterexamples: Mapping[str, Counterexample | None]
    tried: int

    @property
    def coherent(self) -> bool:
        """True when no axiom was refuted."""
        return all(example is None for example in self.counterexamples.values())

    def holds(self, axiom: str) -> bool:
        """Tell whether an axiom survived; `axiom` is a key of `counterexamples`."""
        return self.counterexamples[axiom] is None

    def __bool__(self) -> bool:
        """Return `coherent`."""
        return self.coherent

    def __str__(self) -> str:
        """Return one line per axiom."""
        lines = [f"{self.measure}: {'coherent' if self.coherent else 'not coherent'} ({self.tried} cases an axiom)"]
        for axiom, example in self.counterexamples.items():
            lines.append(f"  {axiom:<23}" + ("holds" if example is None else f"fails: {example}"))
        return "\n".join(lines)


def check_coherence(measure: RiskMeasure | BeliefMeasure, seed: int = 0) -> CoherenceReport:
    """Search for counterexamples to the four axioms of coherence (see `RiskMeasure`).

    The cases are pairs of overlapping bets on a fine grid of probabilities, which refute every distortion that is
    not increasing or not concave on that grid, and random returns of several scales. A `Composite` is tried on K
    models of a return, its random variables being functions of model and outcome.

    Args:
        measure: of a law, or of a belief.
        seed: of the random cases.

    Example:
        >>> from sentinel_rl.risk import CVaR, VaR
        >>> bool(check_coherence(CVaR(0.25)))
        True
        >>> check_coherence(VaR(0.25)).holds("superadditive")
        False
    """
    probs, x, y = _cases(np.random.default_rng(seed))
    if isinstance(measure, BeliefMeasure):
        batches = [_on_models(measure, *case) for case in _model_cases(probs, x, y)]
    else:
        batches = [(probs, x, y, lambda values: measure.of(values, probs))]
    found: dict[str, Counterexample | None] = {}
    for batch in batches:
        for axiom, example in _refute(*batch).items():
            found[axiom] = found.get(axiom) or example
    return CoherenceReport(str(measure), found, sum(len(batch[0]) for batch in batches))


def _refute(probs: np.ndarray, x: np.ndarray, y: np.ndarray, risk: Risk) -> dict[str, Counterexample | None]:
    """Test every axiom on a batch of pairs of returns."""
    below, above, shifted, scaled = np.minimum(x, y), np.maximum(x, y), x + 1.5, 3.0 * x
    of_x = risk(x)
    claims = {
        "monotone": (below, above, risk(below), risk(above), "X <= Y => rho(X) <= rho(Y)", "<="),
        "translation_invariant": (x, shifted, risk(shifted), of_x + 1.5, "rho(X + 1.5) = rho(X) + 1.5", "="),
        "positively_homogeneous": (x, scaled, risk(scaled), 3.0 * of_x, "rho(3 X) = 3 rho(X)", "="),
        "superadditive": (x, y, of_x + risk(y), risk(x + y), "rho(X) + rho(Y) <= rho(X + Y)", "<="),
    }
    scale = np.abs(np.stack([x, y])).reshape(2, len(x), -1).max(axis=(0, 2)) + 1.0
    found: dict[str, Counterexample | None] = {}
    for axiom, (one, other, left, right, claim, relation) in claims.items():
        excess = (left - right if relation == "<=" else np.abs(left - right)) / scale
        excess = np.where(np.isnan(excess), np.inf, excess)
        # The bets come first and are easier to read than random numbers.
        bets = int(np.argmax(excess[:-_RANDOM_CASES]))
        i = bets if excess[bets] > _TOLERANCE else int(np.argmax(excess))
        example = Counterexample(probs[i], one[i], other[i], float(left[i]), float(right[i]), claim, relation)
        found[axiom] = example if excess[i] > _TOLERANCE else None
    return found


def _cases(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities and two returns on four scenarios: overlapping bets, then random ones."""
    levels = np.concatenate([[0.0], np.geomspace(1e-4, 0.1, 10), np.linspace(0.15, 0.5, 8)])
    levels = np.union1d(levels, 1 - levels)
    low, high = (grid[np.triu_indices(len(levels), 1)] for grid in np.meshgrid(levels, levels, indexing="ij"))
    half = (high - low) / 2
    bets = np.stack([low, half, half, 1 - high], axis=-1)
    first = np.broadcast_to([-1.0, -1.0, 0.0, 0.0], bets.shape)
    second = np.broadcast_to([-1.0, 0.0, -1.0, 0.0], bets.shape)
    random = rng.dirichlet(np.full(_SCENARIOS, 0.5), _RANDOM_CASES)
    x, y = rng.normal(size=(2, _RANDOM_CASES, _SCENARIOS)) * rng.choice([0.1, 1.0, 10.0], (2, _RANDOM_CASES, 1))
    probs = np.clip(np.concatenate([bets, random]), 0.0, 1.0)
    return probs, np.concatenate([first, x]), np.concatenate([second, y])


def _model_cases(
    probs: np.ndarray, x: np.ndarray, y: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Turn scenarios into (belief, law, x, y) on models: all chance, all ignorance, and both at once."""
    models = np.shape(probs)[-1]

    def rows(a: np.ndarray) -> np.ndarray:
        return np.repeat(a[:, None, :], models, axis=1)

    def columns(a: np.ndarray) -> np.ndarray:
        return np.repeat(a[:, :, None], models, axis=2)

    even = np.full_like(probs, 1 / models)
    both = (probs, rows(np.roll(probs, 1, axis=0)), rows(x) + columns(y), columns(x) - rows(y))
    return [(even, rows(probs), rows(x), rows(y)), (probs, rows(even), columns(x), columns(y)), both]


def _on_models(
    measure: BeliefMeasure, belief: np.ndarray, law: np.ndarray, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Risk]:
    """A batch of returns on model times outcome, with the joint probabilities and the measure of the belief."""

    def risk(values: np.ndarray) -> np.ndarray:
        return np.asarray(measure.of(np.moveaxis(values, 1, 0), np.moveaxis(law, 1, 0), belief.T))

    return belief[:, :, None] * law, x, y, risk


def _show(values: np.ndarray) -> str:
    return np.array2string(values, precision=4, separator=",", suppress_small=True).replace("\n", "")
