"""Layer norm: against a loop in NumPy and torch's, indifferent to a constant and a factor, and in every encoder."""

import dataclasses
import functools
import math
import re
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
from sentinel_rl.nets import (
    CNNEncoder,
    DenseEncoder,
    EncodedNetworks,
    Networks,
    SetEncoder,
    encoder_for,
    layer_norm,
    make_networks,
    resolve_encoder,
)
from sentinel_rl.nets.encoders import _largest

EPSILON = 1e-5
RNG = np.random.default_rng(5)
# Rows of sums of which some vary by less than the epsilon, some by much more.
SUMS = (RNG.normal(size=(3, 2, 5)) + 0.5) * np.array([1e-3, 1.0, 1e3])[:, None, None]
GAINS, SHIFTS = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5))
# Of float32, after sums of five numbers and a root; a shift may cancel what is added to it.
CLOSE = {"float32": {"rtol": 1e-5, "atol": 2e-6}, "float64": {"rtol": 1e-12, "atol": 1e-13}}

FLAT = EnvSpec("flat", 6, 3, obs_low=(-0.5,) * 6, obs_high=(0.5,) * 6)
ROWS = EnvSpec("rows", 12, 3, obs_shape=(4, 3), structure="rows")
IMAGES = EnvSpec("images", 75, 3, obs_shape=(5, 5, 3), structure="image")
STATES = EnvSpec("states", 9, 3, structure="states")
ENCODERS: dict[str, tuple[Any, EnvSpec, tuple[int, ...]]] = {
    "mlp": (DenseEncoder((5, 4), True), FLAT, (5, 4)),
    "set": (SetEncoder((5, 6, 7), True), ROWS, (5, 6, 7)),
    "cnn": (CNNEncoder(6, (5, 5, 3), True), IMAGES, (6,)),
}


def by_hand(x, gain, shift):
    """Row by row and number by number, in float64."""
    x = np.asarray(x, float)
    found = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        mean = math.fsum(x[place]) / x.shape[-1]
        variance = math.fsum((each - mean) ** 2 for each in x[place]) / x.shape[-1]
        for i, each in enumerate(x[place]):
            found[(*place, i)] = gain[i] * (each - mean) / math.sqrt(variance + EPSILON) + shift[i]
    return found


def test_a_case_by_hand():
    """The mean is 1.5, the standard deviation too; one sum alone is its own mean."""
    found = layer_norm(
        jnp.array([0.0, 0.0, 3.0, 3.0]), jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0.0, 0.0, 10.0, 0.0])
    )
    np.testing.assert_allclose(found, [-1, -2, 13, 4], rtol=1e-5)  # the epsilon takes 2e-6 of it
    assert layer_norm(jnp.array([7.0]), jnp.array([3.0]), jnp.array([5.0])).tolist() == [5.0]


def test_against_a_loop(precision):
    """As it is, over many rows, and over members with gains and shifts of their own."""
    x, gains, shifts = (jnp.asarray(each, precision) for each in (SUMS, GAINS, SHIFTS))
    expected = by_hand(SUMS, GAINS[0], SHIFTS[0])
    found = layer_norm(x, gains[0], shifts[0])
    assert found.dtype == precision
    np.testing.assert_allclose(found, expected, **CLOSE[precision])
    over_rows = jax.jit(jax.vmap(jax.vmap(layer_norm, (0, None, None)), (0, None, None)))
    np.testing.assert_allclose(over_rows(x, gains[0], shifts[0]), expected, **CLOSE[precision])
    over_members = jax.jit(jax.vmap(layer_norm))(x, gains, shifts)
    expected = np.stack([by_hand(*each) for each in zip(SUMS, GAINS, SHIFTS, strict=True)])
    np.testing.assert_allclose(over_members, expected, **CLOSE[precision])


@pytest.mark.clients
def test_against_torch():
    """The numbers and all three gradients."""
    torch = pytest.importorskip("torch")
    ours = [jnp.asarray(each, jnp.float32) for each in (SUMS, GAINS[0], SHIFTS[0])]
    theirs = [torch.tensor(np.asarray(each), requires_grad=True) for each in ours]
    value = torch.nn.functional.layer_norm(theirs[0], (5,), *theirs[1:], eps=EPSILON)
    np.testing.assert_allclose(layer_norm(*ours), value.detach().numpy(), **CLOSE["float32"])
    torch.sum(value**3).backward()
    slopes = jax.grad(lambda *each: jnp.sum(layer_norm(*each) ** 3), argnums=(0, 1, 2))(*ours)
    for slope, each in zip(slopes, theirs, strict=True):
        # Where sums hardly vary, slopes are some hundred, and differences of such numbers.
        np.testing.assert_allclose(slope, each.grad.numpy(), rtol=1e-4, atol=1e-3)


@jax.jit
def plain(x):
    return layer_norm(x, jnp.ones(4), jnp.zeros(4))


