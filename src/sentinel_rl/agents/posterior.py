"""A mean-field Gaussian posterior over the weights and biases of a network, or of what follows an encoder."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.nets import EncodedNetworks, Encoder, Networks, fan_in_uniform, init_networks, make_networks


class Posterior(eqx.Module):
    """Independent ``theta_i ~ N(mean_i, sd_i^2)`` with ``sd_i = softplus(rho_i)``, for one network ``|S| -> |A|``."""

    mean: Networks
    rho: Networks

    @property
    def sd(self) -> Networks:
        """The standard deviations."""
        sd: Networks = jax.tree.map(jax.nn.softplus, self.rho)
        return sd

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return self.mean.parameters + self.rho.parameters

    def log_sd(self) -> Float[Array, ""]:
        """The sum of the logarithms of the standard deviations: the entropy but for a constant."""
        return sum((jnp.sum(jnp.log(leaf)) for leaf in jax.tree.leaves(self.sd)), jnp.zeros(()))

    def draw(self, key: jax.Array) -> Networks:
        """Draw one network ``mean + sd * eps``."""
        means, form = jax.tree.flatten(self.mean)
        noise = jax.random.normal(key, (self.mean.parameters,))
        places = list(itertools.accumulate(leaf.size for leaf in means))[:-1]
        leaves = zip(means, jax.tree.leaves(self.sd), jnp.split(noise, places), strict=True)
        drawn: Networks = jax.tree.unflatten(form, [mean + sd * eps.reshape(mean.shape) for mean, sd, eps in leaves])
        return drawn

    @property
    def units(self) -> int:
        """The number of weighted sums: hidden units and outputs."""
        return sum(bias.shape[-1] for bias in self.mean.biases)

    def noise(self, key: jax.Array, draws: int) -> Float[Array, "draws units"]:
        """The standard normals of so many draws of `outputs`, one per unit of the network."""
        return standard_normals(key, (draws, self.units))

    def outputs(self, obs: Float[Array, " obs"], noise: Float[Array, "draws units"]) -> Float[Array, "draws A"]:
        """The values of all actions at one observation under independent draws of the network.

        At a single input the weighted sums of a layer are, given the layer before, independent Gaussians of known mean
        and variance. Drawing those has exactly the joint law over actions of drawing every weight, and needs one number
        per unit instead of one per weight (local reparametrisation, Kingma et al. 2015).
        """
        x, sd = obs[None], self.sd
        layers = zip(*((leaf[0, 0] for leaf in part) for part in _parts(self.mean, sd)), strict=True)
        for number, (weight, bias, weight_sd, bias_sd) in enumerate(layers):
            x = x if number == 0 else jax.nn.relu(x)
            eps, noise = jnp.split(noise, [bias.size], axis=1)
            spread = jnp.sqrt(x**2 @ weight_sd**2 + bias_sd[None] ** 2)
            x = x @ weight + bias[None] + spread * eps
        return x


class EncodedPosterior(eqx.Module):
    """An encoder, and a `Posterior` over the linear layer that makes the values of its features.

    The encoder is deterministic: its weights are learnt by the same loss, as a point. What the posterior is unsure of
    is how features add up to values, not what the features are (a Bayesian last layer).

    Args:
        parameters_of_encoder: of the one network, with a leading axis of 1.
        last: the posterior over the last layer.
        encoder: whose parameters they are.
    """

    parameters_of_encoder: Any
    last: Posterior
    encoder: Any

    @property
    def sd(self) -> Networks:
        """The standard deviations of the last layer."""
        return self.last.sd

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        encoder = sum(int(leaf.size) for leaf in jax.tree.leaves(self.parameters_of_encoder))
        return encoder + self.last.parameters

    @property
    def units(self) -> int:
        """The number of weighted sums that are drawn: the outputs."""
        return self.last.units

    def log_sd(self) -> Float[Array, ""]:
        """The sum of the logarithms of the standard deviations: the entropy but for a constant."""
        return self.last.log_sd()

    def draw(self, key: jax.Array) -> EncodedNetworks:
        """Draw one network: the encoder as it is, and a last layer."""
        drawn = self.last.draw(key)
        weight, bias = drawn.weights[0][:, 0], drawn.biases[0][:, 0]
        return EncodedNetworks(self.parameters_of_encoder, weight, bias, self.encoder, drawn.num_actions)

    def noise(self, key: jax.Array, draws: int) -> Float[Array, "draws units"]:
        """The standard normals of so many draws of `outputs`."""
        return self.last.noise(key, draws)

    def outputs(self, obs: Float[Array, " obs"], noise: Float[Array, "draws units"]) -> Float[Array, "draws A"]:
        """The values of all actions at one observation under independent draws of the last layer."""
        own = jax.tree.map(lambda leaf: leaf[0], self.parameters_of_encoder)
        return self.last.outputs(self.encoder(own, obs), noise)


def standard_normals(key: jax.Array, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Draw from N(0, 1) like `jax.random.normal`, other numbers at two thirds of the price.

    Where thousands of numbers are drawn at every step their hashes are most of the work. A hash has several words, of
    which `jax.random.normal` uses one; those of split keys are all used here. As there, a word becomes a uniform number
    in (-1, 1), and that a normal one, ``sqrt(2) erfinv(u)``.
    """
    size = math.prod(shape)
    words_each = jax.random.key_data(key).size
    words = jax.random.key_data(jax.random.split(key, -(-size // words_each))).reshape(-1)[:size].reshape(shape)
    in_one_to_two = jax.lax.bitcast_convert_type((words >> 9) | jnp.uint32(0x3F800000), jnp.float32)
    low = np.nextafter(np.float32(-1), np.float32(0))
    uniform = jnp.maximum(low, (in_one_to_two - 1) * (1 - low) + low)
    normal: Array = jax.lax.erf_inv(uniform) * np.float32(np.sqrt(2))
    return normal


def _parts(mean: Networks, sd: Networks) -> tuple[tuple[Array, ...], ...]:
    return mean.weights, mean.biases, sd.weights, sd.biases


def init_posterior(
    key: jax.Array, obs_size: int, num_actions: int, hidden: tuple[int, ...], initial_sd: float | Array
) -> Posterior:
    """Draw means with variance ``1 / fan_in`` and zero biases; all standard deviations are `initial_sd`."""
    mean = init_networks(key, 1, obs_size, num_actions, 1, hidden, "shared", fan_in_uniform)
    rho = jnp.log(jnp.expm1(jnp.asarray(initial_sd, jnp.float32)))
    return Posterior(mean, jax.tree.map(lambda leaf: jnp.full_like(leaf, rho), mean))


def init_encoded_posterior(
    key: jax.Array, spec: EnvSpec, encoder: Encoder, initial_sd: float | Array
) -> EncodedPosterior:
    """Draw the encoder as other agents do, and the last layer as `init_posterior`."""
    encoder_key, last_key = jax.random.split(key)
    drawn = make_networks(encoder_key, 1, spec, 1, encoder)
    last = init_posterior(last_key, drawn.weight.shape[1], spec.num_actions, (), initial_sd)
    return EncodedPosterior(drawn.parameters_of_encoder, last, drawn.encoder)
