"""All reference cases of a single measure, in both precisions."""

import jax
import numpy as np
import pytest

from sentinel_rl.returns import CategoricalReturn
from tests.risk.reference import Padded, cases, identity, measure_of

RISK = cases("risk")

# Largest error allowed in float64, in units of the case's scale.
FLOAT64 = {"evar": 1e-9, "entropic": 1e-9}
FLOAT64_DEFAULT = 1e-11

# The same in float32, on inputs rounded to float32: about three times what is measured. Rounding the input costs 6e-8.
FLOAT32 = {
    "expectation": 5e-7,
    "cvar": 5e-7,
    "wang": 4e-7,
    "prop_hazard": 4e-7,
    "dual_power": 6e-7,
    "minmaxvar": 3e-7,
    "cpw": 3e-7,
    "var": 2e-7,
    "evar": 3e-7,
    "entropic": 4e-7,
    "mean_sd": 3e-7,
    "mean_var": 6e-7,
    "mean_semidev": 3e-7,
    "worst_case": 1.2e-7,
    "best_case": 1.2e-7,
}
# alpha = 0.999999999 is 1 in float32. EVaR falls from the mean like sqrt(2 (1 - alpha)) sd, here 5e-5.
FLOAT32_CASE = {"r0339": 2.5e-5}

law_of = jax.jit(CategoricalReturn.from_samples)


def inputs(case):
    return np.array(case["atoms"]), np.array(case["probs"])


def of_samples(measure, values, weights):
    """What `measure.of` does (see test_of.py), in two steps so that little is compiled."""
    return Padded(measure)(law_of(values, weights))


def error(value, case):
    return abs(float(value) - case["expected"])


def is_a_law(case):
    return abs(sum(case["probs"]) - 1) < 1e-12 and (np.diff(case["atoms"]) >= 0).all()


def test_there_are_283_cases_and_every_measure_is_among_them():
    assert len(RISK) == 283
    assert {case["measure"] for case in RISK} == set(FLOAT32)


@pytest.mark.parametrize("case", RISK, ids=identity)
def test_samples_in_float64(case, x64):
    value = of_samples(measure_of(case), *inputs(case))
    assert value.dtype == np.float64
    assert error(value, case) <= FLOAT64.get(case["measure"], FLOAT64_DEFAULT) * case["scale"]


@pytest.mark.parametrize("case", [case for case in RISK if is_a_law(case)], ids=identity)
def test_laws_in_float64(case, x64):
    atoms, probs = inputs(case)
    value = Padded(measure_of(case))(CategoricalReturn(atoms, probs))
    # A law keeps its impossible atoms where they are (1e6 away in two cases), so its scale is that of its atoms.
    assert error(value, case) <= FLOAT64.get(case["measure"], FLOAT64_DEFAULT) * max(case["scale"], abs(atoms).max())


@pytest.mark.parametrize("case", RISK, ids=identity)
def test_samples_in_float32(case):
    atoms, weights = inputs(case)
    # Weights of 1e-200 are zero in float32: only their ratios count, so they are rescaled before the cast.
    weights = weights / weights.max()
    value = of_samples(measure_of(case), atoms.astype(np.float32), weights.astype(np.float32))
    assert value.dtype == np.float32
    assert error(value, case) <= FLOAT32_CASE.get(case["id"], FLOAT32[case["measure"]]) * case["scale"]


def test_padding_hides_nothing(x64):
    by_length = {len(case["probs"]): case for case in RISK}
    for case in (by_length[length] for length in (1, 2, 20)):
        value = jax.jit(measure_of(case).of)(*inputs(case))
        assert error(value, case) <= FLOAT64_DEFAULT * case["scale"]
