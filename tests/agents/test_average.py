"""Averaged networks: a plain mean in NumPy, what they are for, and what they leave alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rl.agents.learning import averaged_if
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Transition
from tests.learners import OPTIONS
from tests.training.pole import bit_equal

COMPILE_QUICKLY = True

ENV = CartPole(200)
AGENTS = ("sentinel", "vdqn", "uadqn")
EVERY, OVER, UPDATES = 2, 3, 10
OBS = jnp.array([0.1, -0.2, 0.03, 0.4])


def trained(name: str, average_over: int | None) -> tuple[Any, list[Any]]:
    """An agent, and its states before the first update and after every one."""
    agent = make_agent(name, ENV.spec, **OPTIONS[name], target_every=EVERY, average_over=average_over)
    key = jax.random.key(0)
    state = jax.jit(lambda key: agent.init(ENV.spec, key))(key)
    observe, learn = jax.jit(agent.observe), jax.jit(lambda state, update, key: agent.learn(state, update, key)[0])
    for t in range(12):
        obs = jnp.sin(jnp.arange(4.0) + t)
        ended = jnp.array(t % 5 == 4)
        seen = Transition(obs, jnp.array(t % 2), jnp.array(float(t)), obs + 1, ended, jnp.array(False))
        state = observe(state, jnp.array(t), seen, jax.random.fold_in(key, t))
    states = [state]
    for update in range(1, UPDATES + 1):
        states.append(learn(states[-1], jnp.array(update), jax.random.fold_in(key, 100 + update)))
    return agent, states


@pytest.fixture(scope="module", params=AGENTS)
def averaged(request: pytest.FixtureRequest) -> tuple[str, Any, list[Any]]:
    return request.param, *trained(request.param, OVER)


def test_the_frozen_policy_has_the_mean_of_the_copies(averaged):
    _, agent, states = averaged
    copies = [jax.tree.map(np.asarray, states[update].online) for update in range(EVERY, UPDATES + 1, EVERY)]
    mean = copies[0]
    for number, copy in enumerate(copies[1:], start=2):
        share = 1 / min(number, OVER)
        mean = jax.tree.map(lambda old, new, share=share: old + share * (new - old), mean, copy)
    for found, expected in zip(*map(jax.tree.leaves, (agent.policy(states[-1]), mean)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert not bit_equal(agent.policy(states[-1]), states[-1].online)


def test_before_the_first_copy_it_is_what_was_learnt(averaged):
    _, agent, states = averaged
    assert bit_equal(agent.policy(states[0]), states[0].online)
    for found, expected in zip(*map(jax.tree.leaves, (agent.policy(states[1]), states[1].online)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert not bit_equal(states[1].online, states[0].online)


def test_averages_change_nothing_that_is_learnt(averaged):
    name, _, states = averaged
    plain, without = trained(name, None)
    for part in ("online", "target", "optimiser"):
        assert bit_equal(getattr(states[-1], part), getattr(without[-1], part))
    assert without[-1].average is None
    assert bit_equal(plain.policy(without[-1]), without[-1].online)


def test_frozen_policies_act_and_explain_by_averages_and_learners_by_what_is_newest(averaged):
    _, agent, states = averaged
    state = states[-1]
    frozen, newest = (agent.with_policy(networks) for networks in (state.average, state.online))
    values = [np.asarray(agent.account(one, OBS).value) for one in (state, frozen, newest)]
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])
    key = jax.random.key(9)
    if hasattr(agent, "drawn_values"):
        drawn = [np.asarray(agent.drawn_values(one, OBS, key)) for one in (state, frozen)]
        assert not np.array_equal(*drawn)


def test_the_greedy_action_is_that_of_the_averages(averaged):
    """Not that of the latest networks, which prefer another one at some of many observations."""
    name, agent, states = averaged
    key = jax.random.key(9)
    obs = 3 * jax.random.normal(key, (2_000, 4))

    def actions(state: Any) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(lambda one: agent.greedy(state, one, key)))(obs))

    frozen, newest = (agent.with_policy(networks) for networks in (states[-1].average, states[-1].online))
    np.testing.assert_array_equal(actions(states[-1]), actions(frozen))
    if name == "sentinel":  # the others hardly learn in so few updates
        assert np.any(actions(frozen) != actions(newest))


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=9), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_the_average_stays_among_what_was_copied(copies: list[float], over: int):
    average = jnp.zeros(())
    for number, copy in enumerate(copies, start=1):
        average = averaged_if(jnp.array(True), jnp.array(number), over, jnp.float32(copy), average)
        if number <= over:
            np.testing.assert_allclose(average, np.mean(copies[:number]), rtol=1e-4, atol=1e-3)
    assert min(copies) - 1e-3 <= float(average) <= max(copies) + 1e-3
    kept = averaged_if(jnp.array(False), jnp.array(2), over, jnp.float32(7.0), average)
    assert kept == average


@pytest.mark.parametrize("given_", [0, -1, 1.5, "two"])
def test_what_is_no_count_is_refused(given_: Any):
    with pytest.raises(UsageError, match="average_over must be a whole number of at least 1"):
        make_agent("sentinel", ENV.spec, average_over=given_)
