"""What holds for every agent: sizes beside the paper's, numbers that can be mapped over, bad input."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.risk import CVaR, Expectation
from tests.learners import OPTIONS

POLE = CartPole(max_steps=200)
HIGHWAY = EnvSpec("highway", obs_size=25, num_actions=5, reward_range=(0.0, 1.0), max_steps=40)


def parameters(name: str, spec: EnvSpec, **options: Any) -> int:
    """The number of learnable parameters of an agent, without drawing them."""
    agent = make_agent(name, spec, capacity=1, **options)
    state: Any = jax.eval_shape(lambda key: agent.init(spec, key), jax.random.key(0))
    return int(state.online.parameters)


def test_parameter_counts_beside_the_papers():
    """For the highway the paper prints 253 820, 52 000 and 158 820, "matched": only the first counts its network."""
    assert parameters("sentinel", POLE.spec, k=4, preset="paper") == (32 * 4 + 11_891) * 4 * 2 == 96_152
    assert parameters("sentinel", HIGHWAY, k=4, preset="paper") == 253_820
    assert parameters("cdqn", HIGHWAY, preset="paper") == 253_820 // 4
    assert parameters("vdqn", HIGHWAY) == parameters("vdqn-cvar", HIGHWAY) == 6_210
    assert parameters("uadqn", HIGHWAY) * 4 / 3 == 283_624  # f, g1, g2; the fourth network is the copy of f
    # The printed formulas: VDQN's has no biases, UA-DQN's is 25 -> 256 -> 5 twenty times.
    assert (400 * 25 + 400) * 5 == 52_000
    assert parameters("uadqn", HIGHWAY, quantiles=1) // 3 * 20 == 158_820


@pytest.mark.parametrize("name", OPTIONS)
def test_every_agent_has_the_verbs(name: str):
    assert isinstance(make_agent(name, POLE.spec), Agent)


LEAVES = {
    "sentinel": ("lam", "mask_rate"),
    "cdqn": ("adam_eps", "learning_rate"),
    "vdqn": ("noise", "gamma"),
    "vdqn-cvar": ("noise", "initial_sd"),
    "uadqn": ("beta", "aversion", "anchor_noise"),
    "random": ("gamma",),
}


@pytest.mark.parametrize("name", LEAVES)
def test_numbers_are_leaves_that_can_be_mapped_over(name: str):
    agents = [make_agent(name, POLE.spec, **dict.fromkeys(LEAVES[name], v)) for v in (0.25, 0.5)]
    assert jax.tree.structure(agents[0]) == jax.tree.structure(agents[1])
    assert sum(one != other for one, other in zip(*map(jax.tree.leaves, agents), strict=True)) == len(LEAVES[name])


def test_cdqn_is_sentinel_with_one_member_that_sees_all():
    agent = make_agent("cdqn", POLE.spec, gamma=0.9)
    assert isinstance(agent, SentinelAgent)
    assert (agent.k, agent.mask, agent.mask_rate, agent.gamma) == (1, "bernoulli", 1.0, 0.9)
    assert (agent.aleatory, agent.epistemic) == (Expectation(), Expectation())


def test_vdqn_cvar_is_vdqn_that_acts_by_its_score():
    agent: Any = make_agent("vdqn-cvar", POLE.spec, bootstrap="greedy")
    assert (agent.risk, agent.acting, agent.bootstrap) == (CVaR(0.25), "score", "greedy")
    neutral: Any = make_agent("vdqn", POLE.spec)
    assert (neutral.risk, neutral.acting, neutral.bootstrap) == (Expectation(), "step", "greedy")


@pytest.mark.parametrize(("action", "expected"), [(None, [0.5, 0.5]), (0, [1, 0]), (1, [0, 1])])
def test_random_and_constant_policies(action: int | None, expected: list[float]):
    agent: Any = make_agent("random", POLE.spec, action=action)
    state = agent.init(POLE.spec, jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 2_000)
    taken = jax.vmap(lambda key: agent.greedy(state, jnp.zeros(4), key))(keys)
    np.testing.assert_allclose(np.bincount(taken, minlength=2) / 2_000, expected, atol=0.04 if action is None else 0)


BAD: dict[str, list[tuple[dict[str, Any], str]]] = {
    "cdqn": [
        ({"k": 4}, "unknown option k"),
        ({"aleatory": "cvar:0.25"}, "unknown option aleatory"),
        ({"atoms": 1}, "at least 2 atoms"),
    ],
    "vdqn": [
        ({"noise": 0.0}, "noise must be a number above 0 and at most 1e[+]15, got 0.0"),
        ({"noise": math.inf}, "noise must be"),
        ({"noise": "loud"}, "noise must be"),
        ({"initial_sd": -1.0}, "initial_sd must be"),
        ({"acting": "thompson"}, "acting must be one of step, episode, score, got 'thompson'"),
        ({"bootstrap": "double"}, "bootstrap must be one of greedy, score"),
        ({"draws": 0}, "draws must be a whole number of at least 1"),
        ({"risk": "cvr:0.5"}, "risk: unknown risk measure 'cvr'"),
        ({"risk": "cvar:0.5 o cvar:0.5"}, "is a composite"),
        ({"hidden": 100}, "hidden must be sizes"),
        ({"use_epsilon": 1}, "use_epsilon must be true or false, got 1"),
        ({"k": 4}, "unknown option k"),
    ],
    "uadqn": [
        ({"quantiles": 1.5}, "quantiles must be a whole number"),
        ({"kappa": -1.0}, "kappa must be at least 0"),
        ({"beta": math.nan}, "beta must be at least 0 and at most 1e[+]15, got nan"),
        ({"aversion": -0.1}, "aversion must be at least 0"),
        ({"anchor_noise": 0}, "anchor_noise must be a number above 0"),
        ({"gain": 0.0}, "gain must be"),
        ({"centring": "mean"}, "centring must be one of action, all"),
        ({"evaluation": "risky"}, "evaluation must be one of risk, neutral"),
        ({"time_limit": "none"}, "time_limit must be one of terminal, bootstrap"),
        ({"lambda": 1}, "unknown option lambda"),
    ],
    "random": [
        ({"action": 2}, "action 2 does not exist: CartPole-v0 has the actions 0 to 1"),
        ({"action": -1}, "does not exist"),
        ({"gamma": 2.0}, r"gamma must be in \(0, 1\]"),
    ],
}


@pytest.mark.parametrize(
    ("name", "options", "message"), [(name, *case) for name, cases in BAD.items() for case in cases]
)
def test_bad_input_is_refused(name: str, options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        make_agent(name, POLE.spec, **options)
