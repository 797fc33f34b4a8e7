"""The account of a decision: as numbers that add up, a table, JSON and a picture."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.explanation import Explanation, explain
from sentinel_rl.nets import init_networks
from sentinel_rl.returns import Support
from sentinel_rl.risk import CVaR, Expectation


def told(first_action: int = 0, **options) -> Explanation:
    agent = SentinelAgent(Support(-1.0, 3.0, 9), k=3, hidden=(8,), **options)
    networks = init_networks(jax.random.key(0), 3, 2, 4, 9, (8,), "separate")
    return explain(agent, networks, np.array([2.0, -1.0], np.float32), first_action)


@pytest.fixture(scope="module")
def why() -> Explanation:
    return told()


def test_shapes_and_laws(why: Explanation):
    assert why.probs.shape == (3, 4, 9)
    assert why.atoms.tolist() == np.linspace(-1, 3, 9).tolist()
    np.testing.assert_allclose(why.probs.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(np.sum(why.belief.weights, axis=0), 1, atol=1e-6)


def test_penalties_add_up_and_are_not_negative(why: Explanation):
    parts = why.assessment
    np.testing.assert_allclose(
        parts.mean - parts.composite, parts.aleatory_penalty + parts.epistemic_penalty, atol=1e-6
    )
    assert np.min(parts.aleatory_penalty) > 0
    assert np.min(parts.epistemic_penalty) > 0


def test_the_action_is_the_best_of_the_composite(why: Explanation):
    assert why.action == int(np.argmax(why.assessment.composite))
    assert why.measure == "cvar:0.25 o cvar:0.25"


def test_neutral_measures_have_no_penalty():
    parts = told(aleatory=Expectation(), epistemic=Expectation()).assessment
    np.testing.assert_allclose(parts.composite, parts.mean, atol=1e-6)


def test_scaled_weights_explain_what_the_agent_acts_on():
    scaled = told(aggregate="scale", epistemic=CVaR(0.5))
    assert scaled.measure == "cvar:0.5 o scaled cvar:0.25"
    agent = SentinelAgent(Support(-1.0, 3.0, 9), k=3, hidden=(8,), aggregate="scale", epistemic=CVaR(0.5))
    networks = init_networks(jax.random.key(0), 3, 2, 4, 9, (8,), "separate")
    values = agent.values(networks, jnp.array([2.0, -1.0]))
    np.testing.assert_allclose(scaled.assessment.composite, values, atol=1e-6)


def test_the_table_marks_the_choice(why: Explanation):
    first, head, *rows = str(why).splitlines()
    assert first == "maximising cvar:0.25 o cvar:0.25"
    assert head.split()[:4] == ["mean", "aleatory_penalty", "epistemic_penalty", "composite"]
    assert [row[0] for row in rows] == [">" if a == why.action else " " for a in range(4)]
    assert [row[2:5] for row in rows] == ["[0]", "[1]", "[2]", "[3]"]


def test_actions_are_counted_as_the_environment_does(why: Explanation):
    shifted = told(first_action=1)
    assert shifted.action == why.action + 1
    assert list(shifted.actions) == [1, 2, 3, 4]
    assert [row[2:5] for row in str(shifted).splitlines()[2:]] == ["[1]", "[2]", "[3]", "[4]"]
    assert json.loads(shifted.to_json())["actions"] == [1, 2, 3, 4]


def test_json_holds_everything(why: Explanation):
    content = json.loads(why.to_json())
    assert content["action"] == why.action
    np.testing.assert_allclose(content["probs"], why.probs)
    np.testing.assert_allclose(content["weights"], why.belief.weights)
    for name in ("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total"):
        np.testing.assert_allclose(content[name], getattr(why.assessment, name))
    assert {"paper_A", "paper_E", "member_risks", "atoms", "measure"} <= set(content)


def test_the_picture_has_a_panel_per_action(why: Explanation, tmp_path):
    figure = why.plot(tmp_path / "why.png")
    assert [axis.get_title() for axis in figure.axes] == [
        f"action {a}" + (" (chosen)" if a == why.action else "") for a in range(4)
    ]
    assert [len(axis.lines) for axis in figure.axes] == [5] * 4, "three members, the mean and the composite"
    assert (tmp_path / "why.png").stat().st_size > 1_000
