"""Randomised prior networks (Osband et al. 2018): to every member a random network is added that never learns.

Where there are data, a member learns to make up for its own prior; where there are none, the members differ as their
priors do, unless what they learnt elsewhere happens to cancel them there too.
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.nets.cnn import CNNEncoder
from sentinel_rl.nets.encoders import DenseEncoder, Encoder, SetEncoder
from sentinel_rl.nets.ensemble import make_networks
from sentinel_rl.nets.mlp import Networks
from sentinel_rl.nets.table import Table

# Folded into the key of the networks; splitting a key gives its first numbers, which this one is not among.
_PRIOR = 0x5052494F
_OWN_ENCODERS = (DenseEncoder, SetEncoder, CNNEncoder)


class PriorNetworks(eqx.Module):
    """K members that learn, and one fixed random network for each, whose outputs are added.

    Args:
        learnt: the networks that learn.
        prior: the others. No gradient goes through them.
        scale: that their outputs, which are about 1, are multiplied by.
        direction: a prior of one number per action moves the outputs along this; None adds output by output.
    """

    learnt: Any
    prior: Any
    scale: float = eqx.field(static=True)
    direction: tuple[float, ...] | None = eqx.field(static=True, default=None)

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, "K A n"]:
        """Return the outputs of every member and action for one observation."""
        outputs: Array = self.learnt(obs) + self._added(self.prior(obs))
        return outputs

    def batch(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K batch A n"]:
        """Return the outputs of every member and action for many observations."""
        outputs: Array = self.learnt.batch(obs) + self._added(self.prior.batch(obs))
        return outputs

    def per_member(self, obs: Float[Array, "K batch obs"]) -> Float[Array, "K batch A n"]:
        """Return each member's outputs on observations of its own."""
        outputs: Array = self.learnt.per_member(obs) + self._added(self.prior.per_member(obs))
        return outputs

    def columns(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K A n batch"]:
        """Return the outputs of every member and action, observations along the last axis."""
        outputs: Array = self.learnt.columns(obs) + self._added(self.prior.columns(obs), axis=-2)
        return outputs

    def features(self, obs: Float[Array, " obs"]) -> Float[Array, "K features"]:
        """Return what the last layer of every member that learns sees of one observation."""
        features: Array = self.learnt.features(obs)
        return features

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return int(self.learnt.parameters)

    def _added(self, outputs: Array, axis: int = -1) -> Array:
        outputs = self.scale * jax.lax.stop_gradient(outputs)
        if self.direction is None:
            return outputs
        shape = [1] * outputs.ndim
        shape[axis] = len(self.direction)
        return outputs * jnp.asarray(self.direction, outputs.dtype).reshape(shape)


def add_prior(
    key: jax.Array,
    learnt: Any,
    members: int,
    spec: EnvSpec,
    outputs: int,
    encoder: str | Encoder,
    hidden: tuple[int, ...] | None,
    stretch: bool,
    scale: float,
    direction: tuple[float, ...] | None = None,
    layer_norm: bool | None = None,
) -> PriorNetworks:
    """Add a fixed random network of the same kind to every member.

    The networks that learn start near zero and almost linear: small weights, biases of zero. A prior like that would
    hardly differ between members. Its weights are therefore drawn larger (``U(-l, l)``, ``l = sqrt(6 / in)``) and its
    biases from ``U(-1, 1)``, so that its outputs are about 1 and bend within the range of the observations. An encoder
    of a user's own is left as it draws itself.

    Args:
        key: that the networks which learn were drawn with.
        learnt: those networks.
        members: K.
        spec: of the environment.
        outputs: n of every action.
        encoder: as for `make_networks`.
        hidden: as for `make_networks`.
        stretch: as for `make_networks`.
        scale: of the priors.
        direction: see `PriorNetworks`.
        layer_norm: as for `make_networks`; gains of one are then moved as biases are.
    """
    draw_key, spread_key = jax.random.split(jax.random.fold_in(key, _PRIOR))
    numbers = outputs if direction is None else 1
    prior = make_networks(draw_key, members, spec, numbers, encoder, hidden, stretch, layer_norm=layer_norm)
    return PriorNetworks(learnt, _spread(spread_key, prior), scale, direction)


def learnt_part(networks: Any) -> Any:
    """The part of networks that an optimiser sees."""
    return networks.learnt if isinstance(networks, PriorNetworks) else networks


def with_learnt(networks: Any, learnt: Any) -> Any:
    """Networks with another part that learns, and the same priors."""
    return dataclasses.replace(networks, learnt=learnt) if isinstance(networks, PriorNetworks) else learnt


def _spread(key: jax.Array, networks: Any) -> Any:
    """Networks with larger weights and random biases; tables of outputs that are drawn for every state by itself."""
    if isinstance(networks, Table):
        limit = math.sqrt(3 / networks.entries.shape[1])  # outputs of a standard deviation of 1
        drawn = jax.random.uniform(key, networks.entries.shape, minval=-limit, maxval=limit)
        return dataclasses.replace(networks, entries=drawn)
    if isinstance(networks, Networks):
        return _louder(key, networks, axes=2)
    if isinstance(networks.encoder, _OWN_ENCODERS):
        return _louder(key, networks, axes=1)
    last = _louder(key, (networks.weight, networks.bias), axes=1)
    return eqx.tree_at(lambda nets: (nets.weight, nets.bias), networks, last)


def _louder(key: jax.Array, tree: Any, axes: int) -> Any:
    """Weights from Glorot's range to He's, and biases and gains moved at random; so many axes are in front of them."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))

    def one(key: jax.Array, leaf: Array) -> Array:
        if leaf.ndim == axes + 2:
            rows, columns = leaf.shape[-2:]
            return leaf * math.sqrt((rows + columns) / rows)
        return leaf + jax.random.uniform(key, leaf.shape, leaf.dtype, -1.0, 1.0)

    return jax.tree.unflatten(structure, list(map(one, keys, leaves)))
