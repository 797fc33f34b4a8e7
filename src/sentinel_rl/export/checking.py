"""An exported file against the agent it comes from, on random observations."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from sentinel_rl.errors import IncompatibleError
from sentinel_rl.export.decision import Trained, decision_of, needed

# Two actions whose values differ by less than this share of the largest value are a tie that rounding may decide.
TOLERANCE = 1e-4


class Agreement(NamedTuple):
    """How an exported file compares with its agent.

    Args:
        observations: that both were given.
        actions: on how many both chose the same.
        largest: the largest difference of a number.
    """

    observations: int
    actions: int
    largest: float


def check_onnx(policy: Trained, path: str | Path, observations: Float[np.ndarray, "batch ..."]) -> Agreement:
    """Run an ONNX file with onnxruntime on observations, and compare all its outputs with the agent's.

    Raises:
        UsageError: when the package onnxruntime is missing.
        IncompatibleError: when a number differs by more than rounding explains, or another action is chosen where the
            two best ones are not level.
    """
    onnxruntime = needed("onnxruntime", "checking an ONNX file")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    seen = np.asarray(observations, np.float32)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, {"observation": seen}), strict=True))
    return _compared(policy, seen, found, str(path))


def random_observations(policy: Trained, count: int = 1000, seed: int = 0) -> Float[np.ndarray, "count ..."]:
    """Observations for a check: uniform between the bounds of the environment, normal where it has none."""
    spec, shape = policy.handle.spec, (count, policy.handle.spec.obs_size)
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal(shape)
    if spec.obs_low is not None and spec.obs_high is not None:
        low, high = np.asarray(spec.obs_low), np.asarray(spec.obs_high)
        bounded = np.isfinite(low) & np.isfinite(high) & (np.abs(low) < 1e6) & (np.abs(high) < 1e6)
        rows = np.where(bounded, draw.uniform(np.where(bounded, low, 0), np.where(bounded, high, 1), shape), rows)
    return rows.astype(np.float32).reshape(count, *policy.handle.obs_shape)


def _compared(policy: Trained, seen: np.ndarray, found: dict[str, Any], where: str) -> Agreement:
    expected = jax.tree.map(np.asarray, jax.jit(jax.vmap(decision_of(policy)))(seen))
    same = found["action"] == expected["action"]
    scale = max(1.0, float(np.max(np.abs(expected["value"]))))
    ordered = np.sort(expected["value"], axis=-1)
    level = ordered[:, -1] - ordered[:, -2] < TOLERANCE * scale if ordered.shape[-1] > 1 else np.ones(len(seen), bool)
    numbers = {name: value for name, value in expected.items() if name != "action"}
    largest = max(float(np.max(np.abs(found[name] - value))) for name, value in numbers.items())
    if not largest <= TOLERANCE * scale or not np.all(same | level):
        raise IncompatibleError(
            f"{where} does not compute what the agent does: {int(np.sum(~same))} of {len(seen)} actions and numbers by "
            f"up to {largest:.3g} differ. Do not use it, and report the agent's options with this message"
        )
    return Agreement(len(seen), int(np.sum(same)), largest)
