"""The axioms of coherence on common scenarios: where they hold, for any parameter, and where they fail, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.risk import CPW, BestCase, Entropic, Expectation, MeanStd, MeanVariance, VaR, Wang, WorstCase
from tests.risk.strategies import ANY_COHERENT, coherent, masses, returns
from tests.risk.zoo import INCOHERENT, risks

COMPILE_QUICKLY = True

# Besides the drawn ones, which are coherent whatever their parameter.
FIXED = [Expectation(), WorstCase(), *INCOHERENT]


def evaluate(measures, p, *outcomes):
    """One row of values of all measures, drawn and fixed, for each of (up to) three returns."""
    outcomes = [*outcomes, *outcomes[-1:] * (3 - len(outcomes))]
    return np.moveaxis(risks(measures + FIXED, outcomes, p), 1, 0)


def having(axiom, measures, *rows):
    """The values of those measures that satisfy an axiom."""
    chosen = [axiom not in INCOHERENT.get(measure, ()) for measure in measures + FIXED]
    return (row[chosen] for row in rows)


def tolerance(*outcomes):
    return 1e-9 * (1 + max(np.abs(x).max() for x in outcomes))


@given(coherent, returns(), returns(), masses())
def test_monotone(measures, x, rise, p):
    better = x + np.abs(rise)
    below, above, _ = evaluate(measures, p, x, better)
    below, above = having("monotone", measures, below, above)
    assert (below <= above + tolerance(x, better)).all()


@given(coherent, returns(), st.floats(-1e3, 1e3), masses())
def test_translation_invariant(measures, x, shift, p):
    before, after, _ = evaluate(measures, p, x, x + shift)
    # All of them. The variance is of the order of the square.
    np.testing.assert_allclose(after, before + shift, rtol=0, atol=tolerance(x**2, (x + shift) ** 2))


@given(coherent, returns(), st.floats(0.0, 100.0), masses())
def test_positively_homogeneous(measures, x, factor, p):
    before, after, _ = evaluate(measures, p, x, factor * x)
    before, after = having("positively_homogeneous", measures, before, after)
    np.testing.assert_allclose(after, factor * before, rtol=0, atol=tolerance(x, factor * x))


@given(coherent, returns(), returns(), masses())
def test_superadditive(measures, x, y, p):
    first, second, both = having("superadditive", measures, *evaluate(measures, p, x, y, x + y))
    assert (first + second <= both + tolerance(x, y)).all()


@given(coherent, returns(), masses())
def test_averse_measures_never_exceed_the_mean(measures, x, p):
    values = dict(zip(measures + FIXED, evaluate(measures, p, x)[0], strict=True))
    for measure in [*measures, WorstCase(), Entropic(0.5), MeanStd(1.0), MeanVariance(0.5)]:
        assert values[measure] <= values[Expectation()] + tolerance(x)


@given(coherent, returns(), masses())
def test_monotone_measures_stay_inside_the_possible(measures, x, p):
    (values,) = having("monotone", measures, evaluate(measures, p, x)[0])
    assert (values >= x[p > 0].min() - tolerance(x)).all()
    assert (values <= x[p > 0].max() + tolerance(x)).all()


@given(coherent, returns(), masses())
def test_seeking_measures_are_never_below_the_mean(measures, x, p):
    values = evaluate(measures, p, x)[0][len(measures) :]
    seeking = [values[FIXED.index(measure)] for measure in (Wang(0.8), Entropic(-0.5), BestCase())]
    assert min(seeking) >= values[0] - tolerance(x)


def violation(measure, *outcomes, p):
    """Values of the measure for three returns on five scenarios, the last ones perhaps impossible."""
    outcomes, p = np.array(outcomes), np.array(p)
    missing = 5 - len(p)
    rows = evaluate(ANY_COHERENT, np.pad(p, (0, missing)), *np.pad(outcomes, [(0, 0), (0, missing)]))
    return rows[: len(outcomes), len(ANY_COHERENT) + FIXED.index(measure)]


@pytest.mark.parametrize(
    ("measure", "x", "y"),
    [
        # Each loses with probability 0.2 < 0.25, and together they lose with 0.4: 0 + 0 > -1.
        (VaR(0.25), [-1, 0, 0, 0, 0], [0, -1, 0, 0, 0]),
        (Wang(0.8), [-1, 0, 0, 0, 0], [0, -1, 0, 0, 0]),
        # The best outcome is overweighted too, g(0.8) < 0.8.
        (CPW(0.71), [0, -1, -1, -1, -1], [-1, 0, -1, -1, -1]),
        (BestCase(), [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]),
        # Twice the same: more than twice the risk.
        (Entropic(0.5), [0, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
        (Entropic(-0.5), [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]),
        (MeanVariance(0.5), [0, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
    ],
    ids=str,
)
def test_not_superadditive(measure, x, y):
    first, second, both = violation(measure, x, y, np.add(x, y), p=np.full(5, 0.2))
    assert first + second > both + 0.01


@pytest.mark.parametrize("measure", [Entropic(0.5), Entropic(-0.5), MeanVariance(0.5)], ids=str)
def test_not_homogeneous(measure):
    once, twice = violation(measure, [0, 1], [0, 2], p=[0.5, 0.5])
    assert abs(twice - 2 * once) > 0.05


@pytest.mark.parametrize(("measure", "value"), [(MeanStd(1.0), 1 - 3), (MeanVariance(0.5), 1 - 0.5 * 9)], ids=str)
def test_not_monotone(measure, value):
    """The paper calls MeanStd coherent, but it prefers nothing to a free chance of 10."""
    nothing, chance = violation(measure, [0, 0], [0, 10], p=[0.9, 0.1])
    assert nothing == 0
    assert chance == pytest.approx(value)
