"""VDQN: its loss in closed form, the entropy's gradient, draws of whole networks and of outputs, targets, scores."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sentinel_rl.agents.learning import Sample
from sentinel_rl.agents.posterior import Posterior, standard_normals
from sentinel_rl.agents.vdqn import VDQNAgent, VDQNState, free_energy
from sentinel_rl.nets import Networks
from sentinel_rl.replay import Transition
from sentinel_rl.risk import CVaR
from tests.agents.small import OBS, SPEC

KEYS = jax.random.split(jax.random.key(5), 4_000)


def small(**options: Any) -> VDQNAgent:
    defaults: dict[str, Any] = {"hidden": (8,), "samples": 8, "batch": 4, "capacity": 16, "draws": 40}
    return VDQNAgent(**(defaults | options))


@pytest.fixture(scope="module")
def state() -> VDQNState:
    return jax.jit(lambda key: small(initial_sd=0.3).init(SPEC, key))(jax.random.key(0))


def lone(mean: float, sd: float, bias_sd: float = 1e-6) -> Posterior:
    """One weight, one action: ``Q(s) = theta s`` with ``theta ~ N(mean, sd^2)``; the bias is next to nothing."""

    def net(weight: float, bias: float) -> Networks:
        return Networks((jnp.full((1, 1, 1, 1), weight),), (jnp.full((1, 1, 1), bias),), 1)

    rho, bias_rho = np.log(np.expm1([sd, bias_sd]))
    return Posterior(net(mean, 0.0), net(rho, bias_rho))


def test_normal_numbers_are_normal_and_independent():
    draw = jax.jit(lambda key: standard_normals(key, (333, 303)))
    drawn = np.asarray(draw(KEYS[0]), float)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 0.01
    for one, other in ((drawn[:, :-1], drawn[:, 1:]), (drawn[:-1], drawn[1:])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.01
    assert len(np.unique(drawn)) > 0.99 * drawn.size
    assert not np.any(drawn == draw(KEYS[1]))
    np.testing.assert_array_equal(drawn, draw(KEYS[0]))


def test_the_loss_of_one_weight_in_closed_form():
    """``E (d - theta s)^2 = (d - m s)^2 + sd^2 s^2``, summed over the minibatch, and minus the log of both sds."""
    s, d, mean, sd, noise = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.5, -1.0]), 0.4, 0.3, 0.2
    batch = Sample(jnp.asarray(s[:, None], jnp.float32), jnp.zeros(3, jnp.int32), jnp.asarray(d, jnp.float32))
    losses = jax.jit(jax.vmap(lambda key: free_energy(lone(mean, sd), batch, noise, key)))(KEYS)
    expected = np.sum((d - mean * s) ** 2 + sd**2 * s**2) / (2 * noise**2) - np.log(sd) - np.log(1e-6)
    assert float(np.mean(losses)) == pytest.approx(expected, abs=4 * float(np.std(losses)) / len(KEYS) ** 0.5)
    assert float(np.mean(losses)) == pytest.approx(expected, rel=0.05)


def test_the_entropy_and_its_gradient_are_those_of_the_sampled_form(state: VDQNState):
    """``E log q(theta)`` by autodiff through the draws has the gradient of ``-sum log sd``, without its noise."""

    def sampled(posterior: Posterior, key: jax.Array) -> jax.Array:
        logs = jax.tree.map(
            lambda theta, mean, sd: jnp.sum(jax.scipy.stats.norm.logpdf(theta, mean, sd)),
            posterior.draw(key),
            posterior.mean,
            posterior.sd,
        )
        return sum(jax.tree.leaves(logs), jnp.zeros(()))

    posterior = dataclasses.replace(
        state.online,
        rho=jax.tree.map(
            lambda rho: rho + 0.5 * jnp.sin(rho * jnp.arange(1.0, 1 + rho.size).reshape(rho.shape)), state.online.rho
        ),
    )
    exact = jax.grad(lambda p: -p.log_sd())(posterior)
    found = jax.jit(jax.grad(lambda p: jnp.mean(jax.vmap(lambda key: sampled(p, key))(KEYS[:50]))))(posterior)
    for one, other in zip(jax.tree.leaves(found.rho), jax.tree.leaves(exact.rho), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    for leaf in jax.tree.leaves(found.mean):
        np.testing.assert_allclose(leaf, 0, atol=1e-3)


def test_outputs_drawn_unit_by_unit_have_the_law_of_whole_networks(state: VDQNState):
    """Means, covariances over actions, and third moments, at two observations."""
    posterior: Posterior = state.online
    units = jax.jit(lambda obs: posterior.outputs(obs, posterior.noise(KEYS[0], 40_000)))
    whole = jax.jit(
        lambda obs: jax.vmap(lambda key: posterior.draw(key)(obs)[0, :, 0])(jax.random.split(KEYS[1], 40_000))
    )
    for obs in (OBS, 3 * OBS):
        one, other = np.asarray(units(obs), float), np.asarray(whole(obs), float)
        scale = other.std(axis=0)
        np.testing.assert_allclose(one.mean(axis=0), other.mean(axis=0), atol=0.03 * scale.max())
        np.testing.assert_allclose(np.cov(one.T), np.cov(other.T), atol=0.04 * scale.max() ** 2)
        skews = [np.mean(((draws - other.mean(axis=0)) / scale) ** 3, axis=0) for draws in (one, other)]
        np.testing.assert_allclose(*skews, atol=0.12)
        assert abs(np.corrcoef(other.T)[0, 1]) > 0.02, "one network for all actions: the actions are not independent"


def sharp(values: list[float], sd: float = 1e-6) -> Posterior:
    """Values of the actions that are known but for an sd, whatever is seen."""
    weights = jnp.zeros((1, 1, SPEC.obs_size, SPEC.num_actions))
    rho = float(np.log(np.expm1(sd)))
    mean = Networks((weights,), (jnp.asarray(values, jnp.float32).reshape(1, 1, -1),), SPEC.num_actions)
    return Posterior(mean, Networks((weights - 20,), (jnp.full((1, 1, SPEC.num_actions), rho),), SPEC.num_actions))


def seen(size: int, ended: bool = False) -> Transition:
    obs = jnp.broadcast_to(OBS, (size, SPEC.obs_size))
    flags = jnp.full(size, ended)
    return Transition(obs, jnp.zeros(size, jnp.int32), jnp.ones(size), obs, flags, jnp.zeros(size, bool))


@pytest.mark.parametrize(("ended", "expected"), [(False, 1 + 0.5 * 3), (True, 1.0)])
def test_a_target_by_hand(state: VDQNState, ended: bool, expected: float):
    known = dataclasses.replace(state, target=sharp([0, 3, 1]), online=sharp([9, 9, 9]))
    found = jax.jit(
        lambda s: small(gamma=0.5)._targets(s, seen(8, ended), jnp.full(8, 0.0 if ended else 0.5), KEYS[0])
    )(known)
    np.testing.assert_allclose(found, [expected] * 8, atol=1e-4)


def test_every_sample_has_a_network_of_its_own(state: VDQNState):
    """The maximum over actions is taken under one draw: its law is that of the maximum of three Gaussians."""
    size = 4_000
    vague = dataclasses.replace(state, target=sharp([0, 0, 0], sd=1.0))
    found = jax.jit(lambda s: small(gamma=1.0, samples=size)._targets(s, seen(size), jnp.ones(size), KEYS[0]))(vague)
    assert np.mean(found) - 1 == pytest.approx(3 / (2 * np.sqrt(np.pi)), abs=0.05)  # the mean of the largest of three
    assert len(np.unique(found)) > size * 0.99


RISKY = [0.0, 0.5, 0.0]


def with_spread(*sds: float) -> Posterior:
    """The second action is best on average; the spreads are given."""
    base = sharp(RISKY)
    rho = jnp.log(jnp.expm1(jnp.array(sds))).reshape(1, 1, -1)
    return dataclasses.replace(base, rho=dataclasses.replace(base.rho, biases=(rho,)))


@pytest.mark.parametrize(("bootstrap", "expected"), [("greedy", None), ("score", 0.0)])
def test_the_score_chooses_the_action_of_the_successor(state: VDQNState, bootstrap: Any, expected: float | None):
    """By CVaR the vague second action is worse than the first, which is surely 0; greedily it is often the best.

    The online posterior, which prefers the third, is not asked.
    """
    agent = small(risk=CVaR(0.25), bootstrap=bootstrap, gamma=1.0, samples=200, noise=1e-3)
    vague = dataclasses.replace(state, target=with_spread(1e-6, 2.0, 2.0), online=sharp([0, 0, 9]))
    found = jax.jit(lambda s: agent._targets(s, seen(200), jnp.ones(200), KEYS[0]))(vague) - 1
    if expected is None:
        assert np.mean(found > 0.1) > 0.5
    else:
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_scores_are_measures_of_draws_common_to_all_actions(state: VDQNState):
    agent = small(risk=CVaR(0.25), noise=0.7)
    posterior = with_spread(1e-6, 1e-6, 1e-6)
    returns = np.asarray(agent.returns(posterior, OBS, KEYS[0]))
    np.testing.assert_allclose(returns[:, 1] - returns[:, 0], 0.5, atol=1e-4)
    assert returns.std(axis=0)[0] == pytest.approx(0.7, rel=0.3)
    worst = np.sort(returns, axis=0)[:10].mean(axis=0)
    found = agent.score(jnp.asarray(returns))
    np.testing.assert_allclose(found, worst, rtol=1e-4)


def test_the_noise_of_a_return_is_not_that_of_its_network(state: VDQNState):
    """Two independent standard normals: the posterior's draw of the first action, and xi."""
    agent = small(noise=1.0, draws=4_000)
    returns = np.asarray(agent.returns(with_spread(1.0, 1e-6, 1e-6), OBS, KEYS[0]))
    np.testing.assert_allclose(np.cov(returns.T)[:2, :2], [[2, 1], [1, 1]], atol=0.1)


