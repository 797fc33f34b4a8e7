"""Decisions per second of whole trainings on the highway, acting, simulation and learning together.

    python benchmarks/end_to_end.py               # 20 runs of 10 000 steps of our agents, 300 steps of the others

The paper's constants. Compiling is not counted. The others drive in highway-env itself, one process: our own agent
through the path that serves any Gymnasium environment (100 samples learned from after every 100 decisions), and DQN of
stable-baselines3 (a gradient step for every four). ``make bench`` installs both; what is missing is left out.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import _measure

from sentinel_paper.highway_agents import CONTENDERS
from sentinel_paper.settings import HIGHWAY
from sentinel_paper.trained import Settings, cell
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.population import use_all_cores


def fused(label: str, runs: int, steps: int) -> float:
    """Our agent on the twin, all runs side by side."""
    (contender,) = (agent for agent in CONTENDERS if agent.label == label)
    one = cell(HIGHWAY, contender, Settings(runs=runs, steps=steps))
    env = one.make_env()
    agent: Any = one.make_agent(env)

    def begin() -> Training:
        return Training([agent] * runs, env, one.make_plan(agent), one.seeds)

    next(iter(begin().chunks()))
    training = begin()
    return _rate(lambda: _measure.train(training), runs * steps)


def host(steps: int) -> float | None:
    """Our agent on highway-env."""
    if importlib.util.find_spec("highway_env") is None:
        return None
    from sentinel_rl import Sentinel

    def learn(count: int) -> object:
        return Sentinel("MlpPolicy", "highway-env", preset="paper", samples=100, learn_every=100, seed=0).learn(count)

    learn(250)
    return _rate(lambda: learn(steps), steps)


def dqn(steps: int) -> float | None:
    """DQN of stable-baselines3 on highway-env."""
    if importlib.util.find_spec("highway_env") is None or importlib.util.find_spec("stable_baselines3") is None:
        return None
    import gymnasium
    import highway_env  # noqa: F401 (registers the environment)
    from stable_baselines3 import DQN

    env = gymnasium.make("highway-v0", config={"lanes_count": 5, "vehicles_count": 10})
    model = DQN("MlpPolicy", env, learning_starts=100, seed=0)
    return _rate(lambda: model.learn(steps), steps)


def _rate(work: Callable[[], object], steps: int) -> float:
    begin = time.perf_counter()
    work()
    return steps / (time.perf_counter() - begin)


def main() -> None:
    """Parse the options, measure one after the other, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=300, help="steps of those in highway-env")
    asked = parser.parse_args()
    use_all_cores()
    print(_measure.machine("jax", "highway-env", "stable-baselines3"))
    found = {
        "DQN (SB3) in highway-env": dqn(asked.others),
        "SENTINEL-4 in highway-env, host path": host(asked.others),
    }
    for label in ("random", "CDQN", "SENTINEL-4 composite"):
        found[f"{label}, fused, {asked.runs} runs"] = fused(label, asked.runs, asked.steps)
    peer = next(iter(found.values()))
    for name, rate in found.items():
        if rate is None:
            print(f"{name:<40} not installed")
        else:
            print(f"{name:<40} {rate:10,.1f} decisions/s" + (f"  {rate / peer:8.1f} x DQN (SB3)" if peer else ""))


if __name__ == "__main__":
    main()
