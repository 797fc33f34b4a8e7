"""UA-DQN: its loss against a loop and rlax, its two uncertainties by hand, its targets, anchors and draws."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sentinel_rl.agents.learning import Sample
from sentinel_rl.agents.uadqn import POSTERIORS, UADQNAgent, UADQNState, estimates, members, prior_scale
from sentinel_rl.heads import quantile_huber_loss as huber
from sentinel_rl.nets import Networks
from sentinel_rl.replay import Transition
from tests.agents.small import OBS, SPEC

VALUES = arrays(np.float64, 5, elements=st.floats(-3, 3))
loss_and_gradient = jax.jit(jax.value_and_grad(huber, argnums=(0, 1)), static_argnums=2)


def small(**options: Any) -> UADQNAgent:
    defaults: dict[str, Any] = {"hidden": (8,), "quantiles": 4, "samples": 8, "batch": 4, "capacity": 16}
    return UADQNAgent(**(defaults | options))


@pytest.fixture(scope="module")
def state() -> UADQNState:
    return jax.jit(lambda key: small().init(SPEC, key))(jax.random.key(0))


def huber_slowly(quantiles: np.ndarray, target: np.ndarray, kappa: float) -> float:
    total = 0.0
    for i, x in enumerate(quantiles):
        for y in target:
            u = abs(y - x)
            cost = u if kappa == 0 else u**2 / 2 if u <= kappa else kappa * (u - kappa / 2)
            total += abs((i + 0.5) / len(quantiles) - (y < x)) * cost / len(target)
    return total


@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0])
@given(VALUES, VALUES)
def test_the_loss_is_a_double_sum(kappa: float, quantiles: np.ndarray, target: np.ndarray):
    with jax.enable_x64(True):
        loss, (_, through_target) = loss_and_gradient(quantiles, target, kappa)
    assert float(loss) == pytest.approx(huber_slowly(quantiles, target, kappa), abs=1e-12)
    assert not np.any(through_target), "targets are constants"


@pytest.mark.clients
@pytest.mark.parametrize("kappa", [0.0, 1.0])
@given(VALUES, VALUES)
def test_the_loss_against_rlax(kappa: float, quantiles: np.ndarray, target: np.ndarray):
    import rlax

    def theirs(x: jax.Array, y: jax.Array) -> jax.Array:
        return rlax.quantile_regression_loss(x, (jnp.arange(5) + 0.5) / 5, y, huber_param=kappa)

    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        x, y = jnp.asarray(quantiles), jnp.asarray(target)
        value, gradient = jax.value_and_grad(theirs)(x, y)
        loss, (found, _) = loss_and_gradient(x, y, kappa)
        apart = np.abs(quantiles[:, None] - target[None])
    assert float(loss) == pytest.approx(float(value), abs=1e-6)
    if np.all(apart > 1e-9) and np.all(np.abs(apart - kappa) > 1e-9):  # elsewhere the slope is a matter of convention
        np.testing.assert_allclose(found, gradient, atol=1e-6)


def quantiles_of(f: Any, first: Any, second: Any) -> jax.Array:
    return jnp.array([f, first, second], jnp.float32)


def test_uncertainties_by_hand():
    """Action 0: g1 and g2 spread alike; action 1: they spread against each other, which is no spread that both see."""
    told = estimates(quantiles_of([[1, 3], [0, 4]], [[0, 2], [0, 2]], [[1, 5], [2, 0]]))
    np.testing.assert_allclose(told.mean, [2, 2])
    np.testing.assert_allclose(told.epistemic_variance, [(1 + 9) / 4, (4 + 4) / 4])
    np.testing.assert_allclose(told.aleatory_sd, [np.sqrt(1 * 2), 0])


def test_centring_over_all_actions_punishes_the_best():
    """All actions spread by 1; around the mean over actions the one that is worth most seems to spread most."""
    spread, level = np.array([-1.0, 1.0]), np.array([[0.0], [10.0]])
    laws = quantiles_of(*[level + spread] * 3)
    np.testing.assert_allclose(estimates(laws).aleatory_sd, [1, 1])
    np.testing.assert_allclose(estimates(laws, "all").aleatory_sd, np.sqrt([26, 26]))
    lone = quantiles_of(*[np.array([[0.0], [0.0], [9.0]]) + spread] * 3)  # the mean is 3: 9 is twice as far as 0
    np.testing.assert_allclose(estimates(lone, "all").aleatory_sd, np.sqrt([10, 10, 37]), rtol=1e-6)


def constant(*laws: Any) -> Networks:
    """Networks whose quantiles are ``laws[member][action]`` whatever they see."""
    bias = jnp.asarray(laws, jnp.float32).reshape(len(laws), 1, -1)
    return Networks((jnp.zeros((len(laws), 1, SPEC.obs_size, bias.shape[-1])),), (bias,), SPEC.num_actions)


LAW = [[0, 0, 0, 8], [3, 3, 3, 3], [-9, 1, 9, 10]]  # means 2, 3 and 2.75


@pytest.mark.parametrize(("ended", "expected"), [(False, [2.5] * 4), (True, [1] * 4)])
def test_a_target_by_hand(state: UADQNState, ended: bool, expected: list[float]):
    """The second action has the best mean under the target network, the third under the online network."""
    agent = small(gamma=0.5)
    seen = Transition(OBS[None], jnp.array([0]), jnp.array([1.0]), OBS[None], jnp.array([ended]), jnp.array([False]))
    discount = jnp.array([0.0 if ended else 0.5])
    wise = dataclasses.replace(state, target=constant(LAW), online=constant(*[np.roll(LAW, 1, axis=0)] * 3))
    found = jax.jit(lambda s: agent._targets(s, seen, discount, jax.random.key(0)))(wise)
    np.testing.assert_allclose(found, [expected])


def test_anchors_pull_less_the_more_is_seen(state: UADQNState):
    """Without misfit the loss is the pull of the anchors alone; f has no anchor."""
    agent = small(anchor_noise=2.0)
    batch = Sample(OBS[None], jnp.array([1]), jnp.zeros((1, 4)))
    loss = jax.jit(lambda p, s: agent._loss(p, batch, s, jax.random.key(0)))
    for seen, data in [(4, 4), (999, 16)]:  # the replay keeps 16
        after = dataclasses.replace(state, replay=dataclasses.replace(state.replay, count=jnp.array([seen])))
        moved = jax.tree.map(
            lambda leaf: leaf + jnp.array([5.0, 0.1, 0.2]).reshape(3, *[1] * (leaf.ndim - 1)), state.online
        )
        pull = float(loss(moved, after) - loss(moved, dataclasses.replace(after, anchors=members(moved, POSTERIORS))))
        count = state.online.parameters / 3
        scale = float(prior_scale(state.anchors))
        assert pull == pytest.approx(4 * (0.1**2 + 0.2**2) * count / (scale**2 * data), rel=1e-3)


def test_the_prior_is_the_mean_over_tensors(state: UADQNState):
    kernels = [np.asarray(leaf) for leaf in jax.tree.leaves(state.anchors)]
    expected = np.mean([np.std(kernel[net]) for kernel in kernels for net in range(2)])
    assert float(prior_scale(state.anchors)) == pytest.approx(expected, rel=1e-5)
    assert expected < np.mean([np.std(kernel) for kernel in kernels if np.any(kernel)]), "zero biases count"


def test_initial_weights_are_orthogonal_and_independent(state: UADQNState):
    first = np.asarray(state.online.weights[0][:, 0])
    for net in first:
        np.testing.assert_allclose(net @ net.T, 9 * np.eye(SPEC.obs_size), atol=1e-4)
    assert not np.allclose(first[0], first[1])
    assert not np.allclose(first[1], first[2])
    assert not any(np.any(bias) for bias in state.online.biases)


def test_drawn_values_have_the_stated_law(state: UADQNState):
    agent = small(beta=0.5, aversion=2.0)
    told = agent.estimates(state.online, OBS)
    draws = jax.jit(jax.vmap(lambda key: agent.drawn_values(state, OBS, key)))(
        jax.random.split(jax.random.key(1), 4_000)
    )
    averse = told.mean - 2 * told.aleatory_sd
    sd = 0.5 * np.sqrt(told.epistemic_variance)
    np.testing.assert_allclose(np.mean(draws, axis=0), averse, atol=5 * np.max(sd) / 4_000**0.5)
    np.testing.assert_allclose(np.std(draws, axis=0), sd, rtol=0.06)
    np.testing.assert_allclose(agent.values(state, OBS), averse, rtol=1e-5)
    neutral = small(evaluation="neutral", aversion=2.0)
    np.testing.assert_allclose(neutral.values(state, OBS), told.mean, rtol=1e-5)


@pytest.mark.parametrize("use_epsilon", [False, True])
def test_epsilon_counts_where_it_is_asked_for(state: UADQNState, use_epsilon: bool):
    """Without doubts to draw from, the action is always the best one, unless epsilon says otherwise."""
    agent = small(beta=0.0, use_epsilon=use_epsilon)
    act = jax.jit(jax.vmap(lambda key: agent.act(state, OBS, jnp.float32(1.0), key)))
    assert len(set(act(jax.random.split(jax.random.key(2), 40)).tolist())) == (3 if use_epsilon else 1)
