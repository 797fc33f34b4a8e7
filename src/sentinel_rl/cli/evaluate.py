"""``sentinel eval``: what the trained policies of a run earn."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table

from sentinel_rl.agents.agent import FixedPolicy
from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.api import Learner
from sentinel_rl.calibration.files import load_recalibration
from sentinel_rl.cli.options import parse_settings
from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.training.evaluation import evaluate
from sentinel_rl.training.metrics import TAIL, Episodes, find_metric, measure, pooled
from sentinel_rl.training.population import use_all_cores

# The columns of the tables; files have all metrics.
SHOWN = ("return", "value", "tail", "terminations_per_1000")

Rows = dict[str, dict[str, float]]


def run(
    path: Path,
    episodes: int,
    seed: int,
    on: str | None = None,
    gamma: float | None = None,
    trust: bool = False,
    recalibrate: Path | None = None,
) -> None:
    """Evaluate every seed's policy, print the table and write ``eval.json`` and ``eval.csv`` into the run's folder.

    On another environment than the one it was trained on, or with recalibrated laws, the files say so in their names.
    """
    use_all_cores()
    run = read_run(path, trust)
    played, agents = [], run.policies(on)
    if recalibrate is not None:
        agents = [agent.recalibrated(load_recalibration(recalibrate)) for agent in agents]
    with progress_bar("evaluating") as report:
        for done, agent in enumerate(agents):
            report(done, len(agents))
            played.append(_play(agent, episodes, seed, gamma))
        report(len(agents), len(agents))
    names = [*map(str, run.seeds), "all"]
    rows = dict(zip(names, map(_measured, [*played, pooled(played)]), strict=True))
    where = run.env if on is None else f"trained on {run.env}, played on {on}"
    results().print(_table(f"{where}, greedy policies", "seed", rows))
    if run.is_file:
        return
    stem = run.path / ("eval" if on is None else f"eval_{on.replace('/', '_').replace(':', '_')}")
    stem = stem if recalibrate is None else stem.with_name(f"{stem.name}_recalibrated")
    files = stem.with_suffix(".json"), stem.with_suffix(".csv")
    discount = agents[0].spec.gamma if gamma is None else gamma
    _write(*files, rows, {"env": on or run.env, "seed": seed, "gamma": discount, "alpha": TAIL})
    results().print(f"numbers: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def run_named(
    name: str, env: str, settings: Sequence[str], episodes: int, seed: int, gamma: float | None = None
) -> None:
    """Evaluate a policy that learns nothing, such as a reference driver, and print the table."""
    agent = make_agent(name, handle := resolve_env(env), **parse_settings(settings, name))
    if not isinstance(agent, FixedPolicy):
        raise UsageError(
            f"{name} must learn before it can be evaluated: train it with `sentinel train --agent {name} --env {env} "
            f"--out DIR`, then give that folder. Without training there are {', '.join(fixed_names())}"
        )
    use_all_cores()
    state = agent.init(handle.spec, jax.random.key(seed))
    results().print(_table(env, "policy", {name: _measured(evaluate(agent, state, handle, episodes, seed, gamma))}))


def _play(agent: Learner, episodes: int, seed: int, gamma: float | None = None) -> Episodes:
    return evaluate(agent.agent, agent.state, agent.handle, episodes, seed, gamma)


def _measured(played: Episodes) -> dict[str, float]:
    return {"episodes": np.size(played.reward), **{name: float(value) for name, value in measure(played).items()}}


def _write(json_file: Path, csv_file: Path, rows: Rows, about: Mapping[str, Any]) -> None:
    write_file(json_file, json.dumps({**about, "rows": rows}, indent=1) + "\n")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", *next(iter(rows.values()))])
    writer.writerows([name, *row.values()] for name, row in rows.items())
    write_file(csv_file, text.getvalue())


def _table(title: str, first: str, rows: Rows) -> Table:
    table = Table(title=title)
    for column in (first, "episodes", *(find_metric(name).title for name in SHOWN)):
        table.add_column(column, justify="right")
    for name, row in rows.items():
        if name == "all":
            table.add_section()
        table.add_row(name, str(row["episodes"]), *(f"{row[metric]:.2f}" for metric in SHOWN))
    return table
