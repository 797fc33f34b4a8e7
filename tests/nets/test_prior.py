"""Randomised priors: added to what is learnt, of every encoder, drawn apart, alive, and never learnt."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs import EnvSpec
from sentinel_rl.heads import CategoricalHead, QuantileHead
from sentinel_rl.nets import PriorNetworks, add_prior, learnt_part, make_networks, with_learnt
from sentinel_rl.returns import Support

KEY = jax.random.key(3)
ROWS = EnvSpec("rows", 12, 3, obs_shape=(4, 3), structure="rows")
IMAGES = EnvSpec("images", 75, 3, obs_shape=(5, 5, 3), structure="image")
HEAD = CategoricalHead(Support(0.0, 4.0, 4))


class Own(eqx.Module):
    """An encoder of a user's own."""

    def init(self, spec, key):
        return jax.random.normal(key, (spec.obs_size, 2))

    def __call__(self, parameters, obs):
        return jnp.tanh(obs @ parameters)


FORMS = {
    "mlp": (ROWS, "mlp", (5, 6)),
    "separate": (ROWS, "separate", (5,)),
    "set": (ROWS, "set", (5, 6)),
    "cnn": (IMAGES, "cnn", (5,)),
    "own": (ROWS, Own(), None),
}


def networks(form: str, direction=None, scale: float = 2.0) -> PriorNetworks:
    spec, encoder, hidden = FORMS[form]
    of = 2, spec, 4, encoder, hidden, False
    return add_prior(KEY, make_networks(KEY, *of), *of, scale, direction)


@pytest.mark.parametrize("direction", [None, HEAD.upwards], ids=["outputs", "mean"])
@pytest.mark.parametrize("form", FORMS)
def test_priors_are_added_whichever_way_the_networks_are_asked(form: str, direction):
    nets = networks(form, direction)
    size = FORMS[form][0].obs_size
    obs = jax.random.normal(jax.random.key(1), (3, size))
    random = np.asarray(nets.prior.batch(obs))
    random = random if direction is None else random * np.asarray(direction)
    batch = nets.batch(obs)
    assert batch.shape == (2, 3, 3, 4)
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(batch, np.asarray(nets.learnt.batch(obs)) + 2.0 * random, **close)
    np.testing.assert_allclose(batch, jnp.stack([nets(one) for one in obs], axis=1), **close)
    np.testing.assert_allclose(batch, nets.per_member(jnp.broadcast_to(obs, (2, 3, size))), **close)
    np.testing.assert_allclose(batch, jnp.moveaxis(nets.columns(obs), -1, 1), **close)
    assert nets.parameters == nets.learnt.parameters
    assert nets.features(obs[0]).shape[0] == 2


def test_a_prior_is_normalised_as_what_learns_is():
    """Its gains are moved from one as its biases are from zero; those of what learns are where they begin."""
    of = 2, ROWS, 4, "mlp", (5, 6), False
    nets = jax.jit(lambda key: add_prior(key, make_networks(key, *of, layer_norm=True), *of, 2.0, layer_norm=True))(KEY)
    assert jax.tree.structure(nets.prior) == jax.tree.structure(nets.learnt)
    for learnt, random in zip(nets.learnt.parameters_of_encoder, nets.prior.parameters_of_encoder, strict=True):
        assert (learnt[2] == 1).all()
        assert not learnt[3].any()
        assert ((random[2] > 0) & (random[2] < 2) & (random[2] != 1)).all()
        assert ((abs(random[3]) < 1) & (random[3] != 0)).all()
        assert (random[2][0] != random[2][1]).all()


def test_no_gradient_reaches_a_prior():
    nets = networks("mlp")
    gradient = jax.grad(lambda each: jnp.sum(each(jnp.ones(12)) ** 2))(nets)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradient.prior))
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient.learnt))


def test_what_learns_is_drawn_as_without_a_prior():
    nets, plain = networks("set"), make_networks(KEY, 2, ROWS, 4, "set", (5, 6))
    assert eqx.tree_equal(learnt_part(nets), plain)
    assert learnt_part(plain) is plain
    assert with_learnt(plain, nets.learnt) is nets.learnt
    other = with_learnt(nets, jax.tree.map(jnp.zeros_like, nets.learnt))
    assert eqx.tree_equal(other.prior, nets.prior)
    assert not np.any(other.learnt.weight)


@pytest.mark.parametrize("form", ["mlp", "separate", "set"])
def test_priors_of_members_are_about_1_and_differ_and_bend(form: str):
    """A network without biases would be twice as large at twice the observation."""
    spec, encoder, _ = FORMS[form]
    of = 30, spec, 4, encoder, (16, 16), False
    nets = add_prior(KEY, make_networks(KEY, *of), *of, 1.0)
    obs = jax.random.uniform(jax.random.key(1), (20, 12), minval=-1.0)
    outputs = np.asarray(nets.prior.batch(obs))
    assert 0.5 < outputs.std() < 3
    assert 0.5 < outputs.std(axis=0).mean() < 3, "across the members, at the same observation"
    twice = np.asarray(nets.prior.batch(2 * obs))
    assert np.abs(twice - 2 * outputs).mean() > 0.3


@pytest.mark.parametrize("head", [HEAD, QuantileHead(5)], ids=["categorical", "quantile"])
def test_upwards_moves_the_mean(head):
    outputs = jax.random.normal(KEY, (head.outputs,))
    means = [float(head.law(outputs + step * jnp.array(head.upwards)).mean()) for step in (-1.0, 0.0, 1.0)]
    assert means[0] < means[1] - 0.2
    assert means[1] < means[2] - 0.2
    if isinstance(head, QuantileHead):
        np.testing.assert_allclose(np.diff(means), 1.0, rtol=1e-5)


def test_features_are_what_the_last_layer_sees():
    nets = networks("mlp").learnt
    obs = jax.random.normal(KEY, (12,))
    last = jnp.einsum("kf,kfo->ko", nets.features(obs), nets.weights[-1][:, 0]) + nets.biases[-1][:, 0]
    np.testing.assert_allclose(last.reshape(2, 3, 4), nets(obs), rtol=1e-5, atol=1e-6)
    encoded = networks("set").learnt
    last = jnp.einsum("kf,kfo->ko", encoded.features(obs), encoded.weight) + encoded.bias
    np.testing.assert_allclose(last.reshape(2, 3, 4), encoded(obs), rtol=1e-5, atol=1e-6)