def test_who_acts(state: VDQNState):
    """A fresh network at every step, the same one all episode, or the score, which hardly varies."""
    drawn = {}
    for acting in ("step", "episode", "score"):
        agent = small(acting=acting)
        drawn[acting] = np.asarray(jax.jit(jax.vmap(lambda key, a=agent: a.drawn_values(state, OBS, key)))(KEYS[:50]))
    assert len(np.unique(drawn["step"][:, 0])) == 50
    assert len(np.unique(drawn["episode"][:, 0])) == 1
    assert drawn["score"].std(axis=0).max() < drawn["step"].std(axis=0).max() / 3


def test_another_network_acts_after_an_episode(state: VDQNState):
    """Whether it ended by itself or was cut off."""
    one = jax.tree.map(lambda x: x[0], seen(1))
    observe = jax.jit(
        lambda s, ends: small().observe(s, jnp.int32(0), one._replace(terminated=ends[0], truncated=ends[1]), KEYS[3])
    )
    ends = [(False, False), (True, False), (False, True)]
    same, *others = (jax.random.key_data(observe(state, jnp.array(end)).episode) for end in ends)
    np.testing.assert_array_equal(same, jax.random.key_data(state.episode))
    assert all(np.any(other != same) for other in others)


def test_initial_deviations_are_as_given(state: VDQNState):
    for leaf in jax.tree.leaves(state.online.sd):
        np.testing.assert_allclose(leaf, 0.3, rtol=1e-5)
    limit = np.sqrt(3 / SPEC.obs_size)
    weights = np.asarray(state.online.mean.weights[0])
    assert limit * 0.7 < np.abs(weights).max() <= limit
    assert not np.any(state.online.mean.biases[0])
