"""SENTINEL-4 beside SB3-contrib's QR-DQN on CartPole: environment steps a second, in one run.

    python benchmarks/cartpole.py

Same schedule for both: an update every 100 steps of 4 gradient steps with batches of 32, targets every 1 000 steps,
a replay of 1e5, hidden layers 32-32-128, 51 atoms or quantiles. QR-DQN has one network per agent, SENTINEL-4 four times
two; torch gets one thread, with which it is fastest on networks of this size. Without sb3-contrib
(requirements/clients.txt) only our own rates are printed.
"""

import os
import platform
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
from _measure import train

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import GymnasiumWorld
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.schedule import Plan

STEPS = 10_000
# The layers, batch and updates that QR-DQN has below; the default learner has larger ones.
PAPER: dict[str, Any] = {"preset": "paper"}


def qr_dqn() -> float | None:
    """Steps a second of the peer, one environment, one process."""
    try:
        import torch
        from sb3_contrib import QRDQN
    except ImportError:
        return None
    torch.set_num_threads(1)
    network: dict[str, Any] = {"net_arch": [32, 32, 128], "n_quantiles": 51}
    model = QRDQN(
        "MlpPolicy", "CartPole-v1", learning_rate=2.5e-4, buffer_size=100_000, learning_starts=100, batch_size=32,
        train_freq=100, gradient_steps=4, target_update_interval=1_000, policy_kwargs=network, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(1_000)
    return _rate(lambda: model.learn(STEPS), STEPS)


def host() -> float:
    """Steps a second of SENTINEL-4 on Gymnasium's CartPole-v1, one environment."""
    world = GymnasiumWorld(gymnasium.make("CartPole-v1"), seed=0)
    run = HostRun(make_sentinel(CartPole(500).spec, **PAPER), world, Plan(), seed=0)
    for _ in range(1_000):
        run.step()
    return _rate(lambda: [run.step() for _ in range(STEPS)] and None, STEPS)


def fused(seeds: int = 20, k: int = 4) -> float:
    """Steps a second of a population on the JAX twin, all cores."""
    env, plan = CartPole(500), Plan(steps=STEPS)
    agents = [make_sentinel(env.spec, k=k, **PAPER)] * seeds
    next(iter(Training(agents, env, plan, list(range(seeds))).chunks()))
    training = Training(agents, env, plan, list(range(seeds)))
    return _rate(lambda: train(training), seeds * STEPS)


def _rate(work: Callable[[], Any], steps: int) -> float:
    begin = time.perf_counter()
    work()
    return steps / (time.perf_counter() - begin)


def main() -> None:
    """Measure one after the other, and print the ratios."""
    use_all_cores()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, jax {jax.__version__}, {STEPS} steps each")
    peer = qr_dqn()
    if peer is None:
        print("QR-DQN (SB3-contrib) is not installed")
    else:
        print(f"QR-DQN (SB3-contrib), one environment    {peer:10,.0f} steps/s")
    for name, measure in (("SENTINEL-4, host path, one environment", host), ("SENTINEL-4, fused, 20 seeds", fused)):
        rate = measure()
        ratio = "" if peer is None else f"  {rate / peer:6.2f} x QR-DQN"
        print(f"{name:<40} {rate:10,.0f} steps/s{ratio}", flush=True)
    one, eight = fused(k=1), fused(k=8)
    print(f"fused, K = 1: {one:,.0f} steps/s, K = 8: {eight:,.0f} steps/s: K = 8 costs {one / eight:.1f} x K = 1")


if __name__ == "__main__":
    main()
