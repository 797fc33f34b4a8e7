"""Decisions per second of the live view, with four networks: alone, and with other drivers beside.

    python benchmarks/live_view.py

The issue of a page that is driven live is whether it waits: at least 10 decisions a second are wanted.
"""

import time
from pathlib import Path

import jax
from _measure import machine

from sentinel_rl.agents import make_agent
from sentinel_rl.api import load_agent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.training.policy import policy_path
from sentinel_rl.viewer.drive import Drive, Driver
from sentinel_rl.viewer.live import Session
from sentinel_rl.viewer.messages import Branch, Go, Hello

ENV, DECISIONS, WANTED = "sentinel/highway-v1", 30, 10.0


def fixed(name: str) -> Driver:
    """A driver that needs no training."""
    handle = resolve_env(ENV)
    agent = make_agent(name, handle)
    return Driver(name, agent, agent.init(handle.spec, jax.random.key(0)))


def main() -> None:
    """Print the table."""
    trained = load_agent(policy_path(Path("highway-composite")), env=ENV)
    first = Driver("highway-composite", trained.agent, trained.state)
    print(machine())
    print(f"{'drivers':45}{'decisions/s':>12}{'a branch, ms':>14}")
    for others in ([], ["highway-rule"], ["highway-rule", "highway-search"]):
        session = Session(Drive([first, *map(fixed, others)], resolve_env(ENV)))
        session.answer(Hello(None))
        session.answer(Go(0, 2))
        began = time.perf_counter()
        for _ in range(DECISIONS // 2):
            session.answer(Go(0, 2))
        rate = DECISIONS / (time.perf_counter() - began)
        began = time.perf_counter()
        session.answer(Branch(0, 20, 0))
        branch = 1000 * (time.perf_counter() - began)
        print(f"{', '.join(['highway-composite', *others]):45}{rate:12.0f}{branch:14.0f}")
        assert rate >= WANTED, "the live view would wait"


if __name__ == "__main__":
    main()
