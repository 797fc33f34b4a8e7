"""What averaged networks are worth on the highway: the latest networks of a training beside their average.

    python benchmarks/averages.py --k 1 --runs 6
    python benchmarks/averages.py --k 4 --runs 30 --seed 2400 --risk cvar:0.5 --out results/learner/averages.csv

Averages change nothing that is learnt (`average_over` of an agent), so that every run is judged twice in the same fresh
episodes: with the networks that it learnt last, and with their mean over the latest copies of the target networks.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from _measure import append_row, machine, train

from sentinel_rl.study import Cell, Evaluation, summarise
from sentinel_rl.study.batching import plan_of
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.metrics import Episodes, measure
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.population_evaluation import evaluate_population

ENV = "sentinel/highway-v1"
# By the name in the library: the title of a column, and its digits.
METRICS = {"value": ("value", 2), "tail": ("tail (CVaR .25)", 2), "terminations_per_1000": ("crashes per 1 000", 1)}

# What a row of the file says before its metrics; `over` is 1 for the latest networks.
COLUMNS = ("k", "risk", "seed", "over")


def judged(training: Training, env: Any, episodes: int) -> dict[str, np.ndarray]:
    """The metrics of every run's frozen policy."""
    told = evaluate_population([training], env, Evaluation("frozen", episodes), env.spec.gamma)[0]
    return measure(Episodes(*(told[field] for field in Episodes._fields)), list(METRICS))


def main() -> None:
    """Train, judge twice, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument("--risk", default="cvar:1", help="aleatory and epistemic; cvar:1 is neutral")
    parser.add_argument("--over", type=int, default=10, help="copies of the target networks")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=700)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--out", type=Path, help="file that the single runs are added to, CSV")
    given = parser.parse_args()
    use_all_cores()
    print(machine("jax"))
    seeds = tuple(range(given.seed, given.seed + given.runs))
    options = {"k": given.k, "aleatory": given.risk, "epistemic": given.risk, "average_over": given.over}
    cell = Cell("sentinel", ENV, given.steps, seeds, options)
    env = cell.make_env()
    agent = cell.make_agent(env)
    training = Training([agent] * given.runs, env, plan_of([cell], [agent]), seeds)
    begin = time.perf_counter()
    train(training)
    print(f"K = {given.k}, {given.risk}, {given.runs} runs from seed {given.seed}: {time.perf_counter() - begin:.0f} s")
    averaged = judged(training, env, given.episodes)
    training.groups[:] = [
        eqx.tree_at(lambda group: group.runs.agent.average, group, group.runs.agent.online) for group in training.groups
    ]
    latest = judged(training, env, given.episodes)
    print("| networks |", " | ".join(title for title, _ in METRICS.values()), "|")
    print("| --- |", " | ".join("---:" for _ in METRICS), "|")
    for over, found in ((1, latest), (given.over, averaged)):
        name = "the latest" if over == 1 else f"mean over {over} copies"
        worse = {"terminations_per_1000": "high"}
        ones = {metric: summarise(found[metric], worse=worse.get(metric, "low")) for metric in METRICS}
        cells = [
            f"{one.mean:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"
            for one, (_, digits) in zip(ones.values(), METRICS.values(), strict=True)
        ]
        print(f"| {name} |", " | ".join(cells), "|")
        for run, seed in enumerate(seeds if given.out else ()):
            figures = [f"{found[metric][run]:.4f}" for metric in METRICS]
            append_row(given.out, (*COLUMNS, *METRICS), [str(given.k), given.risk, str(seed), str(over), *figures])
    better = np.mean(averaged["tail"] > latest["tail"])
    print(f"the average has the better tail in {better:.0%} of the runs")


if __name__ == "__main__":
    main()
