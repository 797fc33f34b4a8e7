"""FTRL weights of three Gaussian estimators."""

import dataclasses
import math

import numpy as np
import pytest

from sentinel_paper import ftrl_gaussians
from sentinel_paper.claims import Verdict
from sentinel_paper.ftrl_gaussians import RULES, SETTINGS, Rule
from tests.paper.reference import FIGURES

REFERENCE = FIGURES["ftrl_example"]
WEIGHTS = {
    Rule("member_to_marginal", "outliers"): "plus_member_to_marginal(paper numbers)",
    Rule("member_to_marginal", "consensus"): "minus_member_to_marginal(sound)",
    Rule("marginal_to_member", "outliers"): "plus_marginal_to_member(paper formula)",
    Rule("marginal_to_member", "consensus"): "minus_marginal_to_member",
}


@pytest.fixture
def records(records_of):
    return records_of(ftrl_gaussians.NAME)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_losses_and_weights_agree_with_the_reference(records, rule):
    row = RULES.index(rule)
    np.testing.assert_allclose(records.losses[row], REFERENCE[f"kl_{rule.divergence}"], rtol=0, atol=1e-9)
    expected = REFERENCE["weights_lambda1"][WEIGHTS[rule]]
    np.testing.assert_allclose(records.weights[row, SETTINGS.lambdas.index(1.0)], expected, rtol=0, atol=1e-9)


def test_limits(records):
    np.testing.assert_allclose(records.weights[:, SETTINGS.lambdas.index(0.0)], 1 / 3, rtol=1e-12)
    greedy = records.weights[:, SETTINGS.lambdas.index(math.inf)]
    for rule, row in zip(RULES, greedy, strict=True):
        np.testing.assert_array_equal(row, [0, 1, 0] if rule.prefer == "outliers" else [1, 0, 0])


def test_densities_integrate_to_one(records):
    np.testing.assert_allclose(np.trapezoid(records.densities, records.points, axis=1), 1, rtol=1e-12)


def test_verdicts(records):
    assert [(finding.claim.name, finding.verdict) for finding in ftrl_gaussians.findings(records)] == [
        ("printed-losses", Verdict.FAILS),
        ("printed-weights", Verdict.FAILS),
        ("printed-weights", Verdict.HOLDS),
        ("average-at-zero", Verdict.HOLDS),
        ("greedy-at-infinity", Verdict.FAILS),
    ]


def test_verdicts_are_computed_from_the_records(records):
    agreeing = dataclasses.replace(records, losses=np.tile([0.48, 0.92, 0.74], (4, 1)))
    assert ftrl_gaussians.findings(agreeing)[0].verdict == Verdict.HOLDS
    nearest = dataclasses.replace(records, losses=np.tile([0.48, 0.02, 0.74], (4, 1)))
    assert ftrl_gaussians.findings(nearest)[-1].verdict == Verdict.HOLDS
    uneven = dataclasses.replace(records, weights=np.roll(records.weights, 1, axis=1))
    assert [finding.verdict for finding in ftrl_gaussians.findings(uneven)][1:4] == [
        Verdict.FAILS,
        Verdict.FAILS,
        Verdict.FAILS,
    ]
