"""K members with an encoder each, and how the networks of an agent are chosen."""

from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._checks import shown
from sentinel_rl._mapping import each_of
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.nets.cnn import SMALLEST, CNNEncoder
from sentinel_rl.nets.encoders import DenseEncoder, Encoder, SetEncoder
from sentinel_rl.nets.initial import Init, glorot_uniform
from sentinel_rl.nets.mlp import init_networks
from sentinel_rl.nets.table import LARGEST, init_table

EncoderName = Literal["auto", "separate", "mlp", "set", "cnn", "table"]

# Sizes of the hidden layers where none are given.
HIDDEN = {"separate": (32, 32, 128), "mlp": (256, 256), "set": (128, 128, 256), "cnn": (256,), "table": ()}

# Those whose hidden dense layers can be normalised.
NORMALISABLE = ("mlp", "set", "cnn")

_OF_STRUCTURE = {"rows": "set", "image": "cnn", "states": "table"}


class EncodedNetworks(eqx.Module):
    """K members: an encoder's parameters and one linear layer for all actions, stacked on a leading axis."""

    parameters_of_encoder: Any
    weight: Float[Array, "K features outputs"]
    bias: Float[Array, "K outputs"]
    encoder: Any
    num_actions: int = eqx.field(static=True)

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, "K A n"]:
        """Return the outputs of every member and action for one observation."""
        outputs: Array = jax.vmap(self._member, in_axes=(0, 0, 0, None))(*self._arrays, obs)
        return outputs

    def batch(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K batch A n"]:
        """Return the outputs of every member and action for many observations."""
        many = jax.vmap(self._member, in_axes=(None, None, None, 0))
        outputs: Array = jax.vmap(many, in_axes=(0, 0, 0, None))(*self._arrays, obs)
        return outputs

    def per_member(self, obs: Float[Array, "K batch obs"]) -> Float[Array, "K batch A n"]:
        """Return each member's outputs on observations of its own."""
        many = jax.vmap(self._member, in_axes=(None, None, None, 0))
        outputs: Array = each_of(many)(*self._arrays, obs)
        return outputs

    def columns(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K A n batch"]:
        """Return the outputs of every member and action, observations along the last axis."""
        return jnp.moveaxis(self.batch(obs), 1, -1)

    def features(self, obs: Float[Array, " obs"]) -> Float[Array, "K features"]:
        """Return the features of one observation that every member's encoder gives."""
        features: Array = jax.vmap(self.encoder, in_axes=(0, None))(self.parameters_of_encoder, obs)
        return features

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return sum(leaf.size for leaf in jax.tree.leaves(self._arrays))

    @property
    def _arrays(self) -> tuple[Any, Array, Array]:
        return self.parameters_of_encoder, self.weight, self.bias

    def _member(self, parameters: Any, weight: Array, bias: Array, obs: Array) -> Float[Array, "A n"]:
        outputs: Array = self.encoder(parameters, obs) @ weight + bias
        return outputs.reshape(self.num_actions, -1)


def known_encoder(encoder: Any) -> str | Encoder:
    """Return the name of an encoder, or an encoder, unless it is neither.

    Raises:
        UsageError: with what is allowed.
    """
    if isinstance(encoder, str) and encoder not in get_args(EncoderName):
        raise UsageError(f"unknown encoder {shown(encoder)}: choose one of {', '.join(get_args(EncoderName))}")
    if not isinstance(encoder, (str, Encoder)):
        raise UsageError(f"an encoder is a name or an object with init and __call__, got {shown(encoder)}")
    return encoder


def resolve_encoder(
    spec: EnvSpec, encoder: Any, hidden: tuple[int, ...] | None, layer_norm: bool | None = None
) -> tuple[str | Encoder, tuple[int, ...]]:
    """The encoder that ``"auto"`` stands for, and the sizes of the hidden layers where none are given.

    Raises:
        UsageError: for an unknown encoder, or one without layers to normalise where `layer_norm` is chosen.
    """
    chosen = known_encoder(encoder)
    if chosen == "auto":
        chosen = "mlp" if spec.structure is None else _OF_STRUCTURE[spec.structure]
        if chosen == "cnn" and min((spec.obs_shape or (0,))[:2]) < SMALLEST:
            chosen = "mlp"
        if chosen == "table" and spec.obs_size * spec.num_actions > LARGEST:
            chosen = "mlp"
    usual = HIDDEN[chosen] if isinstance(chosen, str) else ()
    sizes = usual if hidden is None else tuple(hidden)
    if layer_norm:
        _require_normalisable(chosen, sizes)
    return chosen, sizes


def _require_normalisable(encoder: str | Encoder, sizes: tuple[int, ...]) -> None:
    """Raise `UsageError` unless an encoder has hidden layers that can be normalised."""
    if not isinstance(encoder, str):
        raise UsageError(
            f"layer_norm normalises the layers of the encoders {', '.join(NORMALISABLE)}, and the encoder is a "
            f"{type(encoder).__name__}, whose layers are its own: leave layer_norm out"
        )
    if encoder not in NORMALISABLE:
        raise UsageError(
            f"layer_norm needs one of the encoders {', '.join(NORMALISABLE)}, and the encoder is {encoder!r}: "
            "use encoder='mlp', or leave layer_norm out"
        )
    if not sizes:
        raise UsageError("layer_norm normalises hidden layers, and hidden=() has none: leave layer_norm out")


def encoder_for(
    spec: EnvSpec, encoder: Any, hidden: tuple[int, ...] | None = None, layer_norm: bool | None = None
) -> Encoder:
    """The encoder that a name stands for; one of a user's own is returned as it is.

    Raises:
        UsageError: for an unknown encoder, one that does not fit the observation, ``"separate"``, which is none, or
            one without layers to normalise where `layer_norm` is chosen.

    Example:
        >>> encoder_for(EnvSpec("Mine", 4, 2), "auto").hidden
        (256, 256)
    """
    chosen, sizes = resolve_encoder(spec, encoder, hidden, layer_norm)
    return _named_encoder(spec, chosen, sizes, layer_norm) if isinstance(chosen, str) else chosen


def _named_encoder(
    spec: EnvSpec,
    name: str,
    sizes: tuple[int, ...],
    layer_norm: bool | None,
    scale: tuple[float, ...] | None = None,
) -> Encoder:
    if name == "separate":
        raise UsageError("'separate' is a network per action, without an encoder that they share: use encoder='mlp'")
    if name == "table":
        raise UsageError("'table' has the outputs of every state, and no encoder before them: use encoder='mlp'")
    if name == "mlp":
        return DenseEncoder(sizes, layer_norm, scale)
    if name == "cnn":
        if len(sizes) != 1:
            raise UsageError(f"the encoder 'cnn' has one dense layer: give hidden=(256,), got hidden={sizes}")
        return CNNEncoder.for_spec(spec, sizes[0], layer_norm)
    if len(sizes) < 2:
        raise UsageError(f"the encoder 'set' needs at least two hidden sizes, got hidden={sizes}")
    return SetEncoder(sizes, layer_norm)


def stretching(spec: EnvSpec) -> tuple[float, ...] | None:
    """What to multiply an observation by so that numbers that stay within less than 1 may reach 1; None for nothing.

    MountainCar's speed stays within .07: beside a position of about 1, a network hardly sees it.

    Example:
        >>> [round(x, 2) for x in stretching(EnvSpec("Mine", 2, 3, obs_low=(-1.2, -0.07), obs_high=(0.6, 0.07)))]
        [1.0, 14.29]
    """
    if spec.obs_low is None or spec.obs_high is None:
        return None
    widest = [max(abs(low), abs(high)) for low, high in zip(spec.obs_low, spec.obs_high, strict=True)]
    scale = tuple(1 / width if 0 < width < 1 else 1.0 for width in widest)
    return None if all(factor == 1.0 for factor in scale) else scale


def make_networks(
    key: jax.Array,
    members: int,
    spec: EnvSpec,
    outputs: int,
    encoder: str | Encoder = "auto",
    hidden: tuple[int, ...] | None = None,
    stretch: bool = False,
    draw: Init = glorot_uniform,
    layer_norm: bool | None = None,
) -> Any:
    """Draw the networks of an ensemble.

    Args:
        key: of the weights.
        members: K.
        spec: of the environment; its structure decides where `encoder` is ``"auto"``: rows get ``"set"``, images
            ``"cnn"``, numbers of states ``"table"``, all else ``"mlp"``.
        outputs: n of every action.
        encoder: ``"separate"`` is one network per member and action (the paper), ``"mlp"`` one per member, ``"set"``
            one for rows that can be exchanged, ``"cnn"`` one for images, ``"table"`` no network but a number for
            every state; or an `Encoder`.
        hidden: sizes of the hidden layers; those of `HIDDEN` when None.
        stretch: multiply numbers that the environment bounds narrowly, see `stretching`; where `encoder` is
            ``"separate"`` or ``"mlp"``.
        draw: how weights are drawn, but those of an encoder, which draws its own.
        layer_norm: normalise the sums of the hidden dense layers before ReLU (`sentinel_rl.nets.layer_norm`), where
            `encoder` is ``"mlp"``, ``"set"`` or ``"cnn"``; None is False.

    Raises:
        UsageError: for an unknown encoder, one that does not fit the observation or returns no features, or one without
            layers to normalise where `layer_norm` is chosen.
    """
    encoder, sizes = resolve_encoder(spec, encoder, hidden, layer_norm)
    if isinstance(encoder, str):
        scale = stretching(spec) if stretch else None
        if encoder == "separate" or (encoder == "mlp" and not layer_norm):
            layout: Literal["separate", "shared"] = "separate" if encoder == "separate" else "shared"
            of = members, spec.obs_size, spec.num_actions, outputs, sizes
            return init_networks(key, *of, layout, draw, scale)
        if encoder == "table":
            if sizes:
                raise UsageError(f"the encoder 'table' has no hidden layers: leave out hidden={sizes}")
            return init_table(members, spec, outputs)
        encoder = _named_encoder(spec, encoder, sizes, layer_norm, scale)
    encoder_key, head_key = jax.random.split(key)
    try:
        parameters = jax.vmap(lambda each: encoder.init(spec, each))(jax.random.split(encoder_key, members))
        one = jax.tree.map(lambda leaf: leaf[0], parameters)
        features = jax.eval_shape(encoder, one, jax.ShapeDtypeStruct((spec.obs_size,), jnp.float32))
    except UsageError:
        raise
    except Exception as error:  # whatever a module of somebody else's provokes
        raise UsageError(
            f"{type(encoder).__name__} cannot encode {spec.name}: {type(error).__name__}: {error}"
        ) from error
    if getattr(features, "ndim", None) != 1:
        shape = getattr(features, "shape", type(features).__name__)
        raise UsageError(f"{type(encoder).__name__} must return a vector of features for one observation, got {shape}")
    weight = draw(head_key, (members, features.shape[0], spec.num_actions * outputs))
    bias = jnp.zeros((members, spec.num_actions * outputs))
    return EncodedNetworks(parameters, weight, bias, encoder, spec.num_actions)
