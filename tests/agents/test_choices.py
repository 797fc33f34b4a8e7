"""How SENTINEL-K values and chooses: its measures against the risk library's formulas, ties, numbers under vmap."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import epsilon_greedy
from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState
from sentinel_rl.belief import Belief, ftrl_weights
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Additive, CVaR, Expectation, Wang
from tests.agents.small import OBS, SPEC, fresh, small

KEY = jax.random.key(7)


@pytest.fixture(scope="module")
def state() -> SentinelState:
    return fresh(small())


def values(agent: SentinelAgent, state: SentinelState) -> np.ndarray:
    return np.asarray(jax.jit(lambda a, s: a.values(s.online, OBS))(agent, state))


def laws(agent: SentinelAgent, state: SentinelState) -> tuple[CategoricalReturn, jax.Array]:
    """The members' laws and their weights, from the logits."""
    log_probs = jax.nn.log_softmax(state.online(OBS))
    return CategoricalReturn(agent.support.atoms, jnp.exp(log_probs)), ftrl_weights(log_probs, agent.lam)


MEASURES = {
    "risk-neutral": (Expectation(), Expectation()),
    "additive": (Expectation(), CVaR(0.25)),
    "epistemic only": (CVaR(0.25), Expectation()),
    "composite": (CVaR(0.25), Wang(0.5)),
}


@pytest.mark.parametrize("kind", MEASURES)
def test_every_kind_of_agent_is_one_formula(state: SentinelState, kind: str):
    epistemic, aleatory = MEASURES[kind]
    agent = small(epistemic=epistemic, aleatory=aleatory, lam=2.0)
    members, weights = laws(agent, state)
    risks = np.asarray(aleatory(members))
    expected = [epistemic.of(risks[:, a], np.asarray(weights[:, a])) for a in range(SPEC.num_actions)]
    np.testing.assert_allclose(values(agent, state), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"lam": 2.0},
        {"lam": 2.0, "epistemic": Wang(0.3), "aleatory": Wang(0.3), "prefer": "outliers", "aggregate": "scale"},
        {"lam": 2.0, "divergence": "member_to_marginal"},
    ],
)
def test_many_observations_at_once_are_valued_like_one(state: SentinelState, options: dict[str, Any]):
    agent = small(**options)
    many = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)), jnp.float32)
    found = jax.jit(lambda a, s: a.values_of_many(s.online, many, a.lam))(agent, state)
    one = jax.jit(lambda a, s, obs: a.values(s.online, obs))
    np.testing.assert_allclose(found, np.stack([one(agent, state, obs) for obs in many], axis=1), rtol=1e-5)


def test_the_additive_agent_is_the_additive_measure(state: SentinelState):
    agent = small(epistemic=Expectation(), aleatory=CVaR(0.25), lam=2.0)
    expected = Additive(CVaR(0.25))(Belief(*laws(agent, state)))
    np.testing.assert_allclose(values(agent, state), expected, rtol=1e-6)


def test_the_risk_neutral_agent_is_the_mean_of_the_mixture(state: SentinelState):
    agent = small(epistemic=Expectation(), aleatory=Expectation(), lam=2.0)
    expected = Belief(*laws(agent, state)).mixture().mean()
    np.testing.assert_allclose(values(agent, state), expected, rtol=1e-5)


def test_without_lambda_all_members_count_alike(state: SentinelState):
    agent = small(epistemic=Expectation(), aleatory=CVaR(0.25), lam=0.0)
    members, _ = laws(agent, state)
    np.testing.assert_allclose(values(agent, state), np.mean(CVaR(0.25)(members), axis=0), rtol=1e-5)


def test_identical_members_leave_the_aleatory_risk(state: SentinelState):
    agent = small(epistemic=CVaR(0.25), aleatory=CVaR(0.25), lam=2.0)
    same = dataclasses.replace(state, online=jax.tree.map(lambda leaf: leaf.at[:].set(leaf[:1]), state.online))
    members, weights = laws(agent, same)
    np.testing.assert_allclose(weights, 1 / agent.k, rtol=1e-5)
    np.testing.assert_allclose(values(agent, same), agent.aleatory(members)[0], rtol=1e-5)


