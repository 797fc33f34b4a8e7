"""The page's risk measures, computed by Node, against exact reference cases and against the library's own."""

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import assess, parse_risk
from sentinel_rl.risk.measure import MEASURES
from tests import node
from tests.risk.reference import Padded, cases, identity, measure_of

SCRIPT = files("sentinel_rl.viewer") / "risk.js"
RISK, COMPOSITE, FTRL = cases("risk"), cases("composite"), [case for case in cases("ftrl") if "atoms" in case]
# In units of a case's scale. EVaR is the best of a search, here and there.
BOUND = 1e-9
PARAMETERS = {
    "cvar": (0.05, 1.0),
    "var": (0.05, 1.0),
    "wang": (0.02, 0.9),
    "evar": (0.05, 1.0),
    "entropic": (-0.5, 1.0),
    "proportional_hazard": (0.1, 1.0),
    "dual_power": (1.0, 6.0),
    "minmaxvar": (0.0, 3.0),
    "cpw": (0.4, 1.0),
    "mean_std": (0.0, 2.0),
    "mean_variance": (0.0, 1.0),
    "mean_semideviation": (0.0, 1.0),
    "expectation": None,
    "worst_case": None,
    "best_case": None,
}
K, A, N, BELIEFS = 4, 2, 21, 1000


def computed(asked, folder: Path):
    """What the page's JavaScript makes of cases, all in one process."""
    file = folder / "cases.json"
    file.write_text(json.dumps(asked))
    command = [node.tool("node"), Path(__file__).parent / "measures.mjs", SCRIPT, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def text_of(spec) -> str:
    return str(measure_of(spec))


@pytest.fixture(scope="module")
def of_reference(tmp_path_factory):
    """The numbers of all reference cases by their id."""
    asked = [
        *({"kind": "samples", "measure": text_of(case), **_law(case)} for case in RISK),
        *(_belief(case, case["weights"], "belief") for case in COMPOSITE),
        *(_belief(case, case["expected"]["weights"], "belief") for case in FTRL),
        *(_belief(case, case["expected"]["weights"], "scale") for case in FTRL),
    ]
    return computed(asked, tmp_path_factory.mktemp("reference"))


def _law(case):
    return {"atoms": case["atoms"], "probs": case["probs"]}


def _belief(case, weights, aggregate):
    probs = np.array(case["probs"])
    supports = np.array(case["atoms"])
    order = np.argsort(supports, axis=-1)  # laws are drawn and assessed in the order of their atoms
    places = np.broadcast_to(order, probs.shape)
    laws = np.take_along_axis(probs / probs.sum(-1, keepdims=True), places, axis=-1).tolist()
    measures = {role: text_of(case[role]) for role in ("epistemic", "aleatory")}
    ordered = np.take_along_axis(supports, order, axis=-1).tolist()
    atoms = {"atoms": ordered, "laws": laws, "weights": list(map(float, weights))}
    return {"kind": "belief", **atoms, **measures, "aggregate": aggregate}


def test_every_measure_of_the_library_is_in_the_page(tmp_path):
    ours = {name for name, kind in MEASURES.items() if kind.__module__.startswith("sentinel_rl.")}
    assert ours == set(PARAMETERS)
    script = f"console.log(Object.keys(require({json.dumps(str(SCRIPT))}).MEASURES).join())"
    done = subprocess.run([node.tool("node"), "-e", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.strip().split(",")) == ours


def test_single_laws_against_exact_numbers(of_reference):
    found = of_reference[: len(RISK)]
    wrong = [
        (identity(case), value, case["expected"])
        for case, value in zip(RISK, found, strict=True)
        if not abs(value - case["expected"]) <= BOUND * case["scale"]
    ]
    assert wrong == []
    assert len(RISK) == 283


def test_beliefs_against_exact_numbers(of_reference):
    found = of_reference[len(RISK) : len(RISK) + len(COMPOSITE)]
    assert any(np.ndim(case["atoms"]) == 2 for case in COMPOSITE), "members with atoms of their own"
    for case, told in zip(COMPOSITE, found, strict=True):
        names = ("mean", "aleatory_penalty", "epistemic_penalty", "composite")
        wanted = [*(case["expected"][name] for name in names), *case["expected"]["members"]]
        np.testing.assert_allclose(told, wanted, rtol=0, atol=BOUND * case["scale"], err_msg=identity(case))
    weighted = of_reference[len(RISK) + len(COMPOSITE) :]
    for case, one, scaled in zip(FTRL, weighted[: len(FTRL)], weighted[len(FTRL) :], strict=True):
        bound, wanted = BOUND * max(map(abs, case["atoms"])), case["expected"]
        assert abs(one[3] - wanted["composite_belief"]) <= bound, identity(case)
        assert abs(one[0] - one[1] - wanted["additive_belief"]) <= bound, identity(case)
        assert abs(scaled[3] - wanted["composite_scaled"]) <= bound, identity(case)
    assert len(RISK) + len(COMPOSITE) + len(FTRL) >= 300


def random_beliefs():
    """Beliefs of K laws over A actions, with measures and parameters that go round."""
    rng, names = np.random.default_rng(0), list(PARAMETERS)
    for number in range(BELIEFS // A):
        atoms = np.sort(rng.normal(size=N) * rng.choice([1.0, 10.0, 100.0]))
        probs = rng.dirichlet(np.full(N, rng.choice([0.05, 0.3, 1.0])), size=(K, A))
        weights = np.moveaxis(rng.dirichlet(np.full(K, rng.choice([0.3, 3.0])), size=A), -1, 0)
        pair = names[number % len(names)], names[(number // len(names)) % len(names)]
        texts = [name if (ends := PARAMETERS[name]) is None else f"{name}:{rng.uniform(*ends)!r}" for name in pair]
        yield atoms, probs, weights, texts


def test_a_thousand_random_beliefs_against_the_library(tmp_path, x64):
    asked, wanted, scales = [], [], []
    for atoms, probs, weights, (epistemic, aleatory) in random_beliefs():
        measures = parse_risk(epistemic), parse_risk(aleatory)
        belief = Belief(CategoricalReturn(atoms, probs), weights)
        told = assess(belief, *map(Padded, measures))
        for a in range(A):
            own = {"atoms": atoms.tolist(), "laws": probs[:, a].tolist(), "weights": weights[:, a].tolist()}
            asked.append({"kind": "belief", **own, "epistemic": epistemic, "aleatory": aleatory, "aggregate": "belief"})
            numbers = told.mean, told.aleatory_penalty, told.epistemic_penalty, told.composite
            wanted.append([*(float(number[a]) for number in numbers), *told.member_risks[:, a].tolist()])
            scales.append(max(1.0, float(np.abs(atoms).max())) * max(1.0, float(np.abs(wanted[-1]).max())))
    found = computed(asked, tmp_path)
    assert len(found) == BELIEFS
    errors = np.abs(np.array(found) - np.array(wanted)).max(-1) / np.array(scales)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUND, (asked[worst]["epistemic"], asked[worst]["aleatory"], found[worst], wanted[worst])


@pytest.mark.parametrize(
    "text",
    ["", "cvar:2", "cvar:0", "cvar:x", "cvar:0.1,0.2", "CVAR:0.5", "constructor", "__proto__:1", "cvar:0.5;alert(1)"],
)
def test_what_is_no_measure_is_not_read(text):
    """Text of the address bar reaches `parse`."""
    script = f"console.log(require({json.dumps(str(SCRIPT))}).parse({json.dumps(text)}))"
    done = subprocess.run([node.tool("node"), "-e", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "null"
