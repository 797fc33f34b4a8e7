"""A policy as a StableHLO program, which JAX and other compilers of OpenXLA run without this library."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export

from sentinel_rl._numerics import in_arrays
from sentinel_rl.export.decision import Trained, decision_of, needed
from sentinel_rl.storage.atomic import write_file

PLATFORMS = ("cpu", "cuda", "tpu")


def to_stablehlo(policy: Trained, path: str | Path) -> Path:
    """Write a policy as one program for CPU, CUDA and TPU: observations in, actions and the numbers behind them out.

    ``jax.export.deserialize(path.read_bytes()).call(observations)`` runs it, with a batch of any size and the outputs
    of `to_onnx` as a dictionary. Every agent can be exported, also with encoders and risk measures of your own.

    Args:
        policy: an agent, such as `sentinel_rl.Sentinel`, or what `sentinel_rl.training.load_policy` returns.
        path: of the file.

    Raises:
        UsageError: when the package flatbuffers is missing, or for a policy without a function of the observation.
    """
    decide = decision_of(policy)
    needed("flatbuffers", "a StableHLO file")  # jax writes the file with it, and does not install it
    (batch,) = export.symbolic_shape("batch")
    seen = jax.ShapeDtypeStruct((batch, *policy.handle.obs_shape), jnp.float32)
    with in_arrays(), _without_places():
        program = export.export(jax.jit(jax.vmap(decide)), platforms=PLATFORMS)(seen)
    return write_file(Path(path), bytes(program.serialize()))


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
    """Leave the paths of source files, which JAX notes beside every operation, out of the program."""
    name = "jax_traceback_in_locations_limit"
    before = jax.config.values[name]
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)
