"""A policy as an ONNX model, which runs without JAX and without Python."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from sentinel_rl._numerics import in_arrays
from sentinel_rl.export.decision import Trained, about, decision_of, needed
from sentinel_rl.export.graph import Graph, Tensor
from sentinel_rl.export.lowering import lower
from sentinel_rl.storage.atomic import write_file


def to_onnx(policy: Trained, path: str | Path) -> Path:
    """Write a policy as an ONNX model: observations in, actions and the numbers behind them out.

    The input ``observation`` has the shape of the environment's observation after a batch of any size, in float32. The
    outputs are ``action`` (int64, ``[batch]``) and, each ``[batch, actions]``, ``value``, ``mean``,
    ``aleatory_penalty`` and ``epistemic_penalty``; an agent without laws gives what its value comes from in place of
    the last three. Networks, FTRL weights and any risk measure are inside, also measures and encoders of your own as
    far as they are made of operations that ONNX has.

    Args:
        policy: an agent, such as `sentinel_rl.Sentinel`, or what `sentinel_rl.training.load_policy` returns.
        path: of the file.

    Raises:
        UsageError: when the package onnx is missing, or for a policy that cannot be written in ONNX.
    """
    onnx = needed("onnx", "an ONNX file")
    decide = decision_of(policy)
    graph = Graph(onnx)
    seen = graph.input("observation", tuple(policy.handle.obs_shape))
    with in_arrays():
        found = lower(graph, decide, seen)
    action = _tensor(graph, found.pop("action"))
    to_int64 = graph.one("Cast", action.name, to=onnx.TensorProto.INT64)
    outputs = {"action": Tensor(to_int64, (), np.dtype(np.int64))}
    outputs |= {name: _tensor(graph, found[name]) for name in sorted(found, key=lambda name: name != "value")}
    model = graph.model([seen], outputs, about(policy))
    return write_file(Path(path), model.SerializeToString())


def _tensor(graph: Graph, value: Any) -> Tensor:
    """A result that may be the same at every observation, with the axis of the batch."""
    if isinstance(value, Tensor):
        return value
    array = np.asarray(jnp.asarray(value))
    return Tensor(graph.repeated(array), array.shape, array.dtype)
