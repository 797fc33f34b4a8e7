"""Laws that are right give a flat PIT; laws that are wrong are found out, and corrected."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sentinel_rl import plotting
from sentinel_rl.agents.recalibration import LEVELS, Recalibrated, Recalibration, fit_recalibration
from sentinel_rl.calibration import calibrate, draw_calibration, load_recalibration, save_calibration
from sentinel_rl.calibration.calibrate import corrected, summary
from sentinel_rl.calibration.samples import collect, subject
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.scoring import calibration_error, cdf_at, crps
from tests.calibration.known import Known, Prize, Steady
from tests.learners import make

EPISODES = 500
STATE = jnp.zeros(())


def judged(sd, **options):
    return calibrate(Known(sd=jnp.float32(sd)), Prize(), EPISODES, state=STATE, **options)


@pytest.fixture(scope="module")
def right():
    return judged(1.0)


@pytest.fixture(scope="module")
def narrow():
    return judged(0.5)


def test_right_laws_give_a_flat_pit(right):
    assert [told.name for told in right.before] == ["member 1", "member 2", "mixture"]
    for told in right.before:
        assert stats.chisquare(told.histogram).pvalue > 0.01
        for share, level in zip(told.below, (0.05, 0.1, 0.25), strict=True):
            assert share.low <= level <= share.high
    assert stats.kstest(right.levels[0], "uniform").pvalue > 0.01
    # The CRPS of N(0, 1) at its own draws is 1 / sqrt(pi).
    assert summary(right.before).crps == pytest.approx(1 / np.sqrt(np.pi), rel=0.06)


def test_laws_that_are_too_narrow_are_found_out_and_corrected(narrow):
    before, after = summary(narrow.before), summary(narrow.after)
    expected = stats.norm.cdf(stats.norm.ppf(0.1) / 2)
    assert before.below[1].low < expected < before.below[1].high
    assert 0.08 <= after.below[1].share <= 0.12
    assert after.error < 0.03 < before.error
    assert after.crps < before.crps
    assert stats.chisquare(after.histogram).pvalue > 0.001


def test_a_map_that_was_fitted_on_right_laws_changes_little(right):
    gap = np.abs(np.asarray(right.recalibration.predicted) - np.array(LEVELS))
    assert gap.max() < 0.05


def test_laws_under_shift_are_judged_where_they_are_asked_for():
    told = judged(1.0, on=Prize(shift=-1.0))
    share = summary(told.before).below[1]
    assert share.low < stats.norm.cdf(stats.norm.ppf(0.1) + 1) < share.high


def test_returns_go_on_behind_the_time_limit_where_the_agent_learns_through_it():
    through = collect(subject(Known(time_limit="bootstrap"), Steady(), STATE), range(2), 0)
    # 1 / (1 - gamma), but for the hundredth that is left out.
    assert (np.abs(through.realised - 10) <= 10 * 0.01).all()
    stops = collect(subject(Known(), Steady(), STATE), range(2), 0)
    np.testing.assert_allclose(stops.realised, [2.71, 1.9, 1.0] * 2, rtol=1e-6)
    assert stops.episode.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_corrected_law_has_the_seen_frequencies():
    """Atoms per member and action, some of them equal, and a law that is one number."""
    values = np.sort(np.random.default_rng(3).normal(size=(2, 3, 9)), axis=-1)
    values[0, 0, :4], values[1, 2] = values[0, 0, 0], 5.0
    laws = CategoricalReturn(values, np.full(values.shape, 1 / 9))
    bent = Recalibration(np.array(LEVELS) ** 2, LEVELS)
    corrected = bent.law(laws)
    assert corrected.probs.shape == (2, 3, len(LEVELS) - 1)
    assert (np.diff(corrected.atoms, axis=-1) >= 0).all()
    np.testing.assert_allclose(corrected.values[1, 2], 5.0)
    # Half of the outcomes fall below what was predicted as its 25 % quantile.
    y = np.quantile(values[1, 0], 0.3)
    np.testing.assert_allclose(
        cdf_at(corrected, np.full((2, 3), y))[1][1, 0], np.sqrt(cdf_at(laws, np.full((2, 3), y))[1][1, 0]), atol=0.03
    )
    same = Recalibration(LEVELS, LEVELS).law(laws)
    np.testing.assert_allclose(crps(same, np.zeros((2, 3))), crps(laws, np.zeros((2, 3))), atol=0.08)


def test_laws_of_many_decisions_are_corrected_some_at_a_time():
    rng = np.random.default_rng(3)
    values = np.sort(rng.normal(size=(2, 2_300, 5)), axis=-1).astype(np.float32)
    laws = CategoricalReturn(values, rng.dirichlet(np.ones(5), size=(2, 2_300)).astype(np.float32))
    bent = Recalibration([0.0, 0.1, 0.6, 1.0], [0.0, 0.3, 0.5, 1.0], shift=0.5, widen=1.5)
    found, wanted = corrected(bent, laws), bent.law(laws)
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.probs, wanted.probs, rtol=1e-6)


def test_numbers_and_map_are_saved(narrow, tmp_path):
    path = save_calibration(narrow, tmp_path / "calibration.json")
    content = json.loads(path.read_text())
    assert (content["decisions"], len(content["rows"])) == (EPISODES, 6)
    assert content["rows"][2]["below_10"] == summary(narrow.before).below[1].share
    found = load_recalibration(path)
    np.testing.assert_array_equal(found.predicted, narrow.recalibration.predicted)
    with plotting.figure(12.0, 4.4) as drawing:
        draw_calibration(drawing, narrow)
        assert all(file.stat().st_size > 1_000 for file in plotting.save(drawing, tmp_path / "figure"))


@pytest.mark.attack("forged-scene")
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"recalibration":' * 50_000,
        "{}",
        '{"recalibration": {"predicted": [0, 1]}}',
        '{"recalibration": {"predicted": [0, 0.5, 1], "seen": [0, 1]}}',
        '{"recalibration": {"predicted": [0, 2], "seen": [0, 1]}}',
        '{"recalibration": {"predicted": [0, 0.7, 0.5, 1], "seen": [0, 0.1, 0.2, 1]}}',
        '{"recalibration": {"predicted": [0, NaN, 1], "seen": [0, 0.1, 1]}}',
        '{"recalibration": {"predicted": [0, "a", 1], "seen": [0, 0.1, 1]}}',
        '{"recalibration": 3}',
        '{"recalibration": {"predicted": [0, 1], "seen": [0, 1], "shift": 0, "widen": -1}}',
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(CorruptError, match=r"map\.json"):
        load_recalibration(path)
    with pytest.raises(UsageError, match="sentinel calibrate"):
        load_recalibration(tmp_path / "none.json")


def test_what_cannot_be_calibrated_is_told():
    with pytest.raises(UsageError, match="no laws"):
        calibrate(make("vdqn"))
    with pytest.raises(UsageError, match="at least 1"):
        calibrate(Known(), Prize(), 0, state=STATE)
    with pytest.raises(UsageError, match="state="):
        calibrate(Known(), Prize())
    with pytest.raises(UsageError, match="at least as many outcomes"):
        calibrate(Known(), Prize(), 5, state=STATE)
    with pytest.raises(UsageError, match="no laws"):
        Recalibrated(make("uadqn").agent, Recalibration(LEVELS, LEVELS))


def test_a_recalibrated_agent_acts_and_explains_itself():
    """Where the lower tail is heavier than predicted, the cautious agent values its actions less."""
    agent = make("sentinel")
    heavy = Recalibration(np.array(LEVELS) ** 2, LEVELS)
    corrected = agent.recalibrated(heavy)
    obs = np.zeros(4, np.float32)
    before, after = agent.assess(obs), corrected.assess(obs)
    assert (after.value < before.value).all()
    assert after.probs.shape == (2, 2, len(LEVELS) - 1)
    assert "recalibrated" in str(after)
    assert corrected.predict(obs)[0] == after.action
    assert len(after.plot().axes) == 2
    assert agent.assess(obs).value.tolist() == before.value.tolist()


def test_the_map_of_a_mixture_is_fitted_though_members_differ():
    """Two members that are wrong in opposite ways: neither is calibrated, their corrected mixture is."""
    z, y = np.linspace(-8, 8, 81), np.random.default_rng(1).normal(size=500)
    probs = [stats.norm.pdf(z, mean, 0.4) for mean in (-0.5, 0.5)]
    laws = CategoricalReturn(z, np.stack([np.tile(p / p.sum(), (y.size, 1)) for p in probs]))
    found = fit_recalibration(laws, np.full((2, y.size), 0.5), y)
    assert (float(found.shift), float(found.widen)) == (0.0, 1.0)
    levels = [cdf_at(law, np.tile(y, (2, 1)))[1].mean(0) for law in (laws, found.law(laws))]
    before, after = map(calibration_error, levels)
    assert after < 0.025 < before
    assert 0.08 <= np.mean(levels[1] < 0.1) <= 0.12


def test_laws_that_do_not_reach_what_happens_are_moved_first():
    """Quantile atoms far above every return: no map of their levels could reach down."""
    rng = np.random.default_rng(2)
    mean = rng.uniform(size=800)
    atoms = 15 + mean[:, None] + np.linspace(-0.2, 0.2, 9)
    laws = CategoricalReturn(np.stack([atoms, atoms + 0.1]), np.full((2, 800, 9), 1 / 9))
    y, fitted = rng.normal(mean, 1.0), np.arange(800) < 400
    part = CategoricalReturn(laws.atoms[:, fitted], laws.probs[:, fitted])
    found = fit_recalibration(part, np.full((2, 400), 0.5), y[fitted])
    assert float(found.shift) == pytest.approx(-15.05, abs=0.2)
    corrected = found.law(laws)
    levels = cdf_at(corrected, np.tile(y, (2, 1)))[1].mean(0)[~fitted]
    assert 0.07 <= np.mean(levels < 0.1) <= 0.13
    assert calibration_error(levels) < 0.04
