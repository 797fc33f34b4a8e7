"""Ensembles of multilayer perceptrons as plain arrays with member and action axes in front."""

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._mapping import each_of
from sentinel_rl.nets.initial import Init, glorot_uniform

Layout = Literal["separate", "shared"]


class Networks(eqx.Module):
    """K members' return networks: ``weights[l]`` is ``[K, heads, in, out]``, ``biases[l]`` is ``[K, heads, out]``.

    ``separate`` has one network per member and action (the paper), ``shared`` one per member with all actions in
    its last layer. What is observed is multiplied by ``scale``, where there is one.
    """

    weights: tuple[Float[Array, "K heads _ _"], ...]
    biases: tuple[Float[Array, "K heads _"], ...]
    num_actions: int = eqx.field(static=True)
    scale: tuple[float, ...] | None = eqx.field(static=True, default=None)

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, "K A n"]:
        """Return the logits of every member and action for one observation."""
        obs = self._scaled(obs)
        logits = jax.vmap(jax.vmap(_mlp, in_axes=(0, 0, None)), in_axes=(0, 0, None))(self.weights, self.biases, obs)
        members, heads, outputs = logits.shape
        return logits.reshape(members, self.num_actions, heads * outputs // self.num_actions)

    def columns(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K A n batch"]:
        """Return the logits of every member and action for many observations, which end up along the last axis.

        What follows on a CPU (softmax, running sums over the atoms) is then done for 16 observations at once.
        """
        x = jnp.einsum("khio,bi->khob", self.weights[0], jax.vmap(self._scaled)(obs)) + self.biases[0][..., None]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            x = jnp.einsum("khio,khib->khob", weight, jax.nn.relu(x)) + bias[..., None]
        members, heads, outputs, batch = x.shape
        return x.reshape(members, self.num_actions, heads * outputs // self.num_actions, batch)

    def batch(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K batch A n"]:
        """Return the logits of every member and action for many observations."""
        return jnp.moveaxis(jax.vmap(self)(obs), 0, 1)

    def per_member(self, obs: Float[Array, "K batch obs"]) -> Float[Array, "K batch A n"]:
        """Return each member's logits on observations of its own."""

        def member(weights: tuple[Array, ...], biases: tuple[Array, ...], x: Float[Array, " obs"]) -> Array:
            logits: Array = each_of(lambda *head: _mlp(head[0], head[1], x))(weights, biases)
            return logits.reshape(self.num_actions, -1)

        many = jax.vmap(member, in_axes=(None, None, 0))
        logits: Array = each_of(many)(self.weights, self.biases, self._scaled(obs))
        return logits

    def features(self, obs: Float[Array, " obs"]) -> Float[Array, "K features"]:
        """Return what the last layers of every member see of one observation, of all its actions side by side."""
        in_axes = (0, 0, None)
        features = jax.vmap(jax.vmap(_hidden, in_axes), in_axes)(self.weights, self.biases, self._scaled(obs))
        return features.reshape(features.shape[0], -1)

    def _scaled(self, obs: Float[Array, "*many obs"]) -> Float[Array, "*many obs"]:
        return obs if self.scale is None else obs * jnp.broadcast_to(jnp.asarray(self.scale, obs.dtype), obs.shape)

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return sum(leaf.size for leaf in jax.tree.leaves((self.weights, self.biases)))


def init_networks(
    key: jax.Array,
    members: int,
    obs_size: int,
    num_actions: int,
    atoms: int,
    hidden: tuple[int, ...] = (32, 32, 128),
    layout: Layout = "separate",
    draw: Init = glorot_uniform,
    scale: tuple[float, ...] | None = None,
) -> Networks:
    """Draw the weights; biases are zero."""
    if layout not in get_args(Layout):
        raise ValueError(f"unknown network {layout!r}: choose one of {get_args(Layout)}")
    heads, outputs = (num_actions, atoms) if layout == "separate" else (1, num_actions * atoms)
    sizes = (obs_size, *hidden, outputs)
    weights, biases = [], []
    for layer_key, fan_in, fan_out in zip(jax.random.split(key, len(sizes) - 1), sizes, sizes[1:], strict=False):
        weights.append(draw(layer_key, (members, heads, fan_in, fan_out)))
        biases.append(jnp.zeros((members, heads, fan_out)))
    return Networks(tuple(weights), tuple(biases), num_actions, scale)


def _mlp(weights: tuple[Array, ...], biases: tuple[Array, ...], x: Array) -> Array:
    """One network: ReLU between the layers, none after the last."""
    return _hidden(weights, biases, x) @ weights[-1] + biases[-1]


def _hidden(weights: tuple[Array, ...], biases: tuple[Array, ...], x: Array) -> Array:
    """What the last layer of a network sees."""
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = jax.nn.relu(x @ weight + bias)
    return x
