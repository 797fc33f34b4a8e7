"""Policies for programs without JAX: ONNX and StableHLO files, and their check against the agent."""

from sentinel_rl.export.checking import Agreement, check_onnx, random_observations
from sentinel_rl.export.decision import Trained, decision_of
from sentinel_rl.export.onnx_file import to_onnx
from sentinel_rl.export.stablehlo import to_stablehlo

__all__ = [
    "Agreement",
    "Trained",
    "check_onnx",
    "decision_of",
    "random_observations",
    "to_onnx",
    "to_stablehlo",
]
