"""SENTINEL on CartPole-v0 with the paper's constants: environment steps a second, falls, and the cost of K.

    python benchmarks/cartpole_falls.py                  # 20 seeds of SENTINEL-4, 1e5 steps, on all local devices
    python benchmarks/cartpole_falls.py --k 1 2 4 8 --risk neutral --out results/cartpole/neutral.csv

The time is that of a whole training after compiling: a short training of the same shapes goes before it.
"""

import argparse
import csv
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _measure import last_100, train

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.risk import CVaR, Expectation
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.evaluation import evaluate
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.schedule import Plan

RISKS = {
    "neutral": {"aleatory": Expectation(), "epistemic": Expectation()},
    "additive": {"aleatory": CVaR(0.25), "epistemic": Expectation()},
    "composite": {"aleatory": CVaR(0.25), "epistemic": CVaR(0.25)},
}
OUTCOME = ("seed", "steps", "falls", "episodes", "last_100", "greedy")
FIELDS = ("risk", "k", "reading", *OUTCOME)
EVALUATION = {"episodes": 100, "seed": 1_000_000}  # frozen policy, epsilon 0


def train_all(agent: Any, plan: Plan, seeds: list[int]) -> tuple[list[dict[str, Any]], float]:
    """Train all seeds on CartPole-v0; returns what came out of each, and the seconds it took after compiling."""
    env = CartPole(200)
    next(iter(Training([agent] * len(seeds), env, plan, seeds).chunks()))
    training = Training([agent] * len(seeds), env, plan, seeds)
    jax.block_until_ready([group.runs for group in training.groups])
    begin = time.perf_counter()
    train(training)
    seconds = time.perf_counter() - begin
    rows: list[dict[str, Any]] = []
    for run, (seed, state) in enumerate(zip(seeds, training.agent_states(), strict=True)):
        greedy = float(np.mean(evaluate(agent, state, env, **EVALUATION).reward))
        table = training.history.table().of_run(run)
        falls, episodes = int(table.terminated.sum()), len(table.reward)
        values = (seed, plan.steps, falls, episodes, last_100(table.reward), greedy)
        rows.append(dict(zip(OUTCOME, values, strict=True)))
    return rows, seconds


def measure(k: int, risk: str, reading: str, seeds: list[int], steps: int) -> tuple[list[dict[str, Any]], float]:
    """Train all seeds; returns a row per seed and the seconds it took after compiling."""
    agent = make_sentinel(CartPole(200).spec, preset="paper", k=k, reading=reading, **RISKS[risk])
    plan = Plan(steps=steps, epsilon_fraction=0.10 if reading == "literal" else 0.25)
    rows, seconds = train_all(agent, plan, seeds)
    return [{"risk": risk, "k": k, "reading": reading, **row} for row in rows], seconds


def write_rows(path: Path, fields: Sequence[str], rows: list[dict[str, Any]]) -> None:
    """Write a row per seed as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Parse the options, measure, print, and write the rows if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, nargs="+", default=[4])
    parser.add_argument("--risk", nargs="+", choices=RISKS, default=["composite"])
    parser.add_argument("--reading", choices=("sound", "literal"), default="sound")
    parser.add_argument("--seeds", type=int, default=20, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--out", type=Path, help="write a row per seed to this CSV file")
    asked = parser.parse_args()
    use_all_cores()
    print(f"{jax.devices()[0].device_kind}, {len(jax.devices())} devices, {os.cpu_count()} cores, "
          f"Python {platform.python_version()}, jax {jax.__version__}")  # fmt: skip
    print(f"{asked.seeds} seeds x {asked.steps} steps each, reading {asked.reading}")
    seeds = list(range(asked.first, asked.first + asked.seeds))
    rows: list[dict[str, Any]] = []
    for risk in asked.risk:
        for k in asked.k:
            fresh, seconds = measure(k, risk, asked.reading, seeds, asked.steps)
            falls = np.array([row["falls"] for row in fresh], float)
            rows += fresh
            solved = sum(row["greedy"] >= 190 for row in fresh)
            print(f"{risk:>10}  K = {k}: {seconds:7.2f} s, {asked.seeds * asked.steps / seconds:10,.0f} steps/s, falls "
                  f"{falls.mean():7.1f} +- {falls.std(ddof=1) / len(falls) ** 0.5:.1f} (SEM), "
                  f"greedy return >= 190 in {solved} of {len(fresh)}", flush=True)  # fmt: skip
    if asked.out is not None:
        write_rows(asked.out, FIELDS, rows)


if __name__ == "__main__":
    main()
