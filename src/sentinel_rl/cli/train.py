"""``sentinel train``: a run per seed, saved, resumed and stopped on request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sentinel_rl.cli.environments import EnvRequest
from sentinel_rl.console import note, results
from sentinel_rl.errors import PartialFailure
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.result import Result
from sentinel_rl.training.sinks import CSVSink, Sink, TensorBoardSink
from sentinel_rl.training.trainer import train
from sentinel_rl.training.wandb_sink import WandbSink


def run(
    agent: str,
    env: EnvRequest,
    steps: int,
    seeds: Sequence[int],
    options: dict[str, Any],
    out: Path,
    overwrite: bool = False,
    quiet: bool = False,
    tensorboard: Path | None = None,
    csv: Path | None = None,
    wandb: str | None = None,
    **arguments: Any,
) -> Result:
    """Train, resuming what is there, and print the summary; other arguments are those of `sentinel_rl.train`.

    Raises:
        Stopped: on Ctrl-C or SIGTERM, after saving.
        PartialFailure: when numbers were not finite in some of the runs; the others are finished.
    """
    use_all_cores()
    handle = env.make()
    if env.wrappers and arguments.get("evaluate_every") is not None:
        arguments["evaluation_env"] = env.make()  # one of its own: the other is in the middle of an episode
    if not handle.is_jax and not quiet:
        note("this environment is stepped from Python: seeds are trained one by one, and saved at the end of episodes")
    sinks: list[Sink] = [] if tensorboard is None else [TensorBoardSink(tensorboard, agent)]
    sinks += [] if csv is None else [CSVSink(csv)]
    sinks += [] if wandb is None else [WandbSink(wandb, out, agent)]
    result = train(
        agent,
        handle,
        steps,
        seeds,
        folder=out,
        overwrite=overwrite,
        sinks=sinks,
        progress=not quiet,
        **arguments,
        **options,
    )
    if not quiet:
        results().print(_table(agent, env.name, steps, result.lines()))
        results().print(f"run: {out}\nnext: sentinel eval {out}", markup=False, soft_wrap=True)
    if result.failures:
        told = "\n".join(result.failures.values())
        raise PartialFailure(
            f"{len(result.failures)} of {len(result.seeds)} runs failed, the others are finished:\n{told}"
        )
    return result


def _table(agent: str, env: str, steps: int, lines: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{agent} on {env}, {steps:,} steps")
    for column in ("seed", "episodes", "terminations", "mean return of the last 100"):
        table.add_column(column, justify="right")
    for line in lines:
        recent = "none ended" if line["return"] is None else f"{line['return']:.1f}"
        recent = "failed" if "failed" in line else recent
        table.add_row(str(line["seed"]), str(line["episodes"]), str(line["terminations"]), recent)
    whole = [line for line in lines if line["return"] is not None and "failed" not in line]
    if len(whole) > 1:
        table.add_section()
        falls, recent = (np.mean([line[name] for line in whole]) for name in ("terminations", "return"))
        table.add_row(f"mean of {len(whole)}", "", f"{falls:.1f}", f"{recent:.1f}")
    return table
