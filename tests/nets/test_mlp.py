"""Ensembles of networks: the paper's number of parameters, their first values, and a loop over members and actions."""

import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.nets import Networks, init_networks, make_networks, orthogonal, stretching

SIZES = {"members": 3, "obs_size": 2, "num_actions": 2, "atoms": 5, "hidden": (4, 6)}


@pytest.fixture(scope="module", params=["separate", "shared"])
def networks(request: pytest.FixtureRequest) -> Networks:
    fresh = jax.jit(lambda key: init_networks(key, layout=request.param, **SIZES))(jax.random.key(0))
    rng = np.random.default_rng(1)
    biases = tuple(jnp.asarray(rng.normal(size=bias.shape), jnp.float32) for bias in fresh.biases)
    return Networks(fresh.weights, biases, fresh.num_actions)


def forward(networks: Networks, member: int, head: int, x: np.ndarray) -> np.ndarray:
    """One network of the ensemble, layer by layer."""
    layers = list(zip(networks.weights, networks.biases, strict=True))
    for number, (weight, bias) in enumerate(layers, start=1):
        x = x @ np.asarray(weight[member, head], float) + np.asarray(bias[member, head], float)
        x = np.maximum(x, 0) if number < len(layers) else x
    return x


@pytest.mark.parametrize(
    ("obs_size", "num_actions", "members", "expected"), [(4, 2, 4, 96_152), (25, 5, 4, 253_820), (4, 2, 1, 24_038)]
)
def test_the_paper_s_number_of_parameters(obs_size: int, num_actions: int, members: int, expected: int):
    shapes = jax.eval_shape(lambda key: init_networks(key, members, obs_size, num_actions, 51), jax.random.key(0))
    assert shapes.parameters == expected == (32 * obs_size + 11_891) * members * num_actions


@pytest.mark.parametrize(
    ("layout", "weights"),
    [
        ("separate", [(3, 2, 2, 4), (3, 2, 4, 6), (3, 2, 6, 5)]),
        ("shared", [(3, 1, 2, 4), (3, 1, 4, 6), (3, 1, 6, 10)]),
    ],
)
def test_shapes(layout, weights: list[tuple[int, ...]]):
    shapes = jax.eval_shape(lambda key: init_networks(key, layout=layout, **SIZES), jax.random.key(0))
    assert [w.shape for w in shapes.weights] == weights
    assert [b.shape for b in shapes.biases] == [(members, heads, out) for members, heads, _, out in weights]


def test_first_weights_are_glorot_uniform_and_biases_zero():
    networks = jax.jit(init_networks, static_argnums=(1, 2, 3, 4))(jax.random.key(3), 4, 4, 2, 51)
    for weight, bias in zip(networks.weights, networks.biases, strict=True):
        limit = np.sqrt(6 / sum(weight.shape[-2:]))
        assert np.abs(weight).max() <= limit
        assert np.abs(weight).max() > 0.98 * limit
        assert np.std(weight) == pytest.approx(limit / np.sqrt(3), rel=0.1)
        assert np.mean(weight) == pytest.approx(0, abs=0.1 * limit)
        assert not np.any(bias)
        assert len(np.unique(np.reshape(weight, (8, -1)), axis=0)) == 8, "members and actions start apart"


def test_layers_of_one_size_start_apart():
    networks = jax.jit(lambda key: init_networks(key, 1, 4, 2, 4, (4, 4)))(jax.random.key(0))
    assert len({np.asarray(weight).tobytes() for weight in networks.weights}) == 3


def test_against_a_loop(networks: Networks):
    obs = np.array([0.3, -1.2], np.float32)
    found = jax.jit(Networks.__call__)(networks, obs)
    assert found.shape == (3, 2, 5)
    for member in range(3):
        heads = [forward(networks, member, head, obs) for head in range(networks.weights[0].shape[1])]
        np.testing.assert_allclose(found[member], np.concatenate(heads).reshape(2, 5), rtol=1e-5, atol=1e-6)


def test_per_member_equals_the_call(networks: Networks):
    obs = np.random.default_rng(2).normal(size=(3, 4, 2)).astype(np.float32)
    call = jax.jit(Networks.__call__)
    found = jax.jit(Networks.per_member)(networks, obs)
    assert found.shape == (3, 4, 2, 5)
    for member in range(3):
        for number in range(4):
            expected = call(networks, obs[member, number])[member]
            np.testing.assert_allclose(found[member, number], expected, rtol=1e-5, atol=1e-6)


def test_columns_equal_the_call(networks: Networks):
    obs = np.random.default_rng(3).normal(size=(4, 2)).astype(np.float32)
    found = jax.jit(Networks.columns)(networks, obs)
    assert found.shape == (3, 2, 5, 4)
    call = jax.jit(Networks.__call__)
    for number in range(4):
        np.testing.assert_allclose(found[..., number], call(networks, obs[number]), rtol=1e-5, atol=1e-6)


def test_an_unknown_layout_is_named(untyped: None):
    with pytest.raises(ValueError, match=r"unknown network 'dense'.*separate.*shared"):
        init_networks(jax.random.key(0), layout="dense", **SIZES)


@pytest.mark.parametrize("shape", [(2, 1, 3, 8), (2, 1, 8, 3), (2, 1, 5, 5), (1, 1, 64, 60)])
def test_orthogonal_weights_have_orthogonal_sides(shape: tuple[int, ...]):
    weights = np.asarray(jax.jit(lambda key: orthogonal(3.0)(key, shape))(jax.random.key(0)), np.float64)[:, 0]
    for net in weights if shape[-2] <= shape[-1] else weights.swapaxes(-1, -2):
        np.testing.assert_allclose(net @ net.T, 9 * np.eye(len(net)), atol=1e-4)
    if len(weights) > 1:
        assert not np.allclose(weights[0], weights[1])


def test_orthogonal_weights_are_drawn_on_several_devices_at_once():
    """LAPACK's QR never came back there; a child can be stopped."""
    program = """
import jax
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.compiled import Training
jax.config.update("jax_num_cpu_devices", 2)
env = CartPole(200)
agent = make_agent("uadqn", env.spec, capacity=8)
print(Training([agent] * 2, env, Plan(), [0, 1]).agent_states()[1].online.weights[1].shape)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout.strip() == "(3, 1, 256, 100)"


def test_numbers_with_narrow_bounds_are_stretched():
    """Networks that stretch see what others see of the stretched observation, in all three ways of asking."""
    spec = EnvSpec("car", 2, 3, obs_low=(-1.2, -0.07), obs_high=(0.6, 0.07))
    scale = np.array(stretching(spec), np.float32)
    np.testing.assert_allclose(scale, [1, 1 / 0.07])
    assert stretching(dataclasses.replace(spec, obs_low=(-1.0, -np.inf), obs_high=(1.0, np.inf))) is None
    assert stretching(EnvSpec("unknown", 2, 3)) is None
    plain, stretched = (make_networks(jax.random.key(0), 2, spec, 4, "mlp", (5,), stretch) for stretch in (False, True))
    obs = jnp.array([[0.5, 0.03], [-1.0, -0.07], [0.1, 0.0]])
    np.testing.assert_allclose(stretched.batch(obs), plain.batch(obs * scale[None]), rtol=1e-5)
    np.testing.assert_allclose(stretched.columns(obs), plain.columns(obs * scale[None]), rtol=1e-5)
    own = jnp.stack([obs, obs])
    np.testing.assert_allclose(stretched.per_member(own), plain.per_member(own * scale[None, None]), rtol=1e-5)
