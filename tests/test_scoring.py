"""Scores of laws against closed forms, SciPy and cases that can be checked by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from sentinel_rl.errors import UsageError
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.scoring import (
    auroc,
    calibration_error,
    cdf_at,
    crps,
    mean_over_groups,
    pit,
    risk_coverage,
    share_below,
)

RNG = np.random.default_rng(5)


def normal_law(mean, sd, atoms=400):
    """A fine grid of atoms under a normal law, for every mean and sd."""
    mean, sd = np.asarray(mean, float)[:, None], np.asarray(sd, float)[:, None]
    grid = mean + sd * np.linspace(-6, 6, atoms)
    edges = (grid[:, 1:] + grid[:, :-1]) / 2
    cdf = np.concatenate([np.zeros_like(mean), stats.norm.cdf(edges, mean, sd), np.ones_like(mean)], axis=1)
    return CategoricalReturn(grid, np.diff(cdf, axis=1))


def discrete_laws(rows, atoms=7):
    values = np.sort(RNG.normal(size=(rows, atoms)), axis=1)
    return CategoricalReturn(values, RNG.dirichlet(np.ones(atoms), rows))


def drawn(laws):
    """One outcome of every law."""
    cdf = np.cumsum(np.asarray(laws.probs, float), axis=1)
    place = np.minimum((RNG.uniform(size=(len(cdf), 1)) > cdf).sum(1), cdf.shape[1] - 1)
    return np.take_along_axis(np.asarray(laws.values), place[:, None], 1)[:, 0]


def test_a_calibrated_law_gives_a_flat_pit():
    """Laws of different shapes, outcomes drawn from them: the chi-square test on tenths sees nothing."""
    laws = discrete_laws(4_000)
    levels = pit(laws, drawn(laws), "steps")
    assert stats.kstest(levels, "uniform").pvalue > 0.01
    assert stats.chisquare(np.histogram(levels, 10, (0, 1))[0]).pvalue > 0.01
    mean, sd = RNG.normal(size=2_000), RNG.uniform(0.5, 2, 2_000)
    levels = pit(normal_law(mean, sd), RNG.normal(mean, sd))
    assert stats.kstest(levels, "uniform").pvalue > 0.01
    assert calibration_error(levels) < 0.02


def test_a_law_that_is_too_narrow_gives_a_u():
    sd = np.full(2_000, 1.0)
    levels = pit(normal_law(0 * sd, 0.5 * sd), RNG.normal(0, sd))
    # Below the 10 % quantile of N(0, 1/4) lies Phi(-1.2816 / 2) of N(0, 1).
    told = share_below(levels, 0.1)
    assert told.low < stats.norm.cdf(stats.norm.ppf(0.1) / 2) < told.high
    assert told.share > 0.2


def test_the_cdf_between_and_beyond_the_atoms():
    law = CategoricalReturn([0.0, 1.0, 3.0], [0.2, 0.3, 0.5])
    for y, expected in ((-1, 0), (0, 0), (0.25, 0.1), (0.5, 0.2), (1.25, 0.35), (2, 0.5), (2.5, 0.75), (3, 1), (9, 1)):
        assert float(cdf_at(law, y)[1]) == pytest.approx(expected, abs=1e-6)
    below, upto = cdf_at(law, 1.0, "steps")
    assert (float(below), float(upto)) == (pytest.approx(0.2), pytest.approx(0.5))


def test_atoms_of_their_own_and_equal_atoms():
    """Quantile heads have atoms per law, some of them equal: a mass is where they meet."""
    law = CategoricalReturn([[0.0, 2.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]], np.full((2, 4), 0.25))
    below, upto = cdf_at(law, [2.0, 5.0])
    assert below.tolist() == [0.5, 0.0]
    assert upto.tolist() == [1.0, 1.0]
    assert (pit(law, [2.0, 5.0]) > [0.5, 0.0]).all()
    assert cdf_at(law, [9.0, 4.9])[1].tolist() == [1.0, 0.0]


def test_crps_is_that_of_the_normal_law():
    """Gneiting and Raftery (2007), equation 21."""
    mean, sd, y = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 3.0]), np.array([0.3, 2.5, -2.0])
    z = (y - mean) / sd
    closed = sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(crps(normal_law(mean, sd), y), closed, rtol=2e-3)


def test_crps_is_the_integral_and_the_energy_form():
    laws, y = discrete_laws(3, atoms=5), np.array([0.1, -3.0, 0.7])
    for row, found in enumerate(crps(laws, y)):
        values, probs = (np.asarray(part, float)[row] for part in (laws.values, laws.probs))

        def gap(x, values=values, probs=probs, y=y[row]):
            return (probs[values <= x].sum() - (y <= x)) ** 2

        points = sorted([*values, y[row]])
        whole = sum(integrate.quad(gap, a, b)[0] for a, b in itertools.pairwise(points))
        assert found == pytest.approx(whole, abs=1e-5)
        pairs = probs @ np.abs(values[:, None] - values) @ probs
        assert found == pytest.approx(probs @ np.abs(values - y[row]) - pairs / 2, abs=1e-5)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.data())
def test_auroc_is_the_u_statistic(scores, data):
    kind = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    kind[0], kind[-1] = True, False
    numbers = np.array(scores, float)
    u = stats.mannwhitneyu(numbers[kind], numbers[~kind]).statistic
    assert auroc(numbers, kind) == pytest.approx(u / (kind.sum() * (~kind).sum()))


def test_a_constant_score_says_nothing():
    losses = (RNG.uniform(size=50) < 0.3).astype(float)
    assert auroc(np.ones(50), losses > 0) == 0.5
    curve = risk_coverage(np.ones(50), losses)
    np.testing.assert_allclose(curve.risk, losses.mean())
    assert curve.area == pytest.approx(curve.at_random)
    assert curve.best < curve.area


def test_the_loss_itself_is_the_best_score():
    losses = RNG.uniform(size=50)
    assert risk_coverage(losses, losses).area == pytest.approx(risk_coverage(losses, losses).best)
    assert risk_coverage(-losses, losses).area > losses.mean()


def test_intervals_draw_whole_groups():
    """Every value four times in its group says no more than once, and as independent values it pretends to."""
    values = (RNG.uniform(size=60) < 0.4).astype(float)
    once = mean_over_groups(values)
    repeated, groups = np.repeat(values, 4), np.repeat(np.arange(60), 4)
    assert mean_over_groups(repeated, groups) == pytest.approx(once)
    pretended = mean_over_groups(repeated)
    assert pretended.high - pretended.low < 0.7 * (once.high - once.low)
    half_width = 1.96 * np.sqrt(once.share * (1 - once.share) / 60)
    assert once.high - once.low == pytest.approx(2 * half_width, rel=0.2)


def test_bad_input_is_refused(untyped):
    law = discrete_laws(3)
    with pytest.raises(UsageError, match="reading"):
        pit(law, 0.0, "dots")
    with pytest.raises(UsageError, match="one for each"):
        crps(law, np.zeros(2))
    with pytest.raises(UsageError, match="finite"):
        pit(law, np.nan)
    with pytest.raises(UsageError, match="2 positive and 0 negative"):
        auroc([1.0, 2.0], [True, True])
    with pytest.raises(UsageError, match="truth value"):
        auroc([1.0, 2.0], [0, 1])
    with pytest.raises(UsageError, match="one loss"):
        risk_coverage([1.0, 2.0], [1.0])
    with pytest.raises(UsageError, match="finite"):
        risk_coverage([], [])
    with pytest.raises(UsageError, match="between 0 and 1"):
        share_below(np.ones(3), 1.0)
    with pytest.raises(UsageError, match="one group"):
        mean_over_groups([1.0, 2.0], [1])


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")  # of importing the package
def test_the_numbers_of_uncertainty_toolbox():
    """The same samples under normal laws, which is what it can judge."""
    import uncertainty_toolbox as uct
    from uncertainty_toolbox.metrics_calibration import get_proportion_under_quantile

    mean, sd = RNG.normal(size=500), RNG.uniform(0.3, 1.0, 500)
    y = RNG.normal(mean, 1.5 * sd)
    law = normal_law(mean, sd)
    assert crps(law, y).mean() == pytest.approx(uct.crps_gaussian(mean, sd, y), rel=2e-3)
    levels = pit(law, y)
    for level in (0.05, 0.1, 0.25):
        # It subtracts the truth from the prediction: its lower side is our upper one.
        theirs = get_proportion_under_quantile(mean, sd, y, level)
        assert share_below(1 - levels, level).share == pytest.approx(theirs, abs=0.004)
    theirs = uct.mean_absolute_calibration_error(mean, sd, y, num_bins=101, prop_type="quantile")
    assert calibration_error(levels) == pytest.approx(theirs, abs=0.004)
