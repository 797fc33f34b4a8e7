"""The independent reference cases, and how their names map to ours."""

import json
from pathlib import Path

import jax
import numpy as np

from sentinel_rl import risk
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


class Compiled(RiskMeasure):
    """A measure whose formula is compiled once per shape and type: in the middle of eager code, to save time."""

    inner: RiskMeasure

    def _value(self, law):
        return risk_of(self.inner, law)


risk_of = jax.jit(lambda measure, law: measure(law))


def pad(array: np.ndarray, size: int, axis: int, repeat: bool) -> np.ndarray:
    """Lengthen an axis to `size`, with zeros or by repeating the last entry."""
    missing = [(0, size - length if i == axis % array.ndim else 0) for i, length in enumerate(array.shape)]
    return np.pad(array, missing, mode="edge" if repeat else "constant")


def bucket(size: int, sizes: tuple[int, ...]) -> int:
    """The smallest of a few sizes that holds `size`: JAX compiles anew for every shape."""
    return min(s for s in sizes if s >= size)
