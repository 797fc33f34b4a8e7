"""Networks: encoders of observations, ensembles of them, and how weights are drawn."""

from sentinel_rl.nets.cnn import CNNEncoder
from sentinel_rl.nets.encoders import DenseEncoder, Encoder, SetEncoder
from sentinel_rl.nets.ensemble import (
    NORMALISABLE,
    EncodedNetworks,
    EncoderName,
    encoder_for,
    known_encoder,
    make_networks,
    resolve_encoder,
    stretching,
)
from sentinel_rl.nets.initial import Init, fan_in_uniform, glorot_uniform, orthogonal
from sentinel_rl.nets.mlp import Layout, Networks, init_networks
from sentinel_rl.nets.normalisation import layer_norm
from sentinel_rl.nets.prior import PriorNetworks, add_prior, learnt_part, with_learnt
from sentinel_rl.nets.table import Table

__all__ = [
    "NORMALISABLE",
    "CNNEncoder",
    "DenseEncoder",
    "EncodedNetworks",
    "Encoder",
    "EncoderName",
    "Init",
    "Layout",
    "Networks",
    "PriorNetworks",
    "SetEncoder",
    "Table",
    "add_prior",
    "encoder_for",
    "fan_in_uniform",
    "glorot_uniform",
    "init_networks",
    "known_encoder",
    "layer_norm",
    "learnt_part",
    "make_networks",
    "orthogonal",
    "resolve_encoder",
    "stretching",
    "with_learnt",
]
