"""Composite and additive risk: theorems 1 and 2 and what follows from them."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, Composite, CVaR, Entropic, Expectation, MeanSemideviation, MeanStd, assess
from tests.risk.strategies import ANY_COHERENT, MEMBERS, SCENARIOS, coherent, masses, returns

COMPILE_QUICKLY = True

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


def everything(measures=ANY_COHERENT, beta=0.0, alpha_e=0.5, alpha_a=0.5):
    """Each coherent measure across members with the next one inside, then a neutral, an entropic and a CVaR pair.

    Always a list of the same classes, so that it is compiled once.
    """
    crossed = list(zip(measures, [*measures[1:], measures[0]], strict=True))
    neutral = (Expectation(), CVaR(alpha_e * alpha_a))
    return [*crossed, neutral, (Entropic(beta), Entropic(beta)), (CVaR(alpha_e), CVaR(alpha_a))]


N = len(ANY_COHERENT)
NEUTRAL, ENTROPIC, NESTED = N, N + 1, N + 2


def tolerance(*outcomes):
    return 1e-9 * (1 + max(np.abs(x).max() for x in outcomes))


@given(coherent, returns(), returns(), st.floats(0, 50), st.floats(-50, 50), LAWS, TRUST)
def test_theorem_1_composites_of_coherent_measures_are_coherent(measures, x, y, factor, shift, probs, trust):
    pairs = everything(measures)

    def value(z):
        return np.array([a.composite for a in assessments(pairs, z, probs, trust)[:N]])

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
    value = jax.jit(composite.of)
    assert value(np.zeros_like(better)) == 0
    assert value(np.array(better)) == pytest.approx(-2.0)


@given(coherent, returns(), LAWS, TRUST)
def test_theorem_2_additive_is_neutral_composite_and_an_upper_bound(measures, x, probs, trust):
    found = assessments(everything(measures), x, probs, trust)
    for a in found:
        assert a.additive == pytest.approx(trust @ a.member_risks, abs=tolerance(x))
        assert a.composite <= a.additive + tolerance(x)
    assert found[NEUTRAL].composite == pytest.approx(found[NEUTRAL].additive, abs=tolerance(x))


@given(coherent, st.floats(0.0, 3.0), returns(), LAWS, TRUST)
def test_the_risk_of_the_mixture_is_below_the_mixture_of_risks(measures, beta, x, probs, trust):
    """T <= F^A for concave distortions, EVaR and the entropic measure: each is concave in the law."""
    pairs = everything(measures, beta)
    for (_, aleatory), a in zip(pairs, assessments(pairs, x, probs, trust), strict=True):
        if not isinstance(aleatory, MeanSemideviation):
            assert a.total <= a.additive + tolerance(x)


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), returns(), LAWS, TRUST)
def test_cvar_bracket(alpha_e, alpha_a, x, probs, trust):
    """CVaR at the product of the levels, of the mixture, bounds the composite from below."""
    found = assessments(everything(alpha_e=alpha_e, alpha_a=alpha_a), x, probs, trust)
    assert found[NEUTRAL].total <= found[NESTED].composite + tolerance(x)


@given(st.floats(-2.0, 2.0), returns(MEMBERS, SCENARIOS), LAWS, TRUST)
def test_entropic_identity(beta, x, probs, trust):
    """One beta inside and outside is the entropic risk of the mixture, also for members with atoms of their own."""
    a = assessments(everything(beta=beta), x, probs, trust)[ENTROPIC]
    assert a.composite == pytest.approx(a.total, abs=tolerance(x))


@given(coherent, returns(), LAWS, TRUST)
def test_penalties_are_not_negative_and_add_up(measures, x, probs, trust):
    for a in assessments(everything(measures), x, probs, trust):
        assert a.aleatory_penalty >= -tolerance(x)
        assert a.epistemic_penalty >= -tolerance(x)
        assert a.mean - a.composite == pytest.approx(a.aleatory_penalty + a.epistemic_penalty, abs=tolerance(x))
        assert a.paper_A == pytest.approx(a.additive - a.total, abs=tolerance(x))
        assert a.composite <= a.paper_E + tolerance(x) <= a.mean + 2 * tolerance(x)


@given(coherent, returns(MEMBERS, SCENARIOS), LAWS, TRUST, st.permutations(range(MEMBERS)))
def test_the_order_of_members_does_not_matter(measures, x, probs, trust, order):
    pairs = everything(measures)
    given_order = assessments(pairs, x, probs, trust)
    other = assessments(pairs, x[order], probs[order], trust[order])
    for a, b in zip(given_order, other, strict=True):
        for field in ("mean", "additive", "composite", "total", "paper_E"):
            assert getattr(a, field) == pytest.approx(getattr(b, field), abs=tolerance(x))
        np.testing.assert_allclose(a.member_risks[order], b.member_risks, rtol=0, atol=tolerance(x))


@given(coherent, returns(), masses(), TRUST)
def test_members_that_agree_leave_no_epistemic_risk(measures, x, p, trust):
    for a in assessments(everything(measures), x, np.tile(p, (MEMBERS, 1)), trust):
        assert a.composite == pytest.approx(a.additive, abs=tolerance(x))
        assert a.total == pytest.approx(a.additive, abs=tolerance(x))
        assert a.paper_E == pytest.approx(a.mean, abs=tolerance(x))


def test_four_equal_members_at_a_quarter_give_the_worst_member():
    values = np.array([[3.0, 5.0], [1.0, 2.0], [2.0, 4.0], [9.0, 9.0]])
    assert jax.jit(Composite(CVaR(0.25), CVaR(0.5)).of)(values) == 1.0
    assert jax.jit(Composite(CVaR(0.25), Expectation()).of)(values) == 1.5


def test_scaling_values_by_weights_is_not_a_belief():
    """When all members say 10, so does the belief; four values of 10 / 4 do not."""
    tens, trust = np.full((4, 3), 10.0), np.array([0.4, 0.3, 0.2, 0.1])

    @jax.jit
    def both(trust):
        belief, scaled = (Composite(CVaR(0.25), CVaR(0.25), aggregate) for aggregate in ("belief", "scale"))
        return [m.of(tens, belief=trust) for m in (belief, scaled, Additive(CVaR(0.25)))]

    np.testing.assert_allclose(both(np.full(4, 0.25)), [10.0, 2.5, 10.0], rtol=1e-6)
    np.testing.assert_allclose(both(trust), [10.0, 1.0, 10.0], rtol=1e-6)
