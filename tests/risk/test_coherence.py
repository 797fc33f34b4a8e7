"""`check_coherence` says what READING's table says, and its counterexamples are real."""

import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.risk import (
    CPW,
    Additive,
    Composite,
    CVaR,
    Distortion,
    DualPower,
    MeanStd,
    VaR,
    Wang,
    check_coherence,
)
from tests.risk.zoo import COHERENT, INCOHERENT, name

COMPILE_QUICKLY = True

AXIOMS = {"monotone", "translation_invariant", "positively_homogeneous", "superadditive"}


@pytest.mark.parametrize("measure", COHERENT, ids=name)
def test_coherent_measures(measure):
    report = check_coherence(measure)
    assert report
    assert report.coherent
    assert report.counterexamples.keys() == AXIOMS
    assert set(report.counterexamples.values()) == {None}
    assert report.tried > 1000


@pytest.mark.parametrize(("measure", "lacks"), INCOHERENT.items(), ids=map(str, INCOHERENT))
def test_incoherent_measures(measure, lacks):
    report = check_coherence(measure)
    assert not report
    assert {axiom for axiom in AXIOMS if not report.holds(axiom)} == lacks
    for axiom in lacks:
        assert violates(measure.of, axiom, report.counterexamples[axiom])


def violates(value, axiom, example):
    """Evaluate a counterexample anew, from its scenarios alone."""
    x, y, p = example.x, example.y, example.probs
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()
    if axiom == "monotone":
        return (x <= y).all() and value(x, p) > value(y, p) + 1e-8
    if axiom == "translation_invariant":
        return abs(value(y, p) - value(x, p) - (y - x).max()) > 1e-8
    if axiom == "positively_homogeneous":
        np.testing.assert_allclose(y, 3 * x)
        return abs(value(y, p) - 3 * value(x, p)) > 1e-8
    return value(x, p) + value(y, p) > value(x + y, p) + 1e-8


@pytest.mark.parametrize(
    "measure",
    [Composite(CVaR(0.25), Wang(0.2)), Additive(DualPower(2.0))],
    ids=str,
)
def test_theorem_1(measure):
    assert check_coherence(measure)


@pytest.mark.parametrize(
    ("measure", "axiom"),
    [
        (Composite(CVaR(0.25), MeanStd(1.0)), "monotone"),
        (Composite(MeanStd(1.0), CVaR(0.25)), "monotone"),
        (Additive(VaR(0.3)), "superadditive"),
        (Composite(CVaR(0.25), CVaR(0.25), aggregate="scale"), "translation_invariant"),
    ],
    ids=str,
)
def test_composites_of_what_is_not_coherent(measure, axiom):
    report = check_coherence(measure)
    assert not report.holds(axiom)
    example = report.counterexamples[axiom]
    # Scenarios are (model, outcome) pairs: belief times law.
    assert example.probs.ndim == 2
    belief = example.probs.sum(axis=1)

    def value(z, p):
        law = np.where(belief[:, None] > 0, p, 1.0)  # any law will do for a model of no weight
        return measure.of(z, law, belief)

    assert violates(value, axiom, example)


def test_the_search_repeats_itself():
    assert str(check_coherence(VaR(0.25))) == str(check_coherence(VaR(0.25)))


def test_the_report_reads_well():
    text = str(check_coherence(MeanStd(1.0)))
    assert "mean_std:1.0: not coherent (" in text
    assert "monotone               fails: X <= Y => rho(X) <= rho(Y) asks" in text
    assert "superadditive          holds" in text
    assert "p=[" in text


@pytest.mark.parametrize(
    ("g", "coherent"),
    [
        (lambda u: 2 * u - u**2, True),
        (jnp.sqrt, True),
        (lambda u: u**2, False),
        (lambda u: jnp.where(u < 0.999, u, 1 - 2 * (1 - u)), False),  # convex only near the top
    ],
)
def test_a_users_distortion_is_checked(g, coherent):
    report = check_coherence(Distortion.from_function(g))
    assert bool(report) == coherent
    assert report.holds("monotone")
    assert report.holds("superadditive") == coherent


def test_a_decreasing_distortion_is_not_monotone():
    """Nor is CPW where it stops being increasing."""
    assert not check_coherence(Distortion.from_function(lambda u: u + jnp.sin(7 * u) / 3)).holds("monotone")
    assert check_coherence(CPW(0.5)).holds("monotone")
    assert not check_coherence(CPW(0.2)).holds("monotone")
