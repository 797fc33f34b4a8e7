"""The preset `learner` on the highway: values, tails and crashes of agents that differ in their risk, or in one option.

    python benchmarks/highway_learner.py risk --runs 50 --seed 2000
    python benchmarks/highway_learner.py ablation --runs 12 --seed 100
    python benchmarks/highway_learner.py show --out results/learner/risk.csv

``value`` is the mean discounted return of the frozen policy (the task's own gamma .99), ``tail`` its CVaR .25, and
``crashes`` those of the ego during training, exploration included. An accelerator trains all agents of a table in one
program. ``show`` prints the table of a file again.
"""

import argparse
import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sentinel_rl.study import Cell, Evaluation, Record, summarise
from sentinel_rl.study.batching import grouped
from sentinel_rl.study.run import run_cells
from sentinel_rl.training import Episodes, measure

ENV = "sentinel/highway-v1"
RISKS = {
    "neutral": ("cvar:1", "cvar:1"),
    "CVaR .25 across members only": ("cvar:0.25", "cvar:1"),
    "additive CVaR .25": ("cvar:1", "cvar:0.25"),
    "CVaR .5 o CVaR .5": ("cvar:0.5", "cvar:0.5"),
    "CVaR .25 o CVaR .25": ("cvar:0.25", "cvar:0.25"),
}
# The columns, and which side of each is bad.
SHOWN: Mapping[str, Literal["low", "high"]] = {
    "value": "low",
    "tail": "low",
    "terminations_per_1000": "high",
    "crashes": "high",
}
NEUTRAL = {"epistemic": "cvar:1", "aleatory": "cvar:1"}
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "the preset, neutral": {},
    "encoder mlp": {"encoder": "mlp"},
    "encoder separate, the paper's sizes": {"encoder": "separate"},
    "the time limit ends the return": {"time_limit": "terminal"},
    "an update every 8 steps": {"learn_every": 8},
    "gamma .99": {"gamma": 0.99},
    "every member draws its own": {"draws": "own"},
    "the paper's constants": {"preset": "paper", "learn_every": "triangular", "samples": 1_000, "target_every": 5,
                              "v_min": 0.0, "v_max": 40.0, "epsilon_end": 0.01},
}  # fmt: skip


def cells(table: str, steps: int, seeds: list[int], episodes: int, options: Mapping[str, Any]) -> list[Cell]:
    """The cells of a table."""
    chosen: dict[str, Mapping[str, Any]] = {}
    if table == "risk":
        chosen = {name: {"epistemic": outer, "aleatory": inner} for name, (outer, inner) in RISKS.items()}
    else:
        chosen = {name: {**NEUTRAL, **changes} for name, changes in ABLATIONS.items()}
    evaluation = Evaluation("frozen", episodes)
    common = {"preset": "learner", **options}
    return [
        Cell(
            "sentinel",
            ENV,
            steps,
            tuple(seeds),
            {**common, **own},
            evaluations=(evaluation,),
            label=name,
        )
        for name, own in chosen.items()
    ]


def rows(record: Record) -> list[dict[str, Any]]:
    """One row per run."""
    played = Episodes(*(record.arrays[f"eval/frozen/{field}"] for field in Episodes._fields))
    told = measure(played, ["return", "value", "tail", "terminations_per_1000"])
    columns = {**told, "crashes": record.arrays["terminations"]}
    return [
        {"agent": record.cell.label, "seed": seed, **{name: float(values[run]) for name, values in columns.items()}}
        for run, seed in enumerate(record.cell.seeds)
    ]


def main() -> None:
    """Train, print the table and write the single runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("risk", "ablation", "show"))
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--only", nargs="*", help="rows of the table, by their beginning")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="options of all agents")
    parser.add_argument("--out", type=Path, help="file for the single runs, CSV")
    given = parser.parse_args()
    if given.table == "show":
        with given.out.open(newline="") as file:
            show([{**row, **{name: float(row[name]) for name in SHOWN}} for row in csv.DictReader(file)])
        return
    options = {name: _value(text) for name, _, text in (pair.partition("=") for pair in given.set)}
    seeds = list(range(given.seed, given.seed + given.runs))
    wanted = cells(given.table, given.steps, seeds, given.episodes, options)
    wanted = [cell for cell in wanted if given.only is None or cell.label.startswith(tuple(given.only))]
    device = jax.devices()[0].device_kind
    print(f"{device}, {given.runs} runs of {given.steps} steps, seeds from {given.seed}, {options}")
    single: list[dict[str, Any]] = []
    began = time.perf_counter()
    for batch in grouped(wanted):
        records = run_cells(batch)
        seconds = records[0].about["seconds"].items()
        print(f"{len(batch)} cells: " + ", ".join(f"{name} {value:.0f} s" for name, value in seconds), flush=True)
        found = [row for record in records for row in rows(record)]
        show(found)
        single += found
    print(f"{time.perf_counter() - began:.0f} s in all")
    if given.out is not None:
        with given.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(single[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(single)


def show(single: list[dict[str, Any]]) -> None:
    """Print means with 95 % bootstrap intervals over runs."""
    for label in dict.fromkeys(row["agent"] for row in single):
        told = []
        for name, worse in SHOWN.items():
            one = summarise(np.array([row[name] for row in single if row["agent"] == label]), worse=worse)
            told.append(f"{name} {one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]")
        print(f"{label:<38} " + "  ".join(told), flush=True)


def _value(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


if __name__ == "__main__":
    main()
