"""Agents by name: those of the library, those of users, what they are made from, and what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents import registry
from sentinel_rl.agents.agent import Agent, BaseAgent
from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.agents.registry import (
    agent_kind,
    agent_names,
    make_agent,
    named_options,
    options_of_kind,
    register_agent,
    require_agent,
)
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.heads import QuantileHead
from sentinel_rl.risk import CVaR
from tests.learners import OPTIONS

POLE = CartPole(200)


class Stubborn(BaseAgent):
    """Takes one action; what it sees makes it surer."""

    action: int = 0
    surer: float = 0.5

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        return jnp.zeros(())

    def act(self, state: Any, obs: Any, epsilon: Any, key: jax.Array) -> Any:
        return jnp.asarray(self.action, jnp.int32)

    def observe(self, state: Any, t: Any, transition: Any, key: jax.Array) -> Any:
        return state + self.surer

    def learn(self, state: Any, update: Any, key: jax.Array) -> Any:
        return state, {}


@pytest.fixture
def own_names(monkeypatch: pytest.MonkeyPatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


def test_the_names_of_the_library():
    assert agent_names()[:6] == ["sentinel", "cdqn", "vdqn", "vdqn-cvar", "uadqn", "random"]
    assert set(OPTIONS) <= set(agent_names())


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UsageError, match="unknown agent 'sentinal': did you mean 'sentinel'"):
        make_agent("sentinal", POLE)
    with pytest.raises(UsageError, match="unknown agent 'zzz': known are sentinel, cdqn"):
        agent_kind("zzz")


@pytest.mark.parametrize("env", [POLE, POLE.spec, "CartPole-v0"])
def test_an_environment_is_given_as_an_instance_a_spec_or_a_name(env: Any):
    assert make_agent("sentinel", env, k=2) == make_agent("sentinel", POLE.spec, k=2)


@pytest.mark.usefixtures("own_names")
def test_a_class_of_the_users_own_has_a_name_and_its_fields_are_options():
    register_agent("stubborn", Stubborn)
    assert agent_kind("stubborn").options == ("action", "surer")
    assert make_agent("stubborn", POLE, action=1) == Stubborn(action=1)
    assert named_options(Stubborn(action=1)) == ("stubborn", {"action": 1, "surer": 0.5})
    assert options_of_kind("stubborn") == {"action": 0, "surer": 0.5}
    with pytest.raises(UsageError, match="did you mean 'stubborn'"):
        make_agent("stuborn", POLE)


@pytest.mark.usefixtures("own_names")
def test_a_function_of_the_users_own_makes_an_agent_from_its_parameters():
    def make(spec: EnvSpec, last: bool = False) -> Stubborn:
        return Stubborn(action=spec.num_actions - 1 if last else 0)

    register_agent("first-or-last", make)
    assert agent_kind("first-or-last").options == ("last",)
    assert make_agent("first-or-last", POLE, last=True).action == 1
    register_agent("first-or-last", lambda spec: Stubborn(surer=2.0))
    assert make_agent("first-or-last", POLE).surer == 2.0, "a later one of the same name replaces it"


@pytest.mark.usefixtures("own_names")
@pytest.mark.parametrize("make", [Stubborn, lambda spec, action=0: Stubborn(action)])
def test_an_unknown_option_of_an_own_agent_is_refused(make: Any):
    register_agent("stubborn", make)
    with pytest.raises(UsageError, match=r"unknown option actoin: did you mean action\?"):
        make_agent("stubborn", POLE, actoin=1)


@pytest.mark.usefixtures("own_names")
def test_a_function_that_takes_anything_is_given_anything():
    register_agent("open", lambda spec, **options: Stubborn(**options))
    assert make_agent("open", POLE, action=1).action == 1


@pytest.mark.usefixtures("own_names", "untyped")
@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("sentinel", Stubborn, "the agent 'sentinel' belongs to the library: choose another name"),
        ("random", lambda spec: RandomAgent(), "'random' belongs to the library"),
        ("", Stubborn, "needs a name and a class or function, got ''"),
        ("mine", Stubborn(), "needs a name and a class or function, got 'mine' and Stubborn"),
        ("mine", dict, "dict is no agent: derive it from sentinel_rl.agents.*BaseAgent"),
    ],
)
def test_what_cannot_be_registered_is_refused(name: str, make: Any, message: str):
    known = agent_names()
    with pytest.raises(UsageError, match=message):
        register_agent(name, make)
    assert agent_names() == known


@pytest.mark.usefixtures("own_names", "untyped")
def test_what_is_no_agent_is_told_what_it_lacks():
    class Half:
        def init(self, spec: EnvSpec, key: jax.Array) -> Any: ...

        def act(self, state: Any, obs: Any, epsilon: Any, key: jax.Array) -> Any: ...

    with pytest.raises(UsageError, match=r"Half is no agent: it lacks observe, learn, plan_defaults, .*BaseAgent"):
        require_agent(Half())
    register_agent("half", lambda spec: Half())
    with pytest.raises(UsageError, match="Half is no agent"):
        make_agent("half", POLE)


def test_a_base_agent_has_all_that_is_asked_for():
    agent = Stubborn(action=1)
    assert isinstance(agent, Agent)
    assert require_agent(agent) is agent
    key = jax.random.key(0)
    state = agent.init(POLE.spec, key)
    assert (agent.plan_defaults(9), agent.stochastic, agent.caveat) == ({"warmup": 0}, False, "")
    assert int(agent.greedy(state, jnp.zeros(4), key)) == 1
    assert agent.with_policy(agent.policy(state)) is state
    assert (agent.report(state), agent.diagnostics(state, jnp.zeros(4), jnp.int32(0))) == ({}, {})
    assert agent.check(10, {"loss": 1.0}, lambda: state) is None
    with pytest.raises(UsageError, match="Stubborn does not explain its decisions"):
        agent.account(state, jnp.zeros(4))


@pytest.mark.parametrize("name", OPTIONS)
def test_an_agent_can_be_made_again_from_its_options(name: str):
    agent = make_agent(name, POLE, **OPTIONS[name])
    found = named_options(agent)
    assert found is not None
    assert make_agent(found[0], POLE, **found[1]) == agent


def test_options_that_make_an_agent_again_have_all_its_numbers():
    agent = make_agent("sentinel", POLE, k=3, aleatory="wang:0.5", v_max=150.0, atoms=7, lam=2.5)
    name, options = named_options(agent) or ("", {})
    assert (name, options["k"], options["lam"], options["atoms"]) == ("sentinel", 3, 2.5, 7)
    assert (options["v_min"], options["v_max"]) == (0.0, 150.0)
    np.testing.assert_array_equal(options["epistemic"].alpha, CVaR(0.5).alpha)


@pytest.mark.parametrize(
    "given", [{"head": "quantile"}, {"head": QuantileHead(5, 0.5)}, {"head": "quantile", "n_step": 7}]
)
def test_an_agent_of_quantiles_is_made_again(given: dict[str, Any]):
    agent = make_agent("sentinel", POLE, **given)
    name, options = named_options(agent) or ("", {})
    assert options["preset"] == "learner"
    assert make_agent(name, POLE, **options) == agent


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (EnvSpec("states", 16, 3, structure="states"), ("table", 5e-3, 1e-5, 1, None)),
        (EnvSpec("images", 75, 3, obs_shape=(5, 5, 3), structure="image"), ("cnn", 1e-3, 1e-5, 3, 8)),
        (EnvSpec("numbers", 16, 3), ("mlp", 1e-3, None, 3, 64)),
    ],
)
def test_the_learner_fits_what_is_observed_and_is_made_again(spec: EnvSpec, told: tuple[Any, ...]):
    agent = make_agent("sentinel", spec)
    found = (agent.encoder, agent.learning_rate, agent.learning_rate_end, agent.n_step, agent.pace.longest_bout)
    assert found == told
    name, options = named_options(agent) or ("", {})
    assert make_agent(name, spec, **options) == agent


def test_an_agent_of_an_unknown_class_has_no_name():
    assert named_options(Stubborn()) is None
