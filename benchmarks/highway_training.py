"""SENTINEL-4 on the highway: crashes over training, beside policies that learn nothing.

    python benchmarks/highway_training.py --out results/highway/training.csv      # 20 seeds of 1e5 steps each

The paper's constants, except that epsilon ends at 0.05 instead of 0.01 (``sentinel reproduce table-highway`` has all of
them, and every agent). The three SENTINELs differ in numbers only (CVaR of level 1 is the mean), so that their runs are
one compiled program.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import _measure
import numpy as np
from cartpole_falls import write_rows

from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.highway import Highway
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.schedule import make_plan

ENV = Highway.preset("highway-v1")
PLAN = {"learn_every": "triangular", "epsilon_fraction": 0.1, "epsilon_end": 0.05}
PAPER = {"preset": "paper", "k": 4, "samples": 1_000, "target_every": 5, "v_min": 0.0, "v_max": 40.0}
POLICIES = {"random": {}, "idle": {"action": 1}}
LEVELS = {"composite": (0.25, 0.25), "additive": (0.25, 1.0), "risk-neutral": (1.0, 1.0)}  # aleatory, epistemic
FIELDS = ("agent", "seed", "steps", "crashes", "episodes", "last_100")


def train(named: dict[str, Any], seeds: list[int], steps: int) -> list[dict[str, Any]]:
    """Train agents of one kind side by side, every seed of each; prints a line and returns a row per run."""
    names = [name for name in named for _ in seeds]
    plan = make_plan(steps, named[names[0]].plan_defaults(steps), PLAN)
    begin = time.perf_counter()
    training = Training([named[name] for name in names], ENV, plan, seeds * len(named))
    _measure.train(training)
    seconds = time.perf_counter() - begin
    rows: list[dict[str, Any]] = []
    for run, (name, seed) in enumerate(zip(names, training.seeds, strict=True)):
        table = training.history.table().of_run(run)
        crashes, episodes = int(table.terminated.sum()), len(table.reward)
        values = (name, seed, steps, crashes, episodes, _measure.last_100(table.reward))
        rows.append(dict(zip(FIELDS, values, strict=True)))
    for name in named:
        crashes = np.array([row["crashes"] for row in rows if row["agent"] == name], float)
        mean, sem = crashes.mean(), crashes.std(ddof=1) / len(crashes) ** 0.5
        cost = f"{len(rows)} runs in {seconds:.1f} s with compiling, {len(training.failures)} failed"
        print(f"{name:>14}: {mean:7.1f} +- {sem:.1f} crashes (SEM), {cost}", flush=True)
    return rows


def main() -> None:
    """Parse the options, train, print, and write the rows if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--out", type=Path, help="write a row per run to this CSV file")
    asked = parser.parse_args()
    use_all_cores()
    print(_measure.machine("jax"))
    seeds = list(range(asked.first, asked.first + asked.seeds))
    rows = []
    for name, options in POLICIES.items():
        rows += train({name: make_agent("random", ENV.spec, **options)}, seeds, asked.steps)
    learners = {
        name: make_agent("sentinel", ENV.spec, aleatory=f"cvar:{within}", epistemic=f"cvar:{across}", **PAPER)
        for name, (within, across) in LEVELS.items()
    }
    rows += train(learners, seeds, asked.steps)
    if asked.out is not None:
        write_rows(asked.out, FIELDS, rows)


if __name__ == "__main__":
    main()
