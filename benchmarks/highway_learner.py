"""The preset `learner` on the highway: values, tails and crashes of agents that differ in their risk, or in one option.

    python benchmarks/highway_learner.py risk --runs 50 --seed 2000
    python benchmarks/highway_learner.py ablation --runs 12 --seed 100
    python benchmarks/highway_learner.py options --runs 20 --seed 2300 --out results/learner/options.csv
    python benchmarks/highway_learner.py show --out results/learner/risk.csv
    python benchmarks/highway_learner.py picture --out results/learner/risk.csv

``value`` is the mean discounted return of the frozen policy (the task's own gamma .99), ``tail`` its CVaR .25, and
``crashes`` those of the ego during training, exploration included. An accelerator trains all agents of a table in one
program. ``show`` prints the table of a file again, and ``picture`` draws it as ``results/learner/frontier.svg``,
beside the agents of `results/table-highway` and the baselines of `results/table-highway-tuned`.
"""

import argparse
import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sentinel_rl.plotting import BLACK, BLUE, GREEN, GREY, RED, figure, save
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
# The same agents with the learner: of these the picture shows those that are not SENTINEL.
TUNED = Path("results/table-highway-tuned")
# Where the words of a baseline stand beside its point.
BASELINES = {"CDQN": (9, 5), "VDQN": (-14, 12), "UA-DQN": (-24, -26), "VDQN-CVaR": (10, 3)}
# Colour, words and place of the words of our agents in the picture; and the others that are named there.
OURS = {
    "neutral": (BLACK, "neutral", (-58, 8)),
    "CVaR .5 o CVaR .5": (BLUE, "composite CVaR .5", (9, 7)),
    "additive CVaR .25": (RED, "additive CVaR .25", (2, -22)),
    "CVaR .25 o CVaR .25": (BLUE, "composite CVaR .25", (9, -16)),
}
BESIDE: Mapping[str, Any] = {"xytext": (8, -4), "textcoords": "offset points", "fontsize": 11, "color": GREY}
NAMED = {"always SLOWER": BESIDE, "idle": BESIDE, "random": {**BESIDE, "xytext": (-54, -4)}}
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


def by_agent_and_metric(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of a table of the highway by agent and metric."""
    with (folder / "table-highway.csv").open(newline="") as file:
        return {(row["agent"], row["metric"]): row for row in csv.DictReader(file)}


def picture(single: list[dict[str, Any]]) -> None:
    """Draw value against crashes in training: ours, baselines, the paper's constants, what it prints, the ceiling."""
    constants, tuned = by_agent_and_metric(TABLE), by_agent_and_metric(TUNED)
    ceiling = float(tuned["model search", "value"]["mean"])
    with figure(12.5, 5) as drawing:
        everything, close = drawing.subplots(1, 2, width_ratios=(1.15, 1))
        for axes in (everything, close):
            axes.set_xscale("log")
            axes.axhline(ceiling, color=BLACK, linewidth=1, linestyle="--")
            axes.minorticks_off()
        close.text(550, ceiling + 0.03, "search with the exact model", ha="right", fontsize=11)
        for (agent, metric), row in constants.items():
            if metric != "value":
                continue
            crashes = constants[agent, "crashes"]
            everything.plot(float(crashes["mean"]), float(row["mean"]), "o", color=GREY, markersize=7)
            if agent in NAMED:
                everything.annotate(agent, (float(crashes["mean"]), float(row["mean"])), **NAMED[agent])
            if row["paper_mean"]:
                printed = float(crashes["paper_mean"]), float(row["paper_mean"])
                everything.plot(*printed, "o", color=GREY, markersize=7, mfc="none")
                if agent == "SENTINEL-4 composite":
                    everything.annotate("SENTINEL-4 composite, as printed", printed, **BESIDE)
        for label, (colour, words, place) in OURS.items():
            runs = [row for row in single if row["agent"] == label]
            x, y = (
                summarise(np.array([row[name] for row in runs]), worse=SHOWN[name]) for name in ("crashes", "value")
            )
            draw(close, label=words, place=place, x=(x.mean, x.low, x.high), y=(y.mean, y.low, y.high), colour=colour)
            everything.plot(x.mean, y.mean, "o", color=colour, markersize=8)
        for label, place in BASELINES.items():
            x, y = (
                tuple(float(tuned[label, metric][end]) for end in ("mean", "low", "high"))
                for metric in ("crashes", "value")
            )
            draw(close, label=label, place=place, x=x, y=y, colour=GREEN, marker="s")
            everything.plot(x[0], y[0], "s", color=GREEN, markersize=6)
        everything.plot([], [], "o", color=BLUE, markersize=8, label="SENTINEL-4, this library's learner")
        everything.plot([], [], "s", color=GREEN, markersize=6, label="baselines, the same learner")
        everything.plot([], [], "o", color=GREY, markersize=7, label="the paper's constants, fixed policies")
        everything.plot([], [], "o", color=GREY, markersize=7, mfc="none", label="as the paper prints its agents")
        everything.legend(loc="lower left", fontsize=11)
        everything.set(
            xlabel="crashes during training (100 000 decisions)", ylabel="value of the frozen policy", ylim=(9, 34)
        )
        close.set(xlabel="crashes during training", title="With the learner", xlim=(150, 570), ylim=(31, 33))
        everything.set_title("All agents")
        ticks = [20, 50, 100, 200, 500, 1000, 2000, 5000]
        everything.set_xticks(ticks, labels=list(map(str, ticks)))
        close.set_xticks([150, 200, 300, 400, 500], labels=["150", "200", "300", "400", "500"])
        for path in save(drawing, Path("results/learner/frontier")):
            print(path)


def draw(
    axes: Any,
    label: str,
    place: tuple[int, int],
    x: Sequence[float],
    y: Sequence[float],
    colour: str,
    marker: str = "o",
) -> None:
    """Draw a point with its intervals ``(mean, low, high)`` and its name."""
    ends = {f"{name}err": [[one[0] - one[1]], [one[2] - one[0]]] for name, one in (("x", x), ("y", y))}
    axes.errorbar(x[0], y[0], **ends, fmt=marker, color=colour, markersize=7)
    axes.annotate(label, (x[0], y[0]), place, textcoords="offset points", fontsize=12, color=colour)


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
