"""The preset `learner` on the highway: values, tails and crashes of agents that differ in their risk, or in one option.

    python benchmarks/highway_learner.py risk --runs 50 --seed 2000
    python benchmarks/highway_learner.py ablation --runs 12 --seed 100
    python benchmarks/highway_learner.py options --runs 20 --seed 2300 --out results/learner/options.csv
    python benchmarks/highway_learner.py show --out results/learner/risk.csv
    python benchmarks/highway_learner.py picture --out results/learner/risk.csv

``value`` is the mean discounted return of the frozen policy (the task's own gamma .99), ``tail`` its CVaR .25, and
``crashes`` those of the ego during training, exploration included. An accelerator trains all agents of a table in one
program. ``show`` prints the table of a file again, and ``picture`` draws it as ``results/learner/frontier.svg``,
beside the agents of `results/table-highway`.
"""

import argparse
import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sentinel_rl.plotting import BLACK, BLUE, GREY, RED, figure, save
from sentinel_rl.study import Cell, Evaluation, Record, Store, run_grid, summarise
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
TABLE = Path("results/table-highway")
# The value of a search with the exact model, 500 episodes: see `docs/highway.md`.
CEILING = 32.84
# Colour, words and place of the words of our agents in the picture; and the others that are named there.
OURS = {
    "neutral": (BLACK, "neutral", (10, -5)),
    "CVaR .5 o CVaR .5": (BLUE, "composite CVaR .5", (4, -19)),
    "additive CVaR .25": (RED, "additive CVaR .25", (-124, -3)),
    "CVaR .25 o CVaR .25": (BLUE, "composite CVaR .25", (-136, -16)),
}
NAMED: dict[str, Any] = {
    name: {"xytext": (8, -4), "textcoords": "offset points", "fontsize": 11, "color": GREY}
    for name in ("always SLOWER", "idle")
}
NAMED |= {"random": {**NAMED["idle"], "xytext": (-54, -4)}}
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
COMPOSITE = {"epistemic": "cvar:0.5", "aleatory": "cvar:0.5"}
# Options that are off by default, without risk and with it, and what they are compared with.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "the preset, neutral": NEUTRAL,
    "layer norm": {**NEUTRAL, "layer_norm": True},
    "a member leads, neutral": {**NEUTRAL, "explore": "member"},
    "CVaR .5 o CVaR .5": COMPOSITE,
    "layer norm, CVaR .5 o CVaR .5": {**COMPOSITE, "layer_norm": True},
    "a member leads, CVaR .5 o CVaR .5": {**COMPOSITE, "explore": "member"},
}


def cells(table: str, steps: int, seeds: list[int], episodes: int, options: Mapping[str, Any]) -> list[Cell]:
    """The cells of a table."""
    chosen: dict[str, Mapping[str, Any]] = {}
    if table == "risk":
        chosen = {name: {"epistemic": outer, "aleatory": inner} for name, (outer, inner) in RISKS.items()}
    elif table == "ablation":
        chosen = {name: {**NEUTRAL, **changes} for name, changes in ABLATIONS.items()}
    else:
        chosen = dict(OPTIONS)
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
    parser.add_argument("table", choices=("risk", "ablation", "options", "show", "picture"))
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--only", nargs="*", help="rows of the table, by their beginning")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="options of all agents")
    parser.add_argument("--records", type=Path, help="folder where what is done stays when it is stopped")
    parser.add_argument("--out", type=Path, help="file for the single runs, CSV")
    given = parser.parse_args()
    if given.table in ("show", "picture"):
        (show if given.table == "show" else picture)(read(given.out))
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
        records = run_cells(batch) if given.records is None else run_grid(batch, Store(given.records))
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


def read(path: Path) -> list[dict[str, Any]]:
    """The single runs of a file."""
    with path.open(newline="") as file:
        return [{**row, **{name: float(row[name]) for name in SHOWN}} for row in csv.DictReader(file)]


def picture(single: list[dict[str, Any]]) -> None:
    """Draw value against crashes in training: ours, the paper's constants, what the paper prints, and the ceiling."""
    with (TABLE / "table-highway.csv").open(newline="") as file:
        constants = {(row["agent"], row["metric"]): row for row in csv.DictReader(file)}
    with figure(9.6, 5.4) as drawing:
        axes = drawing.subplots()
        axes.set_xscale("log")
        axes.axhline(CEILING, color=BLACK, linewidth=1, linestyle="--")
        axes.text(5800, CEILING + 0.15, "search with the exact model", ha="right", fontsize=11)
        for (agent, metric), row in constants.items():
            if metric != "value":
                continue
            crashes = constants[agent, "crashes"]
            axes.plot(float(crashes["mean"]), float(row["mean"]), "o", color=GREY, markersize=7)
            if agent in NAMED:
                axes.annotate(agent, (float(crashes["mean"]), float(row["mean"])), **NAMED[agent])
            if row["paper_mean"]:
                printed = float(crashes["paper_mean"]), float(row["paper_mean"])
                axes.plot(*printed, "o", color=GREY, markersize=7, mfc="none")
                if agent == "SENTINEL-4 composite":
                    axes.annotate("SENTINEL-4 composite, as printed", printed, **NAMED["idle"])
        for label, (colour, words, place) in OURS.items():
            runs = [row for row in single if row["agent"] == label]
            x, y = (
                summarise(np.array([row[name] for row in runs]), worse=SHOWN[name]) for name in ("crashes", "value")
            )
            axes.errorbar(
                x.mean,
                y.mean,
                xerr=[[x.mean - x.low], [x.high - x.mean]],
                yerr=[[y.mean - y.low], [y.high - y.mean]],
                fmt="o",
                color=colour,
                markersize=9,
            )
            axes.annotate(words, (x.mean, y.mean), place, textcoords="offset points", fontsize=12, color=colour)
        axes.plot([], [], "o", color=BLUE, markersize=9, label="sentinel-rl's learner")
        axes.plot([], [], "o", color=GREY, markersize=7, label="the paper's constants, and fixed policies")
        axes.plot([], [], "o", color=GREY, markersize=7, mfc="none", label="as the paper prints its agents")
        axes.legend(loc="lower left")
        axes.set(
            xlabel="crashes during training (100 000 decisions)", ylabel="value of the frozen policy", ylim=(10, 34)
        )
        ticks = [20, 50, 100, 200, 500, 1000, 2000, 5000]
        axes.set_xticks(ticks, labels=list(map(str, ticks)))
        axes.minorticks_off()
        for path in save(drawing, Path("results/learner/frontier")):
            print(path)


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
