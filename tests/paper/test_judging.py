"""Verdicts on numbers that leave no doubt, and on such that do."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from sentinel_paper import fig_toy_wasserstein, judging
from sentinel_paper.claims import Claim, Verdict
from sentinel_paper.metrics import CRASHES, Metric, comparisons, first_means, last_means, overview, runs
from sentinel_paper.settings import HIGHWAY
from sentinel_paper.trained import Contender, Records, Settings
from sentinel_rl.study import Cell, Record

CLAIM = Claim("better", "It is better.", "here")
NOISE = np.random.default_rng(0).normal(0, 1, (6, 20))


def records(runs=20, steps=100_000, **means):
    """Agents whose crashes are these means, each with noise of its own."""
    found = {}
    for row, (label, mean) in enumerate(means.items()):
        cell = Cell("random", "sentinel/Toy-v0", steps, tuple(range(runs)), label=label)
        found[label] = Record(cell, {"steps": np.arange(3), "terminations": mean + NOISE[row, :runs]}, {})
    return Records(Settings(runs=runs, steps=steps), HIGHWAY, found)


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ({"ours": 10, "a": 20, "b": 30}, Verdict.HOLDS),
        ({"ours": 10, "a": 20, "b": 5}, Verdict.FAILS),
        ({"ours": 10, "a": 20, "b": 10}, Verdict.UNDECIDED),
    ],
)
def test_best(means, verdict):
    found = judging.best(CLAIM, records(**means), CRASHES, "ours", ("a", "b"), "always")
    assert found.verdict == verdict
    assert "better than a (-" in found.reason
    higher = Metric("value", "value", "high", CRASHES.of)
    turned = judging.best(
        CLAIM, records(**{name: -mean for name, mean in means.items()}), higher, "ours", ("a", "b"), ""
    )
    assert turned.verdict == verdict


def test_few_runs_decide_nothing():
    found = judging.best(CLAIM, records(runs=5, ours=10, a=2000), CRASHES, "ours", ("a",), "")
    assert found.verdict == Verdict.UNDECIDED
    assert "5 runs are too few" in found.reason


def test_steadiest():
    calm = records(ours=0, a=0, b=0)
    for label, scale in (("ours", 1), ("a", 10), ("b", 20)):
        calm.found[label].arrays["terminations"][:] *= scale
    assert judging.steadiest(CLAIM, calm, CRASHES, "ours", ("a", "b"), "").verdict == Verdict.HOLDS
    assert judging.steadiest(CLAIM, calm, CRASHES, "a", ("ours", "b"), "").verdict == Verdict.FAILS


def test_that_another_is_steadier_is_corrected_for_the_number_of_others():
    calm = records(ours=0, a=0, b=0, c=0)
    for label, scale in (("a", 0.75), ("b", 10), ("c", 10)):
        calm.found[label].arrays["terminations"][:] *= scale
    assert judging.steadiest(CLAIM, calm, CRASHES, "ours", ("a",), "").verdict == Verdict.FAILS
    assert judging.steadiest(CLAIM, calm, CRASHES, "ours", ("a", "b", "c"), "").verdict == Verdict.UNDECIDED


def test_spreads_are_compared_by_pairs():
    """Seeds that are hard for both widen both: without pairs an interval of half the width would contain zero."""
    low, high = judging.spread_interval(1.3 * NOISE[0], NOISE[0])
    spread = float(np.std(NOISE[0], ddof=1))
    assert 0 < low < 0.3 * spread < high < 0.6 * spread


@pytest.mark.parametrize(
    ("paper", "steps", "verdict"),
    [
        ((11.0, 1.0), 100_000, Verdict.HOLDS),
        ((15.0, 1.0), 100_000, Verdict.FAILS),
        ((15.0, 1.0), 500, Verdict.UNDECIDED),
    ],
)
def test_printed_numbers(paper, steps, verdict):
    found = judging.reproduced(CLAIM, records(steps=steps, ours=10), CRASHES, "ours", paper)
    assert found.verdict == verdict
    assert ("ours of 500" in found.reason) == (steps == 500)


def test_order_and_likeness():
    falling = records(a=30, b=20, c=10)
    assert judging.ordered(CLAIM, falling, CRASHES, ("a", "b", "c"), "").verdict == Verdict.HOLDS
    assert judging.ordered(CLAIM, falling, CRASHES, ("c", "b", "a"), "").verdict == Verdict.FAILS
    alike = records(a=100, b=101, c=99, d=150)
    assert judging.alike(CLAIM, alike, CRASHES, "a", ("b", "c"), 0.2, "").verdict == Verdict.HOLDS
    assert judging.alike(CLAIM, alike, CRASHES, "a", ("b", "d"), 0.2, "").verdict == Verdict.FAILS


def test_likeness_is_tested_against_the_margin():
    """Of 100 against 121.5 with a margin of 20, the p-value is that of what lies beyond it."""
    told = records(a=100, b=121.5)
    ours, theirs = (told.found[label].arrays["terminations"] for label in "ab")
    found = judging.alike(CLAIM, told, CRASHES, "a", ("b",), 20 / ours.mean(), "")
    beyond = stats.wilcoxon(ours - theirs + 20).pvalue
    assert f"beyond that b (p = {beyond:.2g}, Holm)" in found.reason
    assert found.verdict == Verdict.FAILS


def test_a_run_that_failed_is_left_out():
    broken = records(ours=10, a=20)
    broken.found["a"].arrays["terminations"][3] = np.nan
    assert judging.best(CLAIM, broken, CRASHES, "ours", ("a",), "").verdict == Verdict.HOLDS
    (row,) = overview(broken, [Contender("a", "random")], [CRASHES])
    assert row["crashes"].startswith("19.") or row["crashes"].startswith("20.")


def test_tables():
    told = records(ours=10, a=20)
    contenders = [Contender("ours", "random", {}, {"crashes": (12.0, 0.5)}), Contender("a", "random")]
    first, second = overview(told, contenders, [CRASHES])
    assert (first["paper: crashes"], second["paper: crashes"]) == ("12.0 ± 0.5", "")
    (row,) = comparisons(told, [CRASHES], "ours", ["a"])
    assert row["against"] == "a"
    assert row["difference"].startswith("-")
    assert row["better in"] == "100% of runs"
    assert len(runs(told, [CRASHES])) == 40


def test_curves_at_both_ends():
    cell = Cell("random", "sentinel/Toy-v0", 10, (0, 1))
    curve = np.array([[np.nan, 1.0, 2.0, 5.0], [np.nan, 3.0, 2.0, 7.0]])
    record = Record(cell, {"steps": np.arange(4), "metric/x": curve}, {})
    np.testing.assert_array_equal(first_means(record, "metric/x"), [1.0, 3.0])
    np.testing.assert_array_equal(last_means(record, "metric/x"), [5.0, 7.0])
    assert np.isnan(first_means(record, "metric/y")).all()


def test_the_first_runs_are_a_part_of_all():
    some = records(ours=10).first(7)
    assert some.settings.runs == 7
    np.testing.assert_array_equal(some.found["ours"].arrays["terminations"], 10 + NOISE[0, :7])
    assert len(some.found["ours"].arrays["steps"]) == 3
    assert dataclasses.replace(some.settings, runs=20) == Settings()


def test_the_toys_laws_are_judged_by_their_distances(records_of):
    found = {
        finding.setting: finding.verdict for finding in fig_toy_wasserstein.findings(records_of("fig-toy-wasserstein"))
    }
    assert found == {
        "SENTINEL-4": Verdict.HOLDS,
        "VDQN, noise 0.1": Verdict.FAILS,
        "VDQN, noise 0.4": Verdict.HOLDS,
        "VDQN, noise 0.1, after 10 transitions": Verdict.UNDECIDED,
        "VDQN, noise 0.1, mean of the whole curve": Verdict.UNDECIDED,
        "exact density of the first action": Verdict.FAILS,
    }
