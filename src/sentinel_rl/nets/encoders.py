"""Encoders: from an observation to features, from which one linear layer makes the outputs of every action.

An encoder is written for one member and one observation; `sentinel_rl.nets.ensemble` maps it over many of both. One of
your own is an equinox module with `init` and `__call__`, whose parameters are arrays.
"""

from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._checks import on_or_none
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.nets.initial import glorot_uniform
from sentinel_rl.nets.normalisation import init_norm, normalised

# Weights ``[in, out]`` and biases ``[out]``, and the gains and shifts ``[out]`` of a layer that is normalised.
Layer = tuple[Array, ...]


@runtime_checkable
class Encoder(Protocol):
    """What an encoder must have."""

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        """Draw the parameters of one member, a pytree of arrays."""
        ...

    def __call__(self, parameters: Any, obs: Float[Array, " obs"]) -> Float[Array, " features"]:
        """Features of one observation, which is flat."""
        ...


class DenseEncoder(eqx.Module):
    """Features of numbers without a structure: dense layers, each followed by ReLU.

    Args:
        hidden: sizes of the layers.
        layer_norm: normalise the sums of every layer before ReLU, see `sentinel_rl.nets.layer_norm`; None is False.
        scale: what the observation is multiplied by, see `sentinel_rl.nets.stretching`; None for nothing.
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)
    scale: tuple[float, ...] | None = eqx.field(static=True, default=None)

    def init(self, spec: EnvSpec, key: jax.Array) -> tuple[Layer, ...]:
        """Draw the weights; biases and shifts are zero, gains one."""
        return _layers(key, (spec.obs_size, *self.hidden), self.layer_norm)

    def __call__(self, parameters: tuple[Layer, ...], obs: Float[Array, " obs"]) -> Float[Array, " out"]:
        """One layer after the other."""
        x = obs if self.scale is None else obs * jnp.asarray(self.scale, obs.dtype)
        for weight, bias, *norm in parameters:
            x = jax.nn.relu(normalised(x @ weight + bias, norm))
        return x


class SetEncoder(eqx.Module):
    """Features of rows of which all but the first can be exchanged (Deep Sets, Zaheer et al. 2017).

    The first row is the agent's own. Every other row is encoded together with it by one shared network, the results are
    pooled by maximum and by mean, joined with the own row, and followed by one hidden layer. Whatever a row means is
    learnt once, and not once for every place it may stand at.

    Args:
        hidden: sizes of the layers of the shared network, and last of the layer after the pooling.
        layer_norm: normalise the sums of every layer before ReLU, those of every row by themselves; None is False.
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(128, 128, 256))
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)

    def init(self, spec: EnvSpec, key: jax.Array) -> tuple[tuple[Layer, ...], Layer]:
        """Draw the weights; biases and shifts are zero, gains one."""
        _, features = self._shape(spec)
        *shared, joint = self.hidden
        row_key, joint_key = jax.random.split(key)
        of_rows = _layers(row_key, (2 * features, *shared), self.layer_norm)
        return of_rows, _layers(joint_key, (2 * shared[-1] + features, joint), self.layer_norm)[0]

    def __call__(self, parameters: tuple[tuple[Layer, ...], Layer], obs: Float[Array, " obs"]) -> Float[Array, " out"]:
        """Encode, pool, join."""
        shared, (weight, bias, *norm) = parameters
        features = shared[0][0].shape[0] // 2
        rows = obs.reshape(-1, features)
        own, others = rows[0], rows[1:]
        x = jnp.concatenate([jnp.broadcast_to(own, others.shape), others], axis=-1)
        for layer_weight, layer_bias, *row_norm in shared:
            x = jax.nn.relu(normalised(x @ layer_weight + layer_bias[None], row_norm))
        # Without layer norm the gradient is shared by rows that are equal, as it always was: networks keep their bits.
        largest = _largest(x) if self.layer_norm else jnp.max(x, axis=0)
        pooled = jnp.concatenate([largest, jnp.mean(x, axis=0), own])
        return jax.nn.relu(normalised(pooled @ weight + bias, norm))

    def _shape(self, spec: EnvSpec) -> tuple[int, int]:
        if spec.structure != "rows" or spec.obs_shape is None or len(spec.obs_shape) != 2 or spec.obs_shape[0] < 2:
            raise UsageError(
                f"the encoder 'set' needs an observation of at least two rows, and {spec.name} says "
                f"structure={spec.structure!r} and obs_shape={spec.obs_shape}: give its EnvSpec structure='rows' and "
                "obs_shape=(rows, features), or use encoder='mlp'"
            )
        return spec.obs_shape[0], spec.obs_shape[1]


def _largest(x: Float[Array, "rows features"]) -> Float[Array, " features"]:
    """The maximum over rows, with the gradient of the first row that has it.

    The gradient of `jnp.max` is divided by the number of rows that equal the maximum. XLA may compute a product and a
    sum, with which layer norm ends, twice with different roundings: then no row may equal it, and the gradient is
    0 / 0.
    """
    first = jax.nn.one_hot(jnp.argmax(x, axis=0), x.shape[0], axis=0, dtype=x.dtype)
    return jnp.sum(x * first, axis=0)


def _layers(key: jax.Array, sizes: tuple[int, ...], layer_norm: bool | None) -> tuple[Layer, ...]:
    keys = jax.random.split(key, len(sizes) - 1)
    drawn = zip(keys, pairwise(sizes), strict=True)
    return tuple(
        (glorot_uniform(each, (fan_in, fan_out)), jnp.zeros(fan_out), *init_norm(fan_out, layer_norm))
        for each, (fan_in, fan_out) in drawn
    )
