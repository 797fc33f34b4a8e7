"""The account of a decision: as numbers that add up, a table, JSON and a picture."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import Account, BaseAgent
from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState
from sentinel_rl.belief import Belief
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import Estimates, Explanation, explain, short_number
from sentinel_rl.nets import init_networks
from sentinel_rl.returns import CategoricalReturn, Support
from sentinel_rl.risk import CVaR, Expectation, assess
from tests.training.pole import compilations

OBS = np.array([2.0, -1.0], np.float32)


def make(**options) -> tuple[SentinelAgent, SentinelState]:
    agent = SentinelAgent(Support(-1.0, 3.0, 9), k=3, hidden=(8,), **options)
    return agent, agent.with_policy(networks())


@functools.cache
def networks():
    return init_networks(jax.random.key(0), 3, 2, 4, 9, (8,), "separate")


@jax.jit
def act(agent: SentinelAgent, state: SentinelState):
    """What the agent maximises, what it says it does, and what it does."""
    obs = jnp.asarray(OBS)
    return agent.values(state.online, obs), agent.account(state, obs).value, agent.greedy(state, obs, jax.random.key(0))


def told(first_action: int = 0, names: tuple[str, ...] | None = None, **options) -> Explanation:
    handle = EnvHandle(EnvSpec("small", 2, 4, action_names=names), None, (2,), first_action)
    return explain(*make(**options), OBS, handle)


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
    values, account, action = act(*make(aggregate="scale", epistemic=CVaR(0.5)))
    np.testing.assert_allclose(scaled.assessment.composite, values, atol=1e-6)
    np.testing.assert_allclose(account, values, atol=1e-6)
    assert scaled.action == int(np.argmax(values)) == int(action)


def test_the_table_marks_the_choice(why: Explanation):
    first, head, *rows, last = str(why).splitlines()
    assert first == "maximising cvar:0.25 o cvar:0.25"
    assert head.split() == ["mean", "chance", "ignorance", "value"]
    assert last == why.sentence
    assert max(map(len, str(why).splitlines())) <= 80
    parts = why.assessment
    numbers = np.array([[float(number) for number in row[10:].split()] for row in rows])
    wanted = np.stack([parts.mean, parts.aleatory_penalty, parts.epistemic_penalty, parts.composite], axis=-1)
    np.testing.assert_allclose(numbers, wanted, rtol=1e-3, atol=1e-6)
    assert [row[0] for row in rows] == [">" if a == why.action else " " for a in range(4)]
    assert [row[2:5] for row in rows] == ["[0]", "[1]", "[2]", "[3]"]


def test_actions_are_counted_as_the_environment_does(why: Explanation):
    shifted = told(first_action=1)
    assert shifted.action == why.action + 1
    assert list(shifted.actions) == [1, 2, 3, 4]
    assert [row[2:5] for row in str(shifted).splitlines()[2:-1]] == ["[1]", "[2]", "[3]", "[4]"]
    assert json.loads(shifted.to_json())["actions"] == [1, 2, 3, 4]


def test_actions_have_the_names_of_the_environment(why: Explanation):
    named = told(names=("left", "keep lane", "right", "brake"))
    assert named.labels == ["left", "keep lane", "right", "brake"]
    rows = str(named).splitlines()[2:-1]
    assert [row[2:12].strip() for row in rows] == named.labels
    assert rows[why.action].startswith(f"> {named.labels[why.action]}")
    assert [row.split()[-1] for row in rows] == [row.split()[-1] for row in str(why).splitlines()[2:-1]]
    assert json.loads(named.to_json())["action_names"] == named.labels
    assert named.plot().axes[why.action].get_title() == f"{named.labels[why.action]} (chosen)"
    assert "action_names" not in json.loads(why.to_json())


def test_the_decision_in_one_sentence(why: Explanation):
    """Against numbers that are worked out here."""
    parts, names = why.assessment, ("A", "B", "C", "D")
    second, best = np.argsort(parts.composite)[-2:]
    margin = parts.composite[best] - parts.composite[second]
    assert told(names=names).sentence == (
        f"{names[best]}, by {short_number(float(margin))} over {names[second]}: "
        f"chance costs {short_number(float(parts.aleatory_penalty[best]))}, "
        f"ignorance {short_number(float(parts.epistemic_penalty[best]))}"
    )


def test_why_not_another_action():
    belief = Belief(CategoricalReturn([0.0, 1.0, 2.0], [[[0, 0, 1], [0.5, 0, 0.5]], [[0, 0, 1], [0, 1, 0]]]))
    why = Explanation(belief, assess(belief, CVaR(0.5), CVaR(0.5)), "", action_names=("SURE", "BET"))
    assert why.sentence == "SURE, by 2 over BET: chance costs 0, ignorance 0"
    assert why.why_not(1) == "BET is worth 2 less: its mean is 1 lower, chance costs 0.5 more, ignorance 0.5 more"
    assert why.why_not(0).endswith("its mean is the same, chance costs the same, ignorance the same")
    with pytest.raises(UsageError, match="action 2 does not exist: choose one of 0, 1"):
        why.why_not(2)


def test_an_agent_without_laws_tells_its_numbers():
    handle = EnvHandle(EnvSpec("small", 2, 4), None, (2,), 0)
    agent = Told()
    why = explain(agent, jnp.array([1.0, 3.0, 2.0, 0.0]), OBS, handle)
    assert isinstance(why, Estimates)
    assert (why.action, why.measure, why.note, why.draws) == (1, "its value", "", None)
    assert [row.split() for row in str(why).splitlines()[1:3]] == [["value", "spread"], ["[0]", "1", "0.5"]]
    assert why.sentence == "[1], by 1 over [2]"
    assert why.why_not(3) == "[3] is worth 3 less"
    assert json.loads(why.to_json())["spread"] == [0.5] * 4


def test_an_agent_that_tells_nothing_says_so():
    with pytest.raises(UsageError, match=r"Silent does not explain its decisions: it has no method account"):
        explain(Silent(), jnp.zeros(4), OBS, EnvHandle(EnvSpec("small", 2, 4), None, (2,), 0))


class Silent(BaseAgent):
    """Only what must be written."""

    def init(self, spec, key):
        return jnp.zeros(spec.num_actions)

    def act(self, state, obs, epsilon, key):
        return jnp.argmax(state).astype(jnp.int32)

    def observe(self, state, t, transition, key):
        return state

    def learn(self, state, update, key):
        return state, {}


class Told(Silent):
    def account(self, state, obs):
        return Account(state, {"spread": jnp.full(4, 0.5)})


def test_it_is_compiled_once(why: Explanation):
    """Another observation of another agent of this shape compiles nothing."""
    with compilations() as compiled:
        told(lam=3.0)
    assert compiled == []


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
