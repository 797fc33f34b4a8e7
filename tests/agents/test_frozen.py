"""Frozen policies: what learns chooses by the observation alone, and its account tells by what; chance stays chance."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.agents.uadqn import UADQNAgent
from sentinel_rl.agents.vdqn import VDQNAgent
from sentinel_rl.replay import Transition
from sentinel_rl.risk import CVaR
from tests.agents.small import SPEC, small

SIZES: dict[str, Any] = {"hidden": (8,), "samples": 8, "batch": 4, "capacity": 16}
LEARNERS: dict[str, Any] = {
    "sentinel": small(lam=5.0),
    "sentinel, scaled": small(lam=5.0, aggregate="scale"),
    "vdqn": VDQNAgent(**SIZES, initial_sd=0.2, draws=20),
    "vdqn-cvar": VDQNAgent(**SIZES, initial_sd=0.2, draws=20, risk=CVaR(0.25), acting="score"),
    "uadqn": UADQNAgent(**SIZES, quantiles=5),
}
OBSERVATIONS = 3 * jax.random.normal(jax.random.key(1), (60, SPEC.obs_size))

choose = jax.jit(jax.vmap(lambda a, s, obs, key: a.greedy(s, obs, key), in_axes=(None, None, 0, 0)))
account = jax.jit(jax.vmap(lambda a, s, obs: a.account(s, obs).value, in_axes=(None, None, 0)))


@functools.cache
def state(name: str) -> Any:
    return jax.jit(lambda key: LEARNERS[name].init(SPEC, key))(jax.random.key(5))


def keys(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), len(OBSERVATIONS))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_chooses_by_the_observation_alone(name: str):
    """Neither the key nor the place in a batch matters: of VDQN's choices one in five once depended on them."""
    agent = LEARNERS[name]
    chosen = np.asarray(choose(agent, state(name), OBSERVATIONS, keys(2)))
    assert chosen.dtype == np.int32
    assert len(set(chosen.tolist())) > 1
    np.testing.assert_array_equal(choose(agent, state(name), OBSERVATIONS, keys(3)), chosen)
    np.testing.assert_array_equal(choose(agent, state(name), OBSERVATIONS[::-1], keys(2)), chosen[::-1])
    assert not agent.stochastic


@pytest.mark.parametrize("name", LEARNERS)
def test_an_account_tells_what_is_maximised(name: str):
    agent = LEARNERS[name]
    values = np.asarray(account(agent, state(name), OBSERVATIONS))
    np.testing.assert_array_equal(values.argmax(axis=1), choose(agent, state(name), OBSERVATIONS, keys(2)))


def test_a_report_tells_of_the_preferred_action():
    """Averaged over the latest observations; where there are fewer than are asked for, the first one is repeated."""
    agent, own = LEARNERS["sentinel"], state("sentinel")
    for t, obs in enumerate(OBSERVATIONS[:2]):
        seen = Transition(obs, jnp.int32(0), jnp.float32(0), obs, jnp.array(False), jnp.array(False))
        own = jax.jit(lambda s, t, seen: agent.observe(s, t, seen, jax.random.key(0)))(own, jnp.int32(t), seen)
    told = jax.jit(jax.vmap(agent.account, in_axes=(None, 0)))(own, OBSERVATIONS[:2])
    best = np.argmax(told.value, axis=1)
    found = jax.jit(agent.report)(own)
    for name, part in told.parts.items():
        first, second = np.asarray(part)[np.arange(2), best]
        np.testing.assert_allclose(found[name], (63 * first + second) / 64, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("aggregate", ["belief", "scale"])
def test_the_account_of_sentinel_honours_what_the_weights_do(aggregate: Any):
    agent, own = small(lam=5.0, aggregate=aggregate), state("sentinel")
    values = jax.jit(jax.vmap(lambda a, s, obs: a.values(s.online, obs), in_axes=(None, None, 0)))
    wanted = values(agent, own, OBSERVATIONS)
    np.testing.assert_allclose(account(agent, own, OBSERVATIONS), wanted, rtol=1e-5, atol=1e-6)
    told = jax.jit(jax.vmap(lambda a, s, obs: a.assess(s, obs), in_axes=(None, None, 0)))(agent, own, OBSERVATIONS)
    np.testing.assert_allclose(told.composite, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(told.mean - told.composite, told.aleatory_penalty + told.epistemic_penalty, atol=1e-5)


@pytest.mark.parametrize("name", ["sentinel", "uadqn"])
def test_the_first_of_equal_actions_is_chosen(name: str):
    """Blank networks give exactly equal values; the policy that explores takes any of them."""
    blank = jax.tree.map(jnp.zeros_like, state(name))
    assert not np.any(choose(LEARNERS[name], blank, OBSERVATIONS, keys(4)))


def test_a_random_policy_draws_also_when_frozen():
    agent = RandomAgent()
    own = agent.init(SPEC, jax.random.key(0))
    assert set(choose(agent, own, OBSERVATIONS, keys(2)).tolist()) == {0, 1, 2}
    assert agent.stochastic
    assert not RandomAgent(action=1).stochastic


def test_the_warm_up_fills_the_first_draw():
    assert [agent.plan_defaults(9)["warmup"] for agent in LEARNERS.values()] == [8] * len(LEARNERS)
    assert RandomAgent().plan_defaults(9)["warmup"] == 0
