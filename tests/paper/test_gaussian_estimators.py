"""The safe and the uncertain action."""

import dataclasses

import numpy as np
import pytest
from scipy import integrate, stats

from sentinel_paper import beta_belief, gaussian_estimators
from sentinel_paper.claims import Verdict
from sentinel_paper.gaussian_estimators import SETTINGS
from tests.paper.reference import FIGURES

REFERENCE = FIGURES["beta_example"]


@pytest.fixture
def records(records_of):
    return records_of(gaussian_estimators.NAME)


def test_values_agree_with_the_reference(records):
    assert records.safe == pytest.approx(REFERENCE["cvar25_a1"], abs=1e-9)
    printed = REFERENCE["Beta(1,1)"]
    assert float(records.printed.additive) == pytest.approx(printed["additive"], abs=1e-8)
    assert float(records.printed.composite) == pytest.approx(printed["composite"], abs=1e-8)
    assert float(records.printed.known) == pytest.approx(printed["total"], abs=1e-8)
    assert float(records.printed.neutral) == 0.0


def test_known_omega_agrees_with_the_reference():
    omega, risk = zip(*((float(key), value) for key, value in REFERENCE["cvar25_a2"].items()), strict=True)
    inside = np.clip(omega, 1e-12, 1 - 1e-12)
    found = beta_belief.values(inside, np.full(len(omega), 2.0), alpha=0.25)
    np.testing.assert_allclose(found.known, risk, rtol=0, atol=1e-9)


def test_thresholds(records):
    found, sizes = records.thresholds, list(SETTINGS.concentrations)
    assert found.known == pytest.approx(REFERENCE["omega_threshold"], abs=1e-8)
    assert found.additive[sizes.index(2)] == pytest.approx(0.672, abs=5e-4)
    assert found.composite[sizes.index(2)] == pytest.approx(0.919, abs=5e-4)
    assert found.additive[-1] == pytest.approx(found.known, abs=1e-4)
    assert found.composite[-1] == pytest.approx(found.known, abs=5e-3)


@pytest.mark.parametrize(("mean", "concentration"), [(0.6, 2.0), (0.9, 7.0), (0.3, 100.0)])
def test_quadrature_agrees_with_adaptive_integration(mean, concentration):
    belief = stats.beta(concentration * mean, concentration * (1 - mean))
    found = beta_belief.values(np.array([mean]), np.array([concentration]), alpha=0.25)
    risk = np.polynomial.chebyshev.Chebyshev.interpolate(_known, 40, domain=(1e-9, 1 - 1e-9))
    additive = integrate.quad(lambda u: risk(belief.ppf(u)), 0, 1, limit=400, epsabs=1e-9)[0]
    composite = integrate.quad(lambda u: risk(belief.ppf(u)), 0, 0.25, limit=400, epsabs=1e-9)[0] / 0.25
    assert found.additive[0] == pytest.approx(additive, abs=1e-6)
    assert found.composite[0] == pytest.approx(composite, abs=1e-6)


def _known(omega):
    return beta_belief.values(omega, np.full(omega.size, 2.0), alpha=0.25).known


def test_composite_never_exceeds_additive(records):
    for worth in records.shown:
        assert (worth.composite <= worth.additive + 1e-12).all()
        assert (worth.known <= worth.additive + 1e-12).all()


def test_verdicts_are_computed_from_the_thresholds(records):
    def verdicts(**changes):
        changed = dataclasses.replace(records, thresholds=dataclasses.replace(records.thresholds, **changes))
        return [finding.verdict for finding in gaussian_estimators.findings(changed)]

    assert verdicts() == [Verdict.HOLDS, Verdict.HOLDS]
    assert verdicts(composite=records.thresholds.composite + 0.05) == [Verdict.FAILS, Verdict.HOLDS]
    assert verdicts(additive=records.thresholds.additive[::-1]) == [Verdict.FAILS, Verdict.FAILS]
