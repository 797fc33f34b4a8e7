"""All reference cases of composite risk and of FTRL weights, in both precisions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.belief import Belief, ftrl_losses, ftrl_weights
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, assess
from tests.risk.reference import Padded, cases, identity, measure_of, pad

COMPOSITE, FTRL = cases("composite"), cases("ftrl")

# Largest error in units of the case's scale; for FTRL weights absolute, for losses l in units of 1 + l. In float32
# about three times what is measured.
FLOAT64 = 1e-11
FLOAT64_EXPONENTIAL = 1e-9  # with EVaR or Entropic in it
FLOAT32_COMPOSITE = {
    "mean": 9e-7,
    "additive": 1e-6,
    "composite": 5e-7,
    "total": 8e-7,
    "aleatory_penalty": 7e-7,
    "epistemic_penalty": 1e-6,
    "paper_A": 8e-7,
    "paper_E": 5e-7,
    "member_risks": 8e-7,
}
FLOAT32_FTRL = {
    "losses": 4e-7,
    "weights": 1.5e-6,
    "composite_belief": 3e-7,
    "additive_belief": 3e-7,
    "composite_scaled": 2e-7,
}

# JAX compiles for every shape, so there are few: members of weight 0 and atoms of probability 0 change nothing.
ATOMS = 51


def belief_of(case, dtype):
    atoms, probs, weights = (np.array(case[key]) for key in ("atoms", "probs", "weights"))
    probs = pad(probs / probs.sum(-1, keepdims=True), ATOMS, -1, repeat=False)
    atoms = pad(atoms, ATOMS, -1, repeat=True)
    members = 8 if len(probs) <= 8 else 100
    probs = pad(probs, members, 0, repeat=True).astype(dtype)
    weights = pad(weights / weights.sum(), members, 0, repeat=False).astype(dtype)
    if atoms.ndim == 1:
        return Belief(CategoricalReturn(atoms.astype(dtype), probs), weights)
    return Belief(CategoricalReturn.from_samples(pad(atoms, members, 0, repeat=True).astype(dtype), probs), weights)


@partial(jax.jit, static_argnums=(2, 3))
def ftrl(log_probs, lam, divergence, prefer):
    return ftrl_losses(log_probs, divergence), ftrl_weights(log_probs, lam, divergence, prefer)


def exponential(case):
    return {case["epistemic"]["measure"], case["aleatory"]["measure"]} & {"evar", "entropic"}


def test_there_are_97_cases():
    assert (len(COMPOSITE), len(FTRL)) == (64, 33)


@pytest.mark.parametrize("case", COMPOSITE, ids=identity)
def test_composite(case, precision):
    belief, measures = belief_of(case, precision), [measure_of(case[role]) for role in ("epistemic", "aleatory")]
    large = len(case["probs"]) > 8  # only two of them: compiled as a whole, the others share their parts
    found = jax.jit(assess)(belief, *measures) if large else assess(belief, *map(Padded, measures))
    expected = {"member_risks" if key == "members" else key: value for key, value in case["expected"].items()}
    assert expected.keys() == FLOAT32_COMPOSITE.keys()
    float64 = FLOAT64_EXPONENTIAL if exponential(case) else FLOAT64
    for key, value in expected.items():
        bound = float64 if precision == "float64" else FLOAT32_COMPOSITE[key]
        got = np.asarray(getattr(found, key))
        assert got.dtype == precision
        got = got[: len(value)] if key == "member_risks" else got
        np.testing.assert_allclose(got, value, rtol=0, atol=bound * case["scale"], err_msg=key)


@pytest.mark.parametrize("case", FTRL, ids=identity)
def test_ftrl(case, precision):
    probs = np.array(case["probs"])
    with np.errstate(divide="ignore"):
        # In float64: 1e-150 has a logarithm in float32, but is no float32 itself.
        log_probs = np.log(pad(probs / probs.sum(-1, keepdims=True), ATOMS, -1, repeat=False)).astype(precision)
    prefer = "consensus" if case["sign"] < 0 else "outliers"
    losses, weights = ftrl(log_probs, case["lambda"], case["divergence"], prefer)
    assert losses.dtype == weights.dtype == precision
    bound = FLOAT32_FTRL if precision == "float32" else dict.fromkeys(FLOAT32_FTRL, FLOAT64)
    expected = np.array(case["expected"]["losses"], float)  # "inf" reads as infinity
    np.testing.assert_allclose(losses, expected, rtol=bound["losses"], atol=bound["losses"])
    np.testing.assert_allclose(weights, case["expected"]["weights"], rtol=0, atol=bound["weights"])
    if "atoms" in case:
        check_ftrl_belief(case, np.exp(log_probs), weights, bound)


def check_ftrl_belief(case, probs, weights, bound):
    atoms = pad(np.array(case["atoms"]), ATOMS, -1, repeat=True).astype(probs.dtype)
    belief = Belief(CategoricalReturn(atoms, probs), weights)
    epistemic, aleatory = Padded(measure_of(case["epistemic"])), Padded(measure_of(case["aleatory"]))
    found = {
        "composite_belief": Composite(epistemic, aleatory)(belief),
        "additive_belief": Additive(aleatory)(belief),
        "composite_scaled": Composite(epistemic, aleatory, aggregate="scale")(belief),
    }
    for key, value in found.items():
        assert abs(float(value) - case["expected"][key]) <= bound[key] * abs(atoms).max(), key
    members = aleatory(belief.members)
    assert jnp.abs(members - jnp.array(case["expected"]["members"])).max() <= bound["losses"] * abs(atoms).max()
