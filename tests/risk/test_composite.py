"""Composite and additive risk: theorems 1 and 2 and what follows from them."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, CVaR, Entropic, EVaR, Expectation, MeanStd, assess
from tests.risk.strategies import MEMBERS, SCENARIOS, coherent, distortions, masses, returns

FIELDS = (
    *("mean", "additive", "composite", "total", "paper_A", "paper_E"),
    *("aleatory_penalty", "epistemic_penalty", "member_risks"),
)
LAWS = masses(MEMBERS, SCENARIOS)
TRUST = masses(MEMBERS)


@jax.jit
def _assess(pairs, atoms, probs, trust):
    belief = Belief(CategoricalReturn.from_samples(atoms, probs), trust)
    found = [assess(belief, *pair) for pair in pairs]
    return [{name: getattr(assessment, name) for name in FIELDS} for assessment in found]


def assessments(pairs, x, probs, trust):
    """Assess pairs (epistemic, aleatory) in float64; returns ``[n]`` on the scenarios of all members, or ``[K, n]``."""
    with jax.enable_x64(True):
        found = _assess(pairs, np.broadcast_to(x, probs.shape), probs, trust)
    return [SimpleNamespace(**{name: np.asarray(value) for name, value in fields.items()}) for fields in found]


def crossed(measures):
    """Each measure across members with the next one inside."""
    return list(zip(measures, [*measures[1:], measures[0]], strict=True))


def tolerance(*outcomes):
    return 1e-9 * (1 + max(np.abs(x).max() for x in outcomes))


@given(coherent, returns(), returns(), st.floats(0, 50), st.floats(-50, 50), LAWS, TRUST)
def test_theorem_1_composites_of_coherent_measures_are_coherent(measures, x, y, factor, shift, probs, trust):
    pairs = crossed(measures)

    def value(z):
        return np.array([a.composite for a in assessments(pairs, z, probs, trust)])

    eps = tolerance(x, y, factor * x, shift)
    assert (value(x) <= value(x + np.abs(y)) + eps).all()
    np.testing.assert_allclose(value(x + shift), value(x) + shift, rtol=0, atol=eps)
    np.testing.assert_allclose(value(factor * x), factor * value(x), rtol=0, atol=eps)
    assert (value(x) + value(y) <= value(x + y) + eps).all()


@pytest.mark.parametrize(
    ("composite", "better"),
    [
        # Inside: in both models 10 with probability 0.1, else 0.
        (Composite(CVaR(0.5), MeanStd(1.0)), [[0.0] * 9 + [10.0]] * 2),
        # Outside: one of ten models promises 10 for sure.
        (Composite(MeanStd(1.0), CVaR(0.5)), [[0.0]] * 9 + [[10.0]]),
    ],
    ids=["inside", "outside"],
)
def test_theorem_1_needs_coherent_parts(composite, better):
    """With MeanStd nothing at all is worth 0, but a chance of 10 for free is worth 1 - 3."""
    assert composite.of(np.zeros_like(better)) == 0
    assert composite.of(better) == pytest.approx(-2.0)


@given(coherent, returns(), LAWS, TRUST)
def test_theorem_2_additive_is_neutral_composite_and_an_upper_bound(measures, x, probs, trust):
    for epistemic_neutral in assessments([(Expectation(), m) for m in measures], x, probs, trust):
        assert epistemic_neutral.composite == pytest.approx(epistemic_neutral.additive, abs=tolerance(x))
        assert epistemic_neutral.additive == pytest.approx(trust @ epistemic_neutral.member_risks, abs=tolerance(x))
    for averse in assessments(crossed(measures), x, probs, trust):
        assert averse.composite <= averse.additive + tolerance(x)


@given(distortions, st.floats(0.05, 1.0), st.floats(0.0, 3.0), returns(), LAWS, TRUST)
def test_the_risk_of_the_mixture_is_below_the_mixture_of_risks(concave, alpha, beta, x, probs, trust):
    """T <= F^A for concave distortions, EVaR and the entropic measure: each is concave in the law."""
    measures = [*concave, EVaR(alpha), Entropic(beta)]
    for a in assessments([(Expectation(), m) for m in measures], x, probs, trust):
        assert a.total <= a.additive + tolerance(x)


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), returns(), LAWS, TRUST)
def test_cvar_bracket(alpha_e, alpha_a, x, probs, trust):
    """CVaR at the product of the levels, of the mixture, bounds the composite from below."""
    nested, product = assessments(
        [(CVaR(alpha_e), CVaR(alpha_a)), (CVaR(alpha_e), CVaR(alpha_e * alpha_a))], x, probs, trust
    )
    assert product.total <= nested.composite + tolerance(x)


@given(st.floats(-2.0, 2.0), returns(MEMBERS, SCENARIOS), LAWS, TRUST)
def test_entropic_identity(beta, x, probs, trust):
    """One beta inside and outside is the entropic risk of the mixture, also for members with atoms of their own."""
    (a,) = assessments([(Entropic(beta), Entropic(beta))], x, probs, trust)
    assert a.composite == pytest.approx(a.total, abs=tolerance(x))


@given(coherent, returns(), LAWS, TRUST)
def test_penalties_are_not_negative_and_add_up(measures, x, probs, trust):
    for a in assessments(crossed(measures), x, probs, trust):
        assert a.aleatory_penalty >= -tolerance(x)
        assert a.epistemic_penalty >= -tolerance(x)
        assert a.mean - a.composite == pytest.approx(a.aleatory_penalty + a.epistemic_penalty, abs=tolerance(x))
        assert a.paper_A == pytest.approx(a.additive - a.total, abs=tolerance(x))
        assert a.composite <= a.paper_E + tolerance(x) <= a.mean + 2 * tolerance(x)


@given(coherent, returns(MEMBERS, SCENARIOS), LAWS, TRUST, st.permutations(range(MEMBERS)))
def test_the_order_of_members_does_not_matter(measures, x, probs, trust, order):
    pairs = crossed(measures)
    given_order = assessments(pairs, x, probs, trust)
    other = assessments(pairs, x[order], probs[order], trust[order])
    for a, b in zip(given_order, other, strict=True):
        for field in ("mean", "additive", "composite", "total", "paper_E"):
            assert getattr(a, field) == pytest.approx(getattr(b, field), abs=tolerance(x))
        np.testing.assert_allclose(a.member_risks[order], b.member_risks, rtol=0, atol=tolerance(x))


@given(coherent, returns(), masses(), TRUST)
def test_members_that_agree_leave_no_epistemic_risk(measures, x, p, trust):
    for a in assessments(crossed(measures), x, np.tile(p, (MEMBERS, 1)), trust):
        assert a.composite == pytest.approx(a.additive, abs=tolerance(x))
        assert a.total == pytest.approx(a.additive, abs=tolerance(x))
        assert a.paper_E == pytest.approx(a.mean, abs=tolerance(x))


def test_four_equal_members_at_a_quarter_give_the_worst_member():
    values = np.array([[3.0, 5.0], [1.0, 2.0], [2.0, 4.0], [9.0, 9.0]])
    assert Composite(CVaR(0.25), CVaR(0.5)).of(values) == 1.0
    assert Composite(CVaR(0.25), Expectation()).of(values) == 1.5


def test_scaling_values_by_weights_is_not_a_belief():
    """When all members say 10, so does the belief; four values of 10 / 4 do not."""
    tens = np.full((4, 3), 10.0)
    belief, scaled = (Composite(CVaR(0.25), CVaR(0.25), aggregate) for aggregate in ("belief", "scale"))
    assert belief.of(tens) == 10.0
    assert scaled.of(tens) == 2.5
    trust = [0.4, 0.3, 0.2, 0.1]
    assert scaled.of(tens, belief=trust) == pytest.approx(1.0)
    assert Additive(CVaR(0.25)).of(tens, belief=trust) == pytest.approx(10.0)
