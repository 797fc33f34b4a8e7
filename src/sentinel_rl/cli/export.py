"""``sentinel export``: a policy as a file for programs without JAX."""

import importlib.util
from pathlib import Path

from sentinel_rl.api import Learner, Sentinel
from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import results
from sentinel_rl.errors import UsageError
from sentinel_rl.export import check_onnx, random_observations, to_onnx, to_stablehlo


def run(
    path: Path,
    onnx: Path | None,
    stablehlo: Path | None,
    seed_index: int,
    aleatory: str | None,
    epistemic: str | None,
    trust: bool = False,
) -> None:
    """Write the files that are asked for, compare the ONNX file with the agent, and print what came out."""
    if onnx is None and stablehlo is None:
        raise UsageError("nothing to write: give --onnx FILE, --stablehlo FILE, or both")
    agent = _with_risk(read_run(path, trust).policy(seed_index), aleatory, epistemic)
    console = results()
    if onnx is not None:
        to_onnx(agent, onnx)
        console.print(f"ONNX: {onnx}, {onnx.stat().st_size:,} bytes", markup=False, soft_wrap=True)
        if importlib.util.find_spec("onnxruntime") is None:
            told = "not compared with the agent: that needs the package onnxruntime"
        else:
            found = check_onnx(agent, onnx, random_observations(agent))
            told = (
                f"compared with the agent on {found.observations:,} random observations: {found.actions:,} equal "
                f"actions, numbers differ by at most {found.largest:.1e}"
            )
        console.print(told, markup=False, soft_wrap=True)
    if stablehlo is not None:
        to_stablehlo(agent, stablehlo)
        console.print(f"StableHLO: {stablehlo}, {stablehlo.stat().st_size:,} bytes", markup=False, soft_wrap=True)


def _with_risk(agent: Learner, aleatory: str | None, epistemic: str | None) -> Learner:
    """The agent, with other risk measures where some are given."""
    if aleatory is None and epistemic is None:
        return agent
    if not isinstance(agent, Sentinel):
        raise UsageError(f"--aleatory and --epistemic are for agents of kind 'sentinel', and this is {agent.kind!r}")
    return agent.with_risk(aleatory=aleatory, epistemic=epistemic)