@given(st.tuples(*[st.floats(-10, 10)] * 4), st.floats(-1e3, 1e3), st.floats(1e-2, 1e2))
def test_a_constant_and_a_positive_factor_do_not_matter(sums, constant, factor):
    """But for the epsilon, which takes at most epsilon / (2 variance) of numbers that are at most sqrt(3)."""
    with jax.enable_x64(True):
        once, moved = (plain(jnp.asarray(x)) for x in (np.array(sums), factor * np.array(sums) + constant))
    variance = min(1.0, factor**2) * np.var(sums)
    bound = math.sqrt(3) * EPSILON / (2 * max(variance, 1e-30))
    np.testing.assert_allclose(moved, once, rtol=0, atol=bound + 1e-9)  # a constant of 1000 costs some digits


def test_equal_sums_have_finite_gradients(precision):
    """The slopes are (1 - 1/n) / sqrt(epsilon) and -1/n / sqrt(epsilon), times the gain."""
    rows = jnp.array([[0.0] * 4, [7.0] * 4, [-1e4] * 4], precision)
    gain, shift = jnp.array([1.0, -2.0, 0.0, 3.0], precision), jnp.array([0.0, 1.0, 2.0, 3.0], precision)
    value = jax.jit(jax.vmap(layer_norm, (0, None, None)))(rows, gain, shift)
    assert (value == shift[None]).all()
    slopes = jax.jit(jax.vmap(jax.jacrev(layer_norm, argnums=(0, 1, 2)), (0, None, None)))(rows, gain, shift)
    by_sums = np.asarray(gain)[:, None] * (np.eye(4) - 1 / 4) / math.sqrt(EPSILON)
    for row in range(3):
        np.testing.assert_allclose(slopes[0][row], by_sums, rtol=1e-5)
        assert not slopes[1][row].any()
        np.testing.assert_array_equal(slopes[2][row], np.eye(4))


def test_gradients_are_finite_differences(x64):
    at, step = (SUMS[1, 0], GAINS[0], SHIFTS[0]), 1e-6
    slopes = jax.jit(jax.jacrev(layer_norm, argnums=(0, 1, 2)))(*map(jnp.asarray, at))
    for place, slope in enumerate(slopes):
        for i in range(5):
            up, down = (
                [each + sign * step * np.eye(5)[i] * (n == place) for n, each in enumerate(at)] for sign in (1, -1)
            )
            np.testing.assert_allclose(slope[:, i], (by_hand(*up) - by_hand(*down)) / (2 * step), rtol=1e-5, atol=1e-7)


def moved(tree: Any) -> Any:
    """Parameters of which none is zero or one."""
    rng = np.random.default_rng(3)
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(rng.normal(scale=0.5, size=leaf.shape), jnp.float32), tree)


@functools.cache
def parameters_of(name: str) -> Any:
    encoder, spec, _ = ENCODERS[name]
    return moved(encoder.init(spec, jax.random.key(1)))


encode = {name: jax.jit(jax.vmap(encoder, (None, 0))) for name, (encoder, _, _) in ENCODERS.items()}


def dense(x, layer):
    """A layer as a loop over its rows."""
    weight, bias, gain, shift = (np.asarray(each, float) for each in layer)
    return np.maximum(by_hand(x @ weight + bias, gain, shift), 0)


def encoded_by_hand(name, obs):
    """The encoders in NumPy, but for the convolutions of images, which have no layer norm."""
    parameters = parameters_of(name)
    if name == "mlp":
        return dense(dense(obs, parameters[0]), parameters[1])
    if name == "cnn":
        # A dense layer that changes nothing: what the convolutions are followed by is not negative.
        convolutions, flat = CNNEncoder(32, (5, 5, 3)), (jnp.eye(32), jnp.zeros(32))
        return dense(np.asarray(convolutions([*parameters[:-1], flat], jnp.asarray(obs)), float), parameters[-1])
    shared, joint = parameters
    own, *others = obs.reshape(4, 3)
    rows = []
    for row in others:
        x = np.concatenate([own, row])
        for layer in shared:
            x = dense(x, layer)
        rows.append(x)
    return dense(np.concatenate([np.max(rows, axis=0), np.mean(rows, axis=0), own]), joint)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_normalises_as_by_hand(name):
    """Every layer of an encoder, and every row of a set by itself."""
    obs = np.random.default_rng(7).normal(size=(2, ENCODERS[name][1].obs_size)).astype(np.float32)
    expected = np.stack([encoded_by_hand(name, one) for one in obs])
    np.testing.assert_allclose(encode[name](parameters_of(name), jnp.asarray(obs)), expected, rtol=1e-4, atol=1e-5)


@given(st.permutations(range(1, 4)), st.integers(0, 99))
def test_the_order_of_the_other_rows_does_not_matter(order, seed):
    rows = np.random.default_rng(seed).normal(size=(4, 3))
    both = jnp.asarray([rows.ravel(), rows[[0, *order]].ravel()], jnp.float32)
    one, other = encode["set"](parameters_of("set"), both)
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_largest_of_rows_has_the_gradient_of_the_first_that_has_it():
    """By hand. `jnp.max` compares with what XLA may compute twice; then none is equal, and gradients are NaN."""
    rows = jnp.array([[1.0, 5.0], [3.0, 5.0], [3.0, 2.0]])
    assert _largest(rows).tolist() == [3.0, 5.0]
    assert jax.grad(lambda x: _largest(x).sum())(rows).tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ENCODERS)
