"""Measures as text: what is printed reads back, and what cannot be read says why."""

import numpy as np
import pytest
from hypothesis import given

from sentinel_rl.risk import (
    CPW,
    Additive,
    Composite,
    CVaR,
    Distortion,
    Entropic,
    EVaR,
    Expectation,
    MeanSemideviation,
    MeanStd,
    VaR,
    Wang,
    parse_risk,
)
from tests.risk.strategies import coherent, incoherent_averse
from tests.risk.zoo import MEASURES, name


@pytest.mark.parametrize("measure", [*MEASURES, CPW(1 / 3), VaR(1e-12), Entropic(-1e30), EVaR(1)], ids=name)
def test_what_is_printed_reads_back(measure):
    assert parse_risk(str(measure)) == measure


@given(coherent, incoherent_averse)
def test_any_parameter_reads_back_to_the_last_digit(measures, others):
    for measure in measures + others:
        assert parse_risk(str(measure)) == measure
    outer, inner = measures[0], others[0]
    for nested in (Composite(outer, inner), Composite(outer, inner, aggregate="scale"), Additive(inner)):
        assert parse_risk(str(nested)) == nested


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("cvar:0.25", CVaR(0.25)),
        ("wang:0.1", Wang(0.1)),
        (" CVaR : .25 ", CVaR(0.25)),
        ("expectation", Expectation()),
        ("expectation:", Expectation()),
        ("mean_std", MeanStd(1.0)),
        ("mean_semideviation:0.5", MeanSemideviation(0.5, 2.0)),
        ("mean_semideviation:0.5,1", MeanSemideviation(0.5, 1.0)),
        ("entropic:-1e-3", Entropic(-0.001)),
        ("cvar:0.25 o wang:0.1", Composite(CVaR(0.25), Wang(0.1))),
        ("cvar:0.25 o scaled cvar:0.25", Composite(CVaR(0.25), CVaR(0.25), "scale")),
        ("additive o cvar:0.25", Additive(CVaR(0.25))),
    ],
)
def test_by_hand(text, measure):
    assert parse_risk(text) == measure


def test_how_they_print():
    assert str(CVaR(0.25)) == "cvar:0.25"
    assert str(CVaR(np.float32(0.5))) == "cvar:0.5"
    assert str(Composite(CVaR(0.25), Wang(0.1))) == "cvar:0.25 o wang:0.1"
    assert str(Additive(Expectation())) == "additive o expectation"
    assert str(Distortion.from_function(np.sqrt)) == "sqrt"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cvarr:0.25",
            r"unknown risk measure 'cvarr': did you mean 'cvar'\? known are best_case, cpw, cvar, dual_power",
        ),
        ("proportional-hazard:0.5", r"did you mean 'proportional_hazard'\?"),
        ("entropy:1", r"did you mean 'entropic'\?"),
        ("zzz", r"unknown risk measure 'zzz': known are"),
        ("", r"unknown risk measure '': known are"),
        ("cvar", r"'cvar' gives 0 parameters: write cvar:<alpha>"),
        ("cvar:0.1,0.2", r"'cvar:0.1,0.2' gives 2 parameters: write cvar:<alpha>"),
        ("expectation:1", r"'expectation:1' gives 1 parameters: write expectation$"),
        ("mean_semideviation:1,2,3", r"gives 3 parameters: write mean_semideviation:<c>,<p>"),
        ("cvar:a", r"cannot read the parameters of 'cvar:a': write cvar:<alpha> with numbers"),
        ("cvar:0.1,", r"cannot read the parameters of 'cvar:0.1,'"),
        ("cvar:2", r"CVaR alpha = 2.0 is not allowed: it must be in \(0, 1\]"),
        ("cvar:nan", r"CVaR alpha = nan is not allowed"),
        ("cvar:0.1 o cvar:0.2 o cvar:0.3", r"composes 3 measures: write 'epistemic o aleatory'"),
        ("cvar:0.1 o wong:0.3", r"unknown risk measure 'wong': did you mean 'wang'\?"),
        ("cvar:0.1 o ", r"unknown risk measure"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ValueError, match=message):
        parse_risk(text)


class Squared(Distortion):
    """A measure of a user's own, which registers its name."""

    name = "Squared"

    def g(self, u):
        return 2 * u - u**2


def test_a_measure_of_ones_own_is_known_by_its_name():
    assert isinstance(parse_risk("squared"), Squared)
    assert isinstance(parse_risk(str(Squared())), Squared)
    assert str(parse_risk("cvar:0.5 o squared")) == "cvar:0.5 o Squared"


def test_a_name_belongs_to_one_class():
    with pytest.raises(ValueError, match="'cvar' is CVaR already"):

        class Mine(Distortion):
            name = "cvar"

            def g(self, u):
                return u

    assert isinstance(parse_risk("cvar:0.5"), CVaR)
