"""The independent reference cases, and how their names map to ours."""

import json
import math
from pathlib import Path

import jax
import numpy as np

from sentinel_rl import risk
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import RiskMeasure, WorstCase

FOLDER = Path(__file__).parents[1] / "reference"
CASES = json.loads((FOLDER / "risk_cases.json").read_text())["cases"]
FIGURES = json.loads((FOLDER / "figure_numbers.json").read_text())

_CLASSES = {
    "expectation": risk.Expectation,
    "cvar": risk.CVaR,
    "wang": risk.Wang,
    "prop_hazard": risk.ProportionalHazard,
    "dual_power": risk.DualPower,
    "minmaxvar": risk.MinMaxVar,
    "cpw": risk.CPW,
    "var": risk.VaR,
    "evar": risk.EVaR,
    "entropic": risk.Entropic,
    "mean_sd": risk.MeanStd,
    "mean_var": risk.MeanVariance,
    "mean_semidev": risk.MeanSemideviation,
    "worst_case": risk.WorstCase,
    "best_case": risk.BestCase,
}


def cases(kind: str) -> list[dict]:
    """All cases of one kind: risk, composite or ftrl."""
    return [case for case in CASES if case["kind"] == kind]


def identity(case: dict) -> str:
    """The id of a case in the report."""
    return f"{case['id']}-{case['tag']}"


def measure_of(spec: dict) -> RiskMeasure:
    """The measure that a case names."""
    if spec["measure"] == "cvar" and spec["params"]["alpha"] == 0:
        return WorstCase()  # CVaR takes alpha in (0, 1], and its limit for alpha -> 0 is a measure of its own
    return _CLASSES[spec["measure"]](**spec["params"])


class Padded(RiskMeasure):
    """A measure, evaluated on laws padded to few shapes: JAX compiles anew for every shape, and there are many here.

    The last atom is repeated with probability 0 and the last law is repeated, which changes no value.
    """

    inner: RiskMeasure

    def _value(self, law):
        shape = law.probs.shape[:-1]
        rows, atoms = _holds(math.prod(shape), (8, 100)), _holds(law.probs.shape[-1], (51, 1000))
        values, probs = (np.asarray(part).reshape(-1, part.shape[-1]) for part in (law.values, law.probs))
        values, probs = pad(pad(values, atoms, 1, True), rows, 0, True), pad(pad(probs, atoms, 1, False), rows, 0, True)
        return _risk_of(self.inner, values, probs)[: math.prod(shape)].reshape(shape)


_risk_of = jax.jit(lambda measure, atoms, probs: measure(CategoricalReturn(atoms, probs)))


def pad(array: np.ndarray, size: int, axis: int, repeat: bool) -> np.ndarray:
    """Lengthen an axis to `size`, with zeros or by repeating the last entry."""
    missing = [(0, size - length if i == axis % array.ndim else 0) for i, length in enumerate(array.shape)]
    return np.pad(array, missing, mode="edge" if repeat else "constant")


def _holds(size: int, sizes: tuple[int, ...]) -> int:
    return min(s for s in sizes if s >= size)
