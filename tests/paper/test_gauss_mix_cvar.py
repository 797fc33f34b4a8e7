"""Composite, additive and total CVaR of mixtures of Gaussians."""

import dataclasses

import jax
import numpy as np
import pytest

from sentinel_paper import gauss_mix_cvar
from sentinel_paper.claims import Verdict
from sentinel_paper.gauss_mix_cvar import PAPER, SETTINGS
from tests.paper.reference import FIGURES, fixed_mixture, silent

NAMES = {"total": "total", "composite": "comp", "additive": "add"}


@pytest.fixture
def records(records_of):
    return records_of(gauss_mix_cvar.NAME)


def verdicts(records):
    """Verdicts on the two claims, one pair per scale."""
    found = [finding.verdict for finding in gauss_mix_cvar.findings(records)]
    return list(zip(found[::2], found[1::2], strict=True))


def test_fixed_instance_agrees_with_the_reference():
    instance = FIGURES["fixed_mixture_instance"]
    parts = [part[None] for part in fixed_mixture()]
    with jax.enable_x64(True):
        found = gauss_mix_cvar.cvars(*parts, np.array(instance["alphas"]))
    for values, kind in zip(found, ("total", "composite", "additive"), strict=True):
        np.testing.assert_allclose(values[0], instance[kind], rtol=0, atol=1e-11, err_msg=kind)


@pytest.mark.parametrize("kind", NAMES)
def test_hundred_runs_agree_with_the_reference_within_sampling_error(records, kind):
    curve = FIGURES["gauss_mix_cvar"]["curves"][NAMES[kind]]
    assert list(SETTINGS.alphas) == FIGURES["gauss_mix_cvar"]["alphas"]
    assert SETTINGS.runs == 100
    error = np.abs(getattr(records, kind)[0].mean(axis=0) - curve["mean"])
    np.testing.assert_array_less(error, 4 * np.array(curve["sd"]) / np.sqrt(SETTINGS.runs))


def test_theorems_hold_in_every_run(records):
    slack = 1e-9
    assert (records.total <= records.additive + slack).all()
    assert (records.composite <= records.additive + slack).all()
    equal = records.total[..., -1]  # alpha = 1 is the mean
    for kind in (records.composite, records.additive):
        np.testing.assert_allclose(kind[..., -1], equal, rtol=0, atol=1e-12)


def test_verdicts_as_printed_and_with_narrower_models(records):
    assert verdicts(records) == [(Verdict.HOLDS, Verdict.FAILS), (Verdict.HOLDS, Verdict.HOLDS)]


def test_verdicts_are_computed_from_the_records(records):
    near = dataclasses.replace(records, composite=records.total - 1e-3)
    assert [nearer for _, nearer in verdicts(near)] == [Verdict.HOLDS, Verdict.HOLDS]
    far = dataclasses.replace(records, composite=records.total - 100)
    assert [nearer for _, nearer in verdicts(far)] == [Verdict.FAILS, Verdict.FAILS]
    mixed = np.where(np.arange(SETTINGS.runs)[:, None] % 2, near.composite, far.composite)
    assert verdicts(dataclasses.replace(records, composite=mixed))[0][1] == Verdict.UNDECIDED
    additive = records.additive.copy()
    additive[0, 3, 2] = records.total[0, 3, 2]  # one run, one alpha
    assert [strict for strict, _ in verdicts(dataclasses.replace(records, additive=additive))] == [
        Verdict.FAILS,
        Verdict.HOLDS,
    ]


def test_the_reason_names_numbers_of_the_run(records):
    reasons = [
        finding.reason for finding in gauss_mix_cvar.findings(records) if finding.claim == PAPER["composite-closer"]
    ]
    low = records.closer[0, :5]
    assert f"{low.min()} to {low.max()} of 100 runs" in reasons[0]


def test_a_run_does_not_depend_on_how_many_follow():
    few = gauss_mix_cvar.run(dataclasses.replace(SETTINGS, runs=3, scales=(1.0,)), silent)
    more = gauss_mix_cvar.run(dataclasses.replace(SETTINGS, runs=60, scales=(1.0,)), silent)
    np.testing.assert_array_equal(few.total, more.total[:, :3])
    assert len(np.unique(more.total[0, :, 0])) == 60


def test_seeds_give_different_runs(records):
    other = gauss_mix_cvar.run(dataclasses.replace(SETTINGS, runs=3, seed=1, scales=(1.0,)), silent)
    assert (other.total[0] != records.total[0, :3]).all(axis=0)[:-1].all()


def test_one_run_is_refused():
    with pytest.raises(ValueError, match="runs = 1 is not allowed: give at least 2"):
        dataclasses.replace(SETTINGS, runs=1)
