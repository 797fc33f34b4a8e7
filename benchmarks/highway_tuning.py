"""The tuning of all agents on the highway: as many settings for each, on the same seeds, all below 1000.

    python benchmarks/highway_tuning.py run --out results/tuning/runs.csv
    python benchmarks/highway_tuning.py show --out results/tuning/runs.csv

A setting is the preset `learner`, which `sentinel reproduce --preset tuned` uses, by itself or with one change: eight
that all agents have, and five of the agent's own. ``value`` is the mean discounted return of the frozen policy (the
task's gamma .99), ``tail`` its CVaR .25, and ``crashes`` those of the ego during training. ``run`` writes the single
runs after every batch of settings and leaves out those that are in the file already: a run that was stopped goes on.
``show`` prints a table in Markdown, the setting of the highest mean value of every agent in bold.
"""

import argparse
import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sentinel_paper.output import csv_text
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study import Cell, Evaluation, Record, summarise
from sentinel_rl.study.batching import batches
from sentinel_rl.study.run import run_cells
from sentinel_rl.training import Episodes, measure

ENV = "sentinel/highway-v1"
# Results are reported on the seeds from this one on.
FIRST_REPORTED = 1_000
Row = Mapping[str, Any]
Options = Mapping[str, Any]

COMMON: Mapping[str, Options] = {
    "the preset": {},
    "learning_rate 5e-4": {"learning_rate": 5e-4},
    "learning_rate 2e-3": {"learning_rate": 2e-3},
    "learning_rate_end 1e-4": {"learning_rate_end": 1e-4},
    "adam_eps 1e-5": {"adam_eps": 1e-5},
    "gamma .97": {"gamma": 0.97},
    "gamma .99": {"gamma": 0.99},
    "epsilon_fraction .05": {"epsilon_fraction": 0.05},
    "target_every 250": {"target_every": 250},
}
_POSTERIOR: Mapping[str, Options] = {
    "noise .3": {"noise": 0.3},
    "noise 1": {"noise": 1.0},
    "initial_sd .1": {"initial_sd": 0.1},
    "use_epsilon false": {"use_epsilon": False},
}
OWN: Mapping[str, Mapping[str, Options]] = {
    "sentinel": {
        "mask_rate .33": {"mask_rate": 0.33},
        "mask_rate .5": {"mask_rate": 0.5},
        "mask_rate 1": {"mask_rate": 1.0},
        "lam 0": {"lam": 0.0},
        "lam 5": {"lam": 5.0},
    },
    "cdqn": {
        "target_every 1000": {"target_every": 1_000},
        "n_step 3": {"n_step": 3},
        "batch 128": {"samples": 128, "batch": 128},
        "max_grad_norm 10": {"max_grad_norm": 10.0},
        "bootstrap_action target": {"bootstrap_action": "target"},
    },
    "vdqn": {**_POSTERIOR, "acting episode": {"acting": "episode"}},
    "vdqn-cvar": {**_POSTERIOR, "bootstrap greedy": {"bootstrap": "greedy"}},
    "uadqn": {
        "beta 1": {"beta": 1.0},
        "aversion .5": {"aversion": 0.5},
        "anchor_noise .1": {"anchor_noise": 0.1},
        "gain 1": {"gain": 1.0},
        "use_epsilon false": {"use_epsilon": False},
    },
}
# The paper's composite agent: the one that its claims are about.
RISK: Options = {"epistemic": "cvar:0.25", "aleatory": "cvar:0.25"}
# The columns, which side of each is bad, and their digits.
SHOWN: Mapping[str, tuple[Literal["low", "high"], int]] = {
    "value": ("low", 2),
    "tail": ("low", 2),
    "terminations_per_1000": ("high", 1),
    "crashes": ("high", 1),
}


def settings_of(agent: str) -> dict[str, Options]:
    """All settings of an agent by their names."""
    return {**COMMON, **OWN[agent]}


def cells(agent: str, steps: int, seeds: Sequence[int], episodes: int) -> list[Cell]:
    """A cell for every setting of an agent."""
    common = {"preset": "learner", **(RISK if agent == "sentinel" else {})}
    return [
        Cell(
            agent,
            ENV,
            steps,
            tuple(seeds),
            {**common, **changes},
            evaluations=(Evaluation("frozen", episodes),),
            label=name,
        )
        for name, changes in settings_of(agent).items()
    ]


