"""The decomposition that users see: a case by hand, and the table."""

import jax
import numpy as np
import pytest

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import CVaR, assess

# Two models, two actions: the second action is a coin in model 0 and sure in model 1.
SURE, COIN = [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]
BELIEF = Belief(CategoricalReturn([0.0, 1.0, 2.0], [[SURE, COIN], [SURE, SURE]]), [0.5, 0.5])


@pytest.fixture(scope="module")
def found():
    return jax.jit(assess)(BELIEF, CVaR(0.5), CVaR(0.5))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("mean", [1, 1]),
        ("member_risks", [[1, 0], [1, 1]]),
        ("additive", [1, 0.5]),
        ("composite", [1, 0]),
        # The mixture of the second action is 0, 1, 2 with 1/4, 1/2, 1/4: its worse half has mean 1/2.
        ("total", [1, 0.5]),
        ("aleatory_penalty", [0, 0.5]),
        ("epistemic_penalty", [0, 0.5]),
        ("paper_A", [0, 0]),
        ("paper_E", [1, 1]),
        ("weights", [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_by_hand(found, field, expected):
    np.testing.assert_allclose(getattr(found, field), expected, atol=1e-6)


def test_the_table_has_a_row_per_action(found):
    head, *rows = str(found).splitlines()
    assert head.split() == [
        *("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total", "paper_A", "paper_E")
    ]
    assert [row.split()[0] for row in rows] == ["[0]", "[1]"]
    assert rows[1].split()[1:] == ["1", "0.5", "0.5", "0", "0.5", "0.5", "0", "1"]


def test_one_law_per_member_is_one_row():
    belief = Belief(CategoricalReturn([0.0, 1.0], [[0.5, 0.5], [0.1, 0.9]]))
    text = str(jax.jit(assess)(belief, CVaR(0.5), CVaR(0.5)))
    assert len(text.splitlines()) == 2
