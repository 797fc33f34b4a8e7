"""The theorems: what must hold holds, what must not is refuted, and the numbers are those of plain formulas."""

import dataclasses

import numpy as np
import pytest

from sentinel_paper import random_beliefs, theorems
from sentinel_paper.claims import Verdict
from sentinel_rl.risk import CVaR, Expectation


@pytest.fixture(scope="module")
def found(records_of):
    return records_of("theorems")


def test_verdicts(found):
    assert [(one.claim.name, str(one.verdict)) for one in theorems.findings(found)] == [
        ("composite-coherent", "holds"),
        ("additive-special-case", "holds"),
        ("composite-more-cautious", "holds"),
        ("more-sensitive", "holds"),
        ("more-sensitive", "does not hold"),
        ("cvar-coherent", "holds"),
        ("wang-and-sd-coherent", "holds"),
        ("wang-and-sd-coherent", "does not hold"),
    ]


def test_beliefs_are_what_they_say():
    drawn = random_beliefs.draw(50, 3, 5, seed=1)
    np.testing.assert_allclose(np.sum(drawn.weights[:, :, None] * drawn.disagreement, axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.sum(drawn.probs * drawn.chance, axis=2), 0, atol=1e-12)
    np.testing.assert_allclose(drawn.weights.sum(axis=1), 1)
    wider = drawn.values(disagreement=2.0) - drawn.values()
    np.testing.assert_allclose(wider, np.broadcast_to(drawn.disagreement, wider.shape))


def test_risks_by_hand():
    """Two sure members, 0 and 10: the worst half of the belief is 0, the mean 5."""
    one = np.ones((1, 2, 1))
    beliefs = random_beliefs.Beliefs(
        np.full((1, 2), 0.5), one, 5 * one[:, :1], np.array([[[-5.0], [5.0]]]), np.zeros((1, 2, 1))
    )
    risks = random_beliefs.risks(beliefs, CVaR(0.5), Expectation(), beliefs.values())
    assert [float(part[0]) for part in risks] == [0.0, 5.0, 0.0, 0.0]


def test_a_wrong_theorem_would_be_refuted(found):
    """Composite risk above additive risk in a single belief is enough."""
    pair = found.settings.pairs[0]
    wrong = found.drawn[pair].composite.copy()
    wrong[7] = found.drawn[pair].additive[7] + 1e-3
    changed = dataclasses.replace(found, drawn=found.drawn | {pair: found.drawn[pair]._replace(composite=wrong)})
    (cautious,) = (one for one in theorems.findings(changed) if one.claim.name == "composite-more-cautious")
    assert cautious.verdict == Verdict.FAILS
    assert cautious.effect.startswith("violated in 0.1% [0.0, 0.6]")


def test_too_few_beliefs_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        theorems.Settings(runs=1)