def rows(record: Record) -> list[Row]:
    """One row per run."""
    played = Episodes(*(record.arrays[f"eval/frozen/{field}"] for field in Episodes._fields))
    told = measure(played, ["value", "tail", "terminations_per_1000"])
    columns = {**told, "crashes": record.arrays["terminations"]}
    cell = record.cell
    return [
        {"agent": cell.agent_name, "setting": cell.label, "seed": seed, "steps": cell.steps}
        | {"episodes": cell.evaluations[0].episodes}
        | {name: float(values[run]) for name, values in columns.items()}
        for run, seed in enumerate(cell.seeds)
    ]


def read(path: Path) -> list[Row]:
    """The single runs of a file, none if there is no file."""
    if not path.exists():
        return []
    whole, numbers = ("seed", "steps", "episodes"), tuple(SHOWN)
    with path.open(newline="") as file:
        return [
            {**row, **{name: int(row[name]) for name in whole}, **{name: float(row[name]) for name in numbers}}
            for row in csv.DictReader(file)
        ]


def missing(wanted: Sequence[Cell], single: Sequence[Row]) -> list[Cell]:
    """The cells of which a run is not in the file."""
    names = ("agent", "setting", "seed", "steps", "episodes")
    there = {tuple(row[name] for name in names) for row in single}
    return [
        cell
        for cell in wanted
        if any(
            (cell.agent_name, cell.label, seed, cell.steps, cell.evaluations[0].episodes) not in there
            for seed in cell.seeds
        )
    ]


def run(wanted: Sequence[Cell], out: Path, at_once: int) -> None:
    """Train what is missing, and write the single runs after every batch."""
    single = read(out)
    left = missing(wanted, single)
    print(f"{len(wanted) - len(left)} of {len(wanted)} settings are in {out}", flush=True)
    began = time.perf_counter()
    parts = [group[i : i + at_once] for group in batches(left) for i in range(0, len(group), at_once)]
    for batch in parts:
        found = [row for record in run_cells(batch) for row in rows(record)]
        again = {(row["agent"], row["setting"], row["seed"]) for row in found}
        single = [row for row in single if (row["agent"], row["setting"], row["seed"]) not in again] + found
        out.parent.mkdir(parents=True, exist_ok=True)
        write_file(out, csv_text(single))
        names = ", ".join(cell.label for cell in batch)
        print(f"{time.perf_counter() - began:.0f} s: {batch[0].agent_name}: {names}", flush=True)


def chosen(own: Sequence[Row]) -> str:
    """The setting of the highest mean value, of the runs of one agent."""
    names = dict.fromkeys(row["setting"] for row in own)
    means = {name: np.nanmean([row["value"] for row in own if row["setting"] == name]) for name in names}
    return max(means, key=lambda name: means[name])


def show(single: Sequence[Row]) -> None:
    """Print means with 95 % bootstrap intervals over runs, a table for every agent."""
    for agent in dict.fromkeys(row["agent"] for row in single):
        own = [row for row in single if row["agent"] == agent]
        names, best = list(dict.fromkeys(row["setting"] for row in own)), chosen(own)
        print(f"\n{agent}, seeds {min(row['seed'] for row in own)} to {max(row['seed'] for row in own)}\n")
        print(f"| setting | runs | {' | '.join(SHOWN)} |\n| --- | ---: |{' ---: |' * len(SHOWN)}")
        for name in names:
            runs, cells_of_row = [row for row in own if row["setting"] == name], []
            for column, (worse, digits) in SHOWN.items():
                one = summarise(np.array([row[column] for row in runs]), worse=worse)
                cells_of_row.append(f"{one.mean:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]")
            print(f"| {f'**{name}**' if name == best else name} | {len(runs)} | {' | '.join(cells_of_row)} |")


def main() -> None:
    """Train, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--out", type=Path, default=Path("results/tuning/runs.csv"), help="file of the single runs")
    parser.add_argument("--agents", nargs="*", choices=OWN, default=list(OWN))
    parser.add_argument("--only", nargs="*", help="settings, by their names")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=7, help="settings that an accelerator trains in one program")
    given = parser.parse_args()
    if given.what == "show":
        show(read(given.out))
        return
    if given.seed + given.runs > FIRST_REPORTED:
        parser.error(f"seeds from {FIRST_REPORTED} on are for results: choose --seed and --runs below")
    seeds = range(given.seed, given.seed + given.runs)
    wanted = [cell for agent in given.agents for cell in cells(agent, given.steps, seeds, given.episodes)]
    wanted = [cell for cell in wanted if given.only is None or cell.label in given.only]
    print(f"{jax.devices()[0].device_kind}, {given.runs} runs of {given.steps} steps, seeds from {given.seed}")
    run(wanted, given.out, given.at_once)
    show(read(given.out))


if __name__ == "__main__":
    main()
