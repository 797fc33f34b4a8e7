"""Reference drivers of the highway: the table that judges them, and the fit of the rule's seven numbers.

    python benchmarks/highway_drivers.py judge
    python benchmarks/highway_drivers.py judge --only highway-search --episodes 200
    python benchmarks/highway_drivers.py fit --rounds 10

``value`` is the mean discounted return (the task's own gamma .99), ``tail`` its CVaR .25. The 95 % intervals
are over episodes, bootstrapped, and exact for the share of crashes. The fit uses the seeds from 100 on, the table seed
2 000 000.
"""

import argparse
import dataclasses
import time
from typing import Any

import jax
import numpy as np
from _measure import machine
from scipy.stats import binomtest

from sentinel_rl.agents import make_agent
from sentinel_rl.agents.highway import HighwayRule
from sentinel_rl.envs import make_env
from sentinel_rl.training import Episodes, evaluate, measure

ENV = "sentinel/highway-v1"
DRIVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "highway-search": ("highway-search", {}),
    "highway-rule": ("highway-rule", {}),
    "always SLOWER": ("constant", {"action": "SLOWER"}),
    "always IDLE": ("constant", {"action": "IDLE"}),
    "random": ("random", {}),
}
NUMBERS = ("horizon", "sight", "right", "ahead", "margin", "near", "free")
FIT_SEED, JUDGE_SEED = 100, 2_000_000
RESAMPLES = 2_000

METRICS = ("value", "tail", "return")


def judge(episodes: int, seed: int, only: str | None) -> None:
    """Print the table of the drivers."""
    print(f"{machine('jax')}, {episodes} episodes, seed {seed}")
    for label, (name, options) in DRIVERS.items():
        if only is not None and label != only:
            continue
        began = time.perf_counter()
        played = play(make_agent(name, ENV, **options), episodes, seed)
        seconds = time.perf_counter() - began
        told = [f"{metric} {interval(played, metric)}" for metric in METRICS]
        print(f"{label:<16} " + "  ".join(told) + f"  crashes {crashes(played)}  {seconds:.0f} s", flush=True)


def play(agent: Any, episodes: int, seed: int) -> Episodes:
    """Episodes of a driver, compiling included."""
    world = make_env(ENV)
    return evaluate(agent, agent.init(world.spec, jax.random.key(0)), world, episodes, seed)


def interval(played: Episodes, metric: str) -> str:
    """A metric with its bootstrap interval."""
    draws = np.random.default_rng(0).integers(0, len(played.reward), (RESAMPLES, len(played.reward)))
    resampled = Episodes(*(field[draws] for field in played))
    low, high = np.quantile(measure(resampled, [metric])[metric], (0.025, 0.975))
    return f"{measure(played, [metric])[metric]:.2f} [{low:.2f}, {high:.2f}]"


def crashes(played: Episodes) -> str:
    """The share of episodes with a crash, with its exact interval: no crash in 500 episodes is not never."""
    found = binomtest(int(np.sum(played.terminated)), len(played.terminated))
    low, high = found.proportion_ci()
    return f"{found.statistic:.1%} [{low:.1%}, {high:.1%}]"


def fit(rounds: int, candidates: int, episodes: int) -> None:
    """Search for the rule's numbers by the cross-entropy method, and print the rule of every round.

    A round draws rules whose numbers are log-normal around the latest ones, plays the same episodes with all of them,
    and goes on from the mean and the spread of the best quarter by value + tail.
    """
    rng, rule = np.random.default_rng(0), HighwayRule()
    centre, spread = np.log([getattr(rule, name) for name in NUMBERS]), np.full(len(NUMBERS), 0.3)
    for number in range(rounds):
        drawn = centre + spread * rng.standard_normal((candidates, len(NUMBERS)))
        scores = [score(play(with_numbers(rule, np.exp(row)), episodes, FIT_SEED + number)) for row in drawn]
        best = drawn[np.argsort(scores)[-candidates // 4 :]]
        centre, spread = best.mean(axis=0), best.std(axis=0) + 0.02
        found = ", ".join(f"{name} {value:.2f}" for name, value in zip(NUMBERS, np.exp(centre), strict=True))
        print(f"round {number + 1}: best {max(scores):.2f}, mean {np.mean(scores):.2f}; {found}", flush=True)


def with_numbers(rule: HighwayRule, numbers: Any) -> HighwayRule:
    """The rule with other numbers."""
    return dataclasses.replace(rule, **dict(zip(NUMBERS, map(float, numbers), strict=True)))


def score(played: Episodes) -> float:
    """What the fit maximises."""
    return float(sum(measure(played, ["value", "tail"]).values()))


def main() -> None:
    """Judge or fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("judge", "fit"))
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=JUDGE_SEED, help="of the episodes that judge")
    parser.add_argument("--only", choices=tuple(DRIVERS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--candidates", type=int, default=24)
    given = parser.parse_args()
    if given.task == "judge":
        judge(given.episodes, given.seed, given.only)
    else:
        fit(given.rounds, given.candidates, given.episodes)


if __name__ == "__main__":
    main()
