"""An encoder of images: convolutions and one dense layer."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._checks import on_or_none
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.nets.encoders import Layer
from sentinel_rl.nets.initial import glorot_uniform
from sentinel_rl.nets.normalisation import init_norm, normalised

# From this side on an image is a picture; below it is a grid of codes, as MiniGrid's.
PICTURE = 32
# (size of the kernel, stride, channels) of the convolutions, for pictures (Mnih et al. 2015) and for grids.
PICTURES = ((8, 4, 32), (4, 2, 64), (3, 1, 64))
GRIDS = ((3, 1, 16), (3, 1, 32))
# The smallest side that the convolutions of a grid leave something of.
SMALLEST = 5
# What pictures are divided by; the codes of a grid are taken as they are.
BYTE = 255.0


class CNNEncoder(eqx.Module):
    """Features of an image of the shape (height, width, channels).

    A convolution is written as a product of patches with a matrix: mapped over members with kernels of their own, that
    is one batched product, where a convolution would be a grouped one, which CPUs compute slowly.

    Args:
        hidden: the size of the dense layer.
        shape: of the images.
        layer_norm: normalise the sums of the dense layer before ReLU, see `sentinel_rl.nets.layer_norm`; None is False.
    """

    hidden: int = eqx.field(static=True, default=256)
    shape: tuple[int, int, int] = eqx.field(static=True, default=(0, 0, 0))
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)

    @classmethod
    def for_spec(cls, spec: EnvSpec, hidden: int, layer_norm: bool | None = None) -> "CNNEncoder":
        """The encoder of an environment's images.

        Raises:
            UsageError: for an environment that shows none, or images that are too small.
        """
        if spec.structure != "image" or spec.obs_shape is None:
            raise UsageError(
                f"the encoder 'cnn' needs an image, and {spec.name} says structure={spec.structure!r} and "
                f"obs_shape={spec.obs_shape}: give its EnvSpec structure='image' and obs_shape=(height, width, "
                "channels), or use encoder='mlp'"
            )
        height, width, channels = spec.obs_shape
        if min(height, width) < SMALLEST:
            raise UsageError(f"the images of {spec.name}, {height} x {width}, are too small: use encoder='mlp'")
        return cls(hidden, (height, width, channels), layer_norm)

    def init(self, spec: EnvSpec, key: jax.Array) -> list[Layer]:
        """Draw the weights; biases and shifts are zero, gains one."""
        sizes, channels = [], self.shape[2]
        for kernel, _, out in self._layers():
            sizes.append((kernel * kernel * channels, out))
            channels = out
        height, width = self._sides()[-1]
        sizes.append((height * width * channels, self.hidden))
        keys = jax.random.split(key, len(sizes))
        *convolutions, (weight, bias) = [
            (glorot_uniform(each, size), jnp.zeros(size[1])) for each, size in zip(keys, sizes, strict=True)
        ]
        return [*convolutions, (weight, bias, *init_norm(self.hidden, self.layer_norm))]

    def __call__(self, parameters: list[Layer], obs: Float[Array, " obs"]) -> Float[Array, " hidden"]:
        """Convolve, flatten, join."""
        x = obs.reshape(self.shape)
        if min(self.shape[:2]) >= PICTURE:
            x = x / BYTE
        *convolutions, (weight, bias, *norm) = parameters
        for (kernel, stride, _), (kernel_weight, kernel_bias) in zip(self._layers(), convolutions, strict=True):
            x = jax.nn.relu(_patches(x, kernel, stride) @ kernel_weight + kernel_bias[None, None])
        return jax.nn.relu(normalised(x.reshape(-1) @ weight + bias, norm))

    def _layers(self) -> tuple[tuple[int, int, int], ...]:
        return PICTURES if min(self.shape[:2]) >= PICTURE else GRIDS

    def _sides(self) -> list[tuple[int, int]]:
        """Height and width after every convolution."""
        sides = [(self.shape[0], self.shape[1])]
        for kernel, stride, _ in self._layers():
            height, width = sides[-1]
            sides.append(((height - kernel) // stride + 1, (width - kernel) // stride + 1))
        return sides


def _patches(x: Float[Array, "h w c"], kernel: int, stride: int) -> Float[Array, "_ _ _"]:
    """What each place of a convolution sees, as one vector."""
    height, width = ((side - kernel) // stride + 1 for side in x.shape[:2])

    def shifted(i: int, j: int) -> Any:
        return x[i : i + stride * (height - 1) + 1 : stride, j : j + stride * (width - 1) + 1 : stride]

    return jnp.concatenate([shifted(i, j) for i in range(kernel) for j in range(kernel)], axis=-1)
