"""Encoders and ensembles of them: against a plain loop, indifferent to the order of rows, open to one's own."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.envs import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.nets import CNNEncoder, EncodedNetworks, Networks, SetEncoder, make_networks
from sentinel_rl.nets.cnn import GRIDS, PICTURES

ROWS = EnvSpec("rows", 12, 3, obs_shape=(4, 3), structure="rows")
FLAT = EnvSpec("flat", 12, 3)
SET = SetEncoder((5, 6, 7))
PARAMETERS = SET.init(ROWS, jax.random.key(0))
encode = jax.jit(SET)


def by_hand(parameters, obs):
    """The set encoder as a loop in NumPy."""
    shared, (weight, bias) = jax.tree.map(np.asarray, parameters)
    own, *others = np.asarray(obs).reshape(4, 3)
    encoded = []
    for row in others:
        x = np.concatenate([own, row])
        for layer_weight, layer_bias in shared:
            x = np.maximum(x @ layer_weight + layer_bias, 0)
        encoded.append(x)
    pooled = np.concatenate([np.max(encoded, axis=0), np.mean(encoded, axis=0), own])
    return np.maximum(pooled @ weight + bias, 0)


def test_a_set_is_encoded_as_by_hand():
    obs = jax.random.normal(jax.random.key(1), (12,))
    np.testing.assert_allclose(encode(PARAMETERS, obs), by_hand(PARAMETERS, obs), rtol=1e-5, atol=1e-6)


@given(st.permutations(range(1, 4)), st.integers(0, 99))
def test_the_order_of_the_other_rows_does_not_matter(order, seed):
    rows = jax.random.normal(jax.random.key(seed), (4, 3))
    mixed = rows[jnp.array([0, *order])]
    np.testing.assert_allclose(encode(PARAMETERS, rows.ravel()), encode(PARAMETERS, mixed.ravel()), atol=1e-6)


def test_which_row_is_the_own_one_matters():
    rows = jax.random.normal(jax.random.key(3), (4, 3))
    swapped = rows[jnp.array([1, 0, 2, 3])]
    assert float(jnp.abs(encode(PARAMETERS, rows.ravel()) - encode(PARAMETERS, swapped.ravel())).max()) > 1e-3


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("encoder", ["set", "mlp", "separate"])
def test_all_ways_through_an_ensemble_agree(encoder, members):
    networks = make_networks(jax.random.key(0), members, ROWS, 4, encoder, (5, 6))
    obs = jax.random.normal(jax.random.key(1), (3, 12))
    batch = networks.batch(obs)
    assert batch.shape == (members, 3, 3, 4)
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(batch, jnp.stack([networks(one) for one in obs], axis=1), **close)
    np.testing.assert_allclose(batch, networks.per_member(jnp.broadcast_to(obs, (members, 3, 12))), **close)
    np.testing.assert_allclose(batch, jnp.moveaxis(networks.columns(obs), -1, 1), **close)


def test_members_are_drawn_apart():
    networks = make_networks(jax.random.key(0), 3, ROWS, 4, "set", (5, 6))
    first = [np.asarray(leaf)[0] for leaf in jax.tree.leaves(networks)]
    second = [np.asarray(leaf)[1] for leaf in jax.tree.leaves(networks)]
    drawn = [i for i, leaf in enumerate(first) if leaf.any()]  # biases are zero
    assert len(drawn) == 3
    assert all((first[i] != second[i]).any() for i in drawn)


@pytest.mark.parametrize(("spec", "kind"), [(ROWS, EncodedNetworks), (FLAT, Networks)])
def test_the_structure_of_the_observation_chooses(spec, kind):
    assert isinstance(make_networks(jax.random.key(0), 1, spec, 2), kind)


class Halves(eqx.Module):
    """An encoder of a user's own: the sums of both halves, scaled."""

    broken: bool = eqx.field(static=True, default=False)

    def init(self, spec, key):
        return jax.random.normal(key, (2,))

    def __call__(self, parameters, obs):
        sums = obs.reshape(2, -1).sum(axis=1) * parameters
        return sums[None] if self.broken else sums