def test_assess_tells_what_decides(state: SentinelState):
    agent = small(epistemic=CVaR(0.25), aleatory=CVaR(0.5), lam=2.0)
    why = jax.jit(lambda a, s: a.assess(s, OBS))(agent, state)
    np.testing.assert_allclose(why.composite, values(agent, state), rtol=1e-6)
    members, weights = laws(agent, state)
    np.testing.assert_allclose(why.weights, weights, rtol=1e-5)
    np.testing.assert_allclose(why.member_risks, agent.aleatory(members), rtol=1e-5)


def test_mapping_over_numbers_equals_separate_agents(state: SentinelState):
    lams, alphas = [0.0, 1.0, 5.0], [0.1, 0.5, 1.0]
    agents = [small(lam=lam, aleatory=CVaR(a), epistemic=CVaR(a)) for lam, a in zip(lams, alphas, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *agents)
    found = jax.jit(jax.vmap(lambda a, s: a.values(s.online, OBS), in_axes=(0, None)))(stacked, state)
    assert len(np.unique(found[:, 0])) == 3
    for row, agent in zip(found, agents, strict=True):
        np.testing.assert_allclose(row, values(agent, state), rtol=1e-5)


@pytest.mark.parametrize("option", ["aggregate", "divergence", "prefer"])
def test_options_of_the_belief_reach_the_values(state: SentinelState, option: str):
    other: Any = {"aggregate": "scale", "divergence": "member_to_marginal", "prefer": "outliers"}[option]
    usual, unusual = small(lam=5.0, epistemic=Expectation()), small(lam=5.0, epistemic=Expectation(), **{option: other})
    assert not np.allclose(values(usual, state), values(unusual, state), rtol=1e-3)


choose = jax.jit(jax.vmap(epsilon_greedy, in_axes=(None, None, 0)))


@pytest.mark.parametrize(
    ("numbers", "epsilon", "expected"),
    [
        ([1.0, 3.0, 2.0], 0.0, [0, 1, 0]),  # the best
        ([3.0, 1.0, 3.0], 0.0, [1 / 2, 0, 1 / 2]),  # ties at random
        ([2.0, 2.0, 2.0], 0.0, [1 / 3, 1 / 3, 1 / 3]),
        ([-2.0, -1.0, -3.0], 0.0, [0, 1, 0]),  # below zero too
        ([1.0, 3.0, 2.0], 1.0, [1 / 3, 1 / 3, 1 / 3]),  # exploring, the best not excluded
        ([1.0, 3.0, 2.0], 0.3, [0.1, 0.8, 0.1]),
    ],
)
def test_epsilon_greedy_frequencies(numbers: list[float], epsilon: float, expected: list[float]):
    actions = choose(jnp.asarray(numbers), jnp.float32(epsilon), jax.random.split(KEY, 3_000))
    found = np.bincount(actions, minlength=3) / 3_000
    np.testing.assert_allclose(found, expected, atol=0.03 if epsilon or len(set(numbers)) < 3 else 0)


def test_an_agent_without_preference_does_not_favour_an_action(state: SentinelState):
    """Equal networks for all actions give exactly equal values."""
    blank = jax.tree.map(jnp.zeros_like, state)
    act = jax.jit(jax.vmap(lambda key: small().act(blank, OBS, jnp.float32(0), key)))
    assert set(act(jax.random.split(KEY, 40)).tolist()) == {0, 1, 2}


def test_diagnostics_tell_where_other_values_of_the_same_belief_differ(state: SentinelState):
    """An additive agent takes the action of the best additive value, and any other action differs from it."""
    agent = small(epistemic=Expectation(), aleatory=CVaR(0.25))
    best = int(np.argmax(values(agent, state)))
    told = jax.jit(jax.vmap(lambda action: agent.diagnostics(state, OBS, action)))(jnp.arange(3))
    np.testing.assert_array_equal(told["differs_additive"], np.arange(3) != best)
    mean = small(epistemic=Expectation(), aleatory=Expectation())
    np.testing.assert_array_equal(told["differs_neutral"], np.arange(3) != np.argmax(values(mean, state)))
