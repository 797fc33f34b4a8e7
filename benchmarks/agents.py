"""Every agent on CartPole-v0 with the paper's constants: environment steps a second beside CDQN's, and falls.

    python benchmarks/agents.py                                                # speed: 20 seeds of 10 000 steps
    python benchmarks/agents.py --steps 100000 --out results/cartpole/agents.csv   # falls: 20 seeds of 1e5 steps

All agents of one run see the same seeds and schedule. The time is that of a whole training after compiling, with all
seeds at once: vmapped on an accelerator, one per core on a CPU. With --rounds the agents take turns, and the least time
of each counts: a slow moment of the machine hits all of them. `greedy` is the return of the frozen policy.
"""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

import jax
import numpy as np
from cartpole_falls import OUTCOME, train_all, write_rows

from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.schedule import Plan

# CDQN goes first: the others are compared with it.
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "cdqn": ("cdqn", {"preset": "paper"}),
    "sentinel-4": ("sentinel", {"preset": "paper", "k": 4}),
    "sentinel-4-neutral": (
        "sentinel",
        {"preset": "paper", "k": 4, "aleatory": "expectation", "epistemic": "expectation"},
    ),
    "sentinel-4-member": ("sentinel", {"preset": "paper", "k": 4, "bootstrap_action": "member"}),
    "vdqn": ("vdqn", {}),
    "vdqn-cvar": ("vdqn-cvar", {}),
    "vdqn-2e-3": ("vdqn", {"learning_rate": 2e-3, "use_epsilon": True}),
    "vdqn-cvar-2e-3": ("vdqn-cvar", {"learning_rate": 2e-3, "use_epsilon": True}),
    "uadqn": ("uadqn", {}),
    "uadqn-2e-3": ("uadqn", {"learning_rate": 2e-3, "use_epsilon": True}),
    "random": ("random", {}),
    "idle": ("random", {"action": 0}),
}


def main() -> None:
    """Parse the options, train one agent after the other, print, and write the rows if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--seeds", type=int, default=20, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="how often each is trained")
    parser.add_argument("--epsilon", action="store_true", help="epsilon-greedy also for agents that need none")
    parser.add_argument("--out", type=Path, help="write a row per agent and seed to this CSV file")
    asked = parser.parse_args()
    use_all_cores()
    print(f"{jax.devices()[0].device_kind}, {len(jax.devices())} devices, {os.cpu_count()} cores, "
          f"Python {platform.python_version()}, jax {jax.__version__}")  # fmt: skip
    print(f"{asked.seeds} seeds x {asked.steps} steps each")
    seeds, plan = list(range(asked.first, asked.first + asked.seeds)), Plan(steps=asked.steps)
    rows: dict[str, list[dict[str, Any]]] = {}
    best = dict.fromkeys(asked.agents, float("inf"))
    for _ in range(asked.rounds):
        for name in asked.agents:
            kind, options = AGENTS[name]
            if asked.epsilon and kind in ("vdqn", "vdqn-cvar", "uadqn"):
                options = {**options, "use_epsilon": True}
            rows[name], seconds = train_all(make_agent(kind, CartPole(200).spec, **options), plan, seeds)
            best[name] = min(best[name], seconds)
    base = asked.agents[0]
    for name, seconds in best.items():
        falls = np.array([row["falls"] for row in rows[name]], float)
        error = falls.std(ddof=1) / len(falls) ** 0.5 if len(falls) > 1 else np.nan
        print(f"{name:>18}: {seconds:7.2f} s, {len(seeds) * plan.steps / seconds:10,.0f} steps/s, "
              f"{seconds / best[base]:5.2f} x {base}, falls {falls.mean():7.1f} +- {error:.1f} (SEM), "
              f"greedy {np.mean([row['greedy'] for row in rows[name]]):5.1f}", flush=True)  # fmt: skip
    if asked.out is not None:
        write_rows(asked.out, ("agent", *OUTCOME), [{"agent": name, **row} for name in rows for row in rows[name]])


if __name__ == "__main__":
    main()
