"""Heads: what the outputs of a network say of the return, and how they are learnt."""

from sentinel_rl.heads.categorical import CategoricalHead
from sentinel_rl.heads.head import Head
from sentinel_rl.heads.named import HEADS, HeadName, as_head, make_head
from sentinel_rl.heads.quantile import QuantileHead, quantile_huber_loss

__all__ = [
    "HEADS",
    "CategoricalHead",
    "Head",
    "HeadName",
    "QuantileHead",
    "as_head",
    "make_head",
    "quantile_huber_loss",
]
