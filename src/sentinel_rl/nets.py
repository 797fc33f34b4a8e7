"""Ensembles of small networks as plain arrays with member and action axes in front."""

from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Layout = Literal["separate", "shared"]
Init = Callable[[jax.Array, tuple[int, ...]], Array]


class Networks(eqx.Module):
    """K members' return networks: ``weights[l]`` is ``[K, heads, in, out]``, ``biases[l]`` is ``[K, heads, out]``.

    ``separate`` has one network per member and action (the paper), ``shared`` one per member with all actions in
    its last layer.
    """

    weights: tuple[Float[Array, "K heads _ _"], ...]
    biases: tuple[Float[Array, "K heads _"], ...]
    num_actions: int = eqx.field(static=True)

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, "K A n"]:
        """Return the logits of every member and action for one observation."""
        logits = jax.vmap(jax.vmap(_mlp, in_axes=(0, 0, None)), in_axes=(0, 0, None))(self.weights, self.biases, obs)
        members, heads, outputs = logits.shape
        return logits.reshape(members, self.num_actions, heads * outputs // self.num_actions)

    def columns(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K A n batch"]:
        """Return the logits of every member and action for many observations, which end up along the last axis.

        What follows on a CPU (softmax, running sums over the atoms) is then done for 16 observations at once.
        """
        x = jnp.einsum("khio,bi->khob", self.weights[0], obs) + self.biases[0][..., None]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            x = jnp.einsum("khio,khib->khob", weight, jax.nn.relu(x)) + bias[..., None]
        members, heads, outputs, batch = x.shape
        return x.reshape(members, self.num_actions, heads * outputs // self.num_actions, batch)

    def per_member(self, obs: Float[Array, "K batch obs"]) -> Float[Array, "K batch A n"]:
        """Return each member's logits on observations of its own."""

        def one(member: Networks, x: Array) -> Array:
            ensemble: Networks = jax.tree.map(lambda leaf: leaf[None], member)
            return ensemble(x)[0]

        return jax.vmap(jax.vmap(one, in_axes=(None, 0)))(self, obs)

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return sum(leaf.size for leaf in jax.tree.leaves((self.weights, self.biases)))


def glorot_uniform(key: jax.Array, shape: tuple[int, ...]) -> Float[Array, "... _ _"]:
    """Draw weights ``[..., in, out]`` from ``U(-l, l)``, ``l = sqrt(6 / (in + out))``."""
    limit = (6 / (shape[-2] + shape[-1])) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def fan_in_uniform(key: jax.Array, shape: tuple[int, ...]) -> Float[Array, "... _ _"]:
    """Draw weights ``[..., in, out]`` from ``U(-l, l)``, ``l = sqrt(3 / in)``: a variance of ``1 / in``."""
    limit = (3 / shape[-2]) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def orthogonal(gain: float) -> Init:
    """Draw weights ``[..., in, out]`` with orthogonal rows or columns of length `gain` (Saxe et al. 2014)."""

    def draw(key: jax.Array, shape: tuple[int, ...]) -> Array:
        *batch, rows, columns = shape
        vectors = jax.random.normal(key, (*batch, min(rows, columns), max(rows, columns)))
        basis = jnp.vectorize(_orthonormal, signature="(m,n)->(m,n)")(vectors)
        return gain * (basis if rows <= columns else jnp.swapaxes(basis, -1, -2))

    return draw


def _orthonormal(vectors: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """Gram-Schmidt, each vector twice so that rounding does not add up: of Gaussian vectors, uniform over all bases.

    LAPACK's QR never returns when it is called on several CPU devices at once.
    """

    def step(i: Array, basis: Array) -> Array:
        rest = vectors[i]
        for _ in range(2):
            shares = jnp.dot(basis, rest, precision="highest")
            rest = rest - jnp.dot(shares, basis, precision="highest")
        return basis.at[i].set(rest / jnp.linalg.norm(rest))

    basis: Array = jax.lax.fori_loop(0, vectors.shape[0], step, jnp.zeros_like(vectors))
    return basis


def init_networks(
    key: jax.Array,
    members: int,
    obs_size: int,
    num_actions: int,
    atoms: int,
    hidden: tuple[int, ...] = (32, 32, 128),
    layout: Layout = "separate",
    draw: Init = glorot_uniform,
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
    return Networks(tuple(weights), tuple(biases), num_actions)


def _mlp(weights: tuple[Array, ...], biases: tuple[Array, ...], x: Array) -> Array:
    """One network: ReLU between the layers, none after the last."""
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = jax.nn.relu(x @ weight + bias)
    return x @ weights[-1] + biases[-1]