def test_gains_and_shifts_are_ones_and_zeros_that_learn(name):
    encoder, spec, hidden = ENCODERS[name]

    @jax.jit
    def run(key):
        networks = make_networks(key, 2, spec, 4, name, hidden, layer_norm=True)
        obs = jax.random.normal(key, (5, spec.obs_size))
        return networks, jax.grad(lambda each: jnp.sum((each.batch(obs) - 1) ** 2))(networks)

    networks, slopes = run(jax.random.key(1))
    assert isinstance(networks, EncodedNetworks)
    assert networks.encoder == encoder
    norms = [layer[2:] for layer in layers_of(name, networks.parameters_of_encoder) if len(layer) == 4]
    assert len(norms) == len(hidden)
    for gain, shift in norms:
        assert (gain == 1).all()
        assert not shift.any()
    for slope in jax.tree.leaves(slopes):
        assert np.isfinite(slope).all()
        assert slope.reshape(2, -1).any(axis=1).all(), "of both members"


def layers_of(name, parameters):
    return [*parameters[0], parameters[1]] if name == "set" else list(parameters)


@pytest.mark.parametrize("name", ENCODERS)
def test_without_it_the_parameters_are_those_of_before(name):
    """None, and not False: nothing is added to a state. Weights and biases are drawn as with it."""
    encoder, spec, hidden = ENCODERS[name]
    bare = dataclasses.replace(encoder, layer_norm=False)
    assert bare.layer_norm is None
    assert bare == dataclasses.replace(encoder, layer_norm=None) == encoder_for(spec, name, hidden, False)
    with_it, without = (layers_of(name, each.init(spec, jax.random.key(2))) for each in (encoder, bare))
    assert [len(layer) for layer in without] == [2] * len(with_it)
    assert eqx.tree_equal([tuple(layer[:2]) for layer in with_it], [tuple(layer) for layer in without])
    forms = [
        jax.eval_shape(
            lambda key, chosen=chosen: make_networks(key, 2, spec, 4, name, hidden, **chosen), jax.random.key(0)
        )
        for chosen in ({}, {"layer_norm": None}, {"layer_norm": False})
    ]
    assert type(forms[0]) is (Networks if name == "mlp" else EncodedNetworks)
    assert len({jax.tree.structure(form) for form in forms}) == 1


def test_narrow_numbers_are_stretched_before():
    networks = make_networks(jax.random.key(0), 1, FLAT, 4, "mlp", (5,), stretch=True, layer_norm=True)
    assert networks.encoder == DenseEncoder((5,), True, (2.0,) * 6)
    ((weight, bias, *_),) = jax.tree.map(lambda leaf: np.asarray(leaf[0], float), networks.parameters_of_encoder)
    obs = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.5], np.float32)
    expected = np.maximum(by_hand(2 * obs @ weight + bias, np.ones(5), np.zeros(5)), 0)
    np.testing.assert_allclose(networks.features(jnp.asarray(obs))[0], expected, rtol=1e-4, atol=1e-6)


class First(eqx.Module):
    """An encoder of a user's own."""

    def init(self, spec, key):
        return jnp.ones(2)

    def __call__(self, parameters, obs):
        return parameters * obs[0]


OWN = (
    "layer_norm normalises the layers of the encoders mlp, set, cnn, and the encoder is a First, whose layers are its "
    "own: leave layer_norm out"
)
NO_LAYERS = "layer_norm normalises hidden layers, and hidden=() has none: leave layer_norm out"


def no_encoder(name):
    return (
        f"layer_norm needs one of the encoders mlp, set, cnn, and the encoder is {name!r}: use encoder='mlp', or leave "
        "layer_norm out"
    )


@pytest.mark.parametrize(
    ("spec", "encoder", "hidden", "told"),
    [
        (FLAT, "separate", None, no_encoder("separate")),
        (STATES, "table", None, no_encoder("table")),
        (STATES, "auto", None, no_encoder("table")),
        (FLAT, First(), None, OWN),
        (FLAT, DenseEncoder((5,), True), None, OWN.replace("a First", "a DenseEncoder")),
        *[(spec, name, (), NO_LAYERS) for name, (_, spec, _) in ENCODERS.items()],
    ],
    ids=["separate", "table", "table for states", "own", "own, of ours", *(f"{name}, no layers" for name in ENCODERS)],
)
def test_what_has_no_layers_to_normalise_is_refused(spec, encoder, hidden, told):
    """With it; without it, or where it is off, encoders stay what they are."""
    for refuses in (resolve_encoder, encoder_for):
        with pytest.raises(UsageError, match=f"^{re.escape(told)}$"):
            refuses(spec, encoder, hidden, True)
    with pytest.raises(UsageError, match=f"^{re.escape(told)}$"):
        make_networks(jax.random.key(0), 1, spec, 2, encoder, hidden, layer_norm=True)
    assert resolve_encoder(spec, encoder, hidden, False) == resolve_encoder(spec, encoder, hidden)