def test_an_encoder_of_ones_own_is_used():
    networks = make_networks(jax.random.key(0), 2, FLAT, 4, Halves())
    obs = jnp.arange(12.0)
    features = obs.reshape(2, 6).sum(axis=1)[None] * networks.parameters_of_encoder
    expected = jnp.einsum("kf,kfo->ko", features, networks.weight).reshape(2, 3, 4)
    np.testing.assert_allclose(networks(obs), expected, rtol=1e-5)
    assert networks.parameters == 2 * (2 + 2 * 12 + 12)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((FLAT, 2, "set"), r"structure='rows'"),
        ((ROWS, 2, "transformer"), r"unknown encoder 'transformer': choose one of auto, separate, mlp, set"),
        ((ROWS, 2, "set", (5,)), r"at least two hidden sizes"),
        ((FLAT, 2, Halves(broken=True)), r"Halves must return a vector of features for one observation, got \(1, 2\)"),
        ((EnvSpec("odd", 7, 2), 2, Halves()), r"Halves cannot encode odd: TypeError"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, told):
    with pytest.raises(UsageError, match=told):
        make_networks(jax.random.key(0), 1, *arguments)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"obs_shape": (3, 3)}, r"12 numbers to see, but the obs_shape \(3, 3\)"),
        ({"structure": "rows"}, r"needs obs_shape=\(rows, features\), got None"),
    ],
)
def test_a_structure_that_does_not_fit_the_observation_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        EnvSpec("wrong", 12, 3, **changes)


@pytest.mark.parametrize(("shape", "layers"), [((7, 6, 3), GRIDS), ((36, 40, 2), PICTURES)])
def test_an_image_is_convolved_as_by_xla(shape: Any, layers: Any):
    """The same weights as kernels of `jax.lax.conv_general_dilated`."""
    size = int(np.prod(shape))
    spec = EnvSpec("images", size, 3, obs_shape=shape, structure="image")
    encoder = CNNEncoder.for_spec(spec, 8)
    parameters = encoder.init(spec, jax.random.key(1))
    obs = jax.random.uniform(jax.random.key(2), (size,), maxval=9.0)
    x = obs.reshape(1, *shape) / (255 if layers is PICTURES else 1)
    for (kernel, stride, channels), (weight, bias) in zip(layers, parameters, strict=False):
        filters = weight.reshape(kernel, kernel, -1, channels)
        names = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, filters, (stride, stride), "VALID", dimension_numbers=names)
        x = jax.nn.relu(x + bias.reshape(1, 1, 1, -1))
    weight, bias = parameters[-1]
    np.testing.assert_allclose(encoder(parameters, obs), jax.nn.relu(x.reshape(-1) @ weight + bias), atol=1e-5)


def test_images_get_the_encoder_for_them_unless_they_are_too_small():
    spec = EnvSpec("images", 75, 3, obs_shape=(5, 5, 3), structure="image")
    networks = make_networks(jax.random.key(0), 2, spec, 4)
    assert isinstance(networks.encoder, CNNEncoder)
    assert networks(jnp.zeros(75)).shape == (2, 3, 4)
    tiny = EnvSpec("dots", 9, 3, obs_shape=(3, 3, 1), structure="image")
    assert isinstance(make_networks(jax.random.key(0), 2, tiny, 4), Networks)
    with pytest.raises(UsageError, match="the images of dots, 3 x 3, are too small: use encoder='mlp'"):
        make_networks(jax.random.key(0), 2, tiny, 4, "cnn")
    with pytest.raises(UsageError, match="the encoder 'cnn' needs an image, and plain says structure=None"):
        make_networks(jax.random.key(0), 2, EnvSpec("plain", 9, 3), 4, "cnn")
    with pytest.raises(UsageError, match=r"one dense layer: give hidden=\(256,\), got hidden=\(8, 8\)"):
        make_networks(jax.random.key(0), 2, spec, 4, hidden=(8, 8))
    with pytest.raises(ValueError, match=r"structure='image' of flat needs obs_shape=\(height, width, channels\)"):
        EnvSpec("flat", 9, 3, obs_shape=(3, 3), structure="image")
