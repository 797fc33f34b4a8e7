"""Does it help to begin neutral and to tighten? Alpha schedules against a constant alpha in worlds with exact answers.

    python benchmarks/schedules.py run --seeds 100 101 102
    python benchmarks/schedules.py show

Small agents (K = 4, networks of 64-64) learn in the Guarded Maze and on the windy cliff. The greedy actions in all
cells are a policy whose exact law of the return is computed: its mean and its CVaR have no sampling error. Every run is
a row of the file as soon as it is done, and rows that are there are not made again.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _measure import append_row, machine, rows_of

from sentinel_rl import train
from sentinel_rl.envs import best_cvar, best_mean, law_of, make_env
from sentinel_rl.heads import CategoricalHead
from sentinel_rl.returns import Support
from sentinel_rl.study import summarise

STEPS = 15_000
TAIL = 0.25
_LOW = {"sentinel/GuardedMaze-v0": -110.0, "sentinel/WindyCliff-v0": -40.0}
WORLDS = tuple(_LOW)
_TIGHT = {"aleatory": f"cvar:{TAIL}", "epistemic": f"cvar:{TAIL}"}
_ADDITIVE = {"aleatory": f"cvar:{TAIL}", "epistemic": "expectation"}
ARMS: Mapping[str, Mapping[str, Any]] = {
    "neutral": {"aleatory": "expectation", "epistemic": "expectation"},
    "additive": _ADDITIVE,
    "additive, from 1": {**_ADDITIVE, "alpha_start": 1.0},
    "composite": _TIGHT,
    "composite, from 1": {**_TIGHT, "alpha_start": 1.0},
}
KEYS = ("world", "arm", "seed", "steps")
FIGURES = ("mean", "cvar")
COLUMNS = (*KEYS, *FIGURES, "seconds")


def played(world: str, arm: str, seed: int, steps: int) -> tuple[float, float]:
    """The exact mean and CVaR of the return of the greedy policy after a training."""
    env = make_env(world)
    head = CategoricalHead(Support(_LOW[world], 20.0, 66))
    options = {"hidden": (64, 64), "head": head, "target_every": 100, "epsilon_fraction": 0.3, **ARMS[arm]}
    result = train("sentinel", env, steps, [seed], reports=False, **options)
    agent, state = result.agents[0], result.agent_states[0]
    places = env.tables.places / (np.array([len(env.rows), len(env.rows[0])]) - 1)
    greedy = jax.jit(jax.vmap(lambda obs: agent.greedy(state, obs, jax.random.key(0))))
    law = law_of(env, np.asarray(greedy(places.astype(np.float32))))
    return float(law.mean()), float(law.cvar(TAIL))


def run(given: argparse.Namespace) -> None:
    """Make the runs that the file does not have."""
    print(machine("jax"), flush=True)
    for world in given.worlds:
        for arm in given.arms:
            for seed in given.seeds:
                here = (world, arm, str(seed), str(given.steps))
                if any(tuple(row[column] for column in KEYS) == here for row in rows_of(given.out)):
                    continue
                began = time.perf_counter()
                mean, tail = played(world, arm, seed, given.steps)
                row = (*here, f"{mean:.3f}", f"{tail:.3f}", f"{time.perf_counter() - began:.0f}")
                print(*row, flush=True)
                append_row(given.out, COLUMNS, row)


def show(given: argparse.Namespace) -> None:
    """Print means over the seeds beside the exact optima."""
    print(f"| world | arm | runs | mean | CVaR {TAIL:g} |", "| --- | --- | ---: | ---: | ---: |", sep="\n")
    for world in given.worlds:
        env = make_env(world)
        for name, best in (("best mean, exact", best_mean(env)), (f"best CVaR {TAIL:g}, exact", best_cvar(env, TAIL))):
            print(f"| {world} | {name} | | {best.law.mean():.2f} | {best.law.cvar(TAIL):.2f} |")
        for arm in ARMS:
            rows = [row for row in rows_of(given.out) if (row["world"], row["arm"]) == (world, arm)]
            cells = []
            for column in FIGURES if rows else ():
                told = summarise(np.array([float(row[column]) for row in rows]))
                cells.append(f"{told.mean:.2f} [{told.low:.2f}, {told.high:.2f}]")
            if rows:
                print(f"| {world} | {arm} | {len(rows)} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--worlds", nargs="*", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[100, 101, 102])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=Path("results/carriers/schedules.csv"))
    given = parser.parse_args()
    (run if given.command == "run" else show)(given)


if __name__ == "__main__":
    main()
