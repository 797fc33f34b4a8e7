"""How fast SENTINEL learns in a Gymnasium environment, beside QR-DQN of sb3-contrib with the same work.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false python benchmarks/gymnasium_speed.py

The same networks (256-256, 51 quantiles), batch and updates per step for both; one environment. Times are seconds of
the processor, of all threads, so that what else the machine does hardly matters; compiling is left out. Needs
stable-baselines3, sb3-contrib and gymnasium[box2d].
"""

import argparse
import time
from typing import Any

import gymnasium
from _measure import machine

WORK: dict[str, Any] = {"learn_every": 2, "batch": 64, "warmup": 100}


def ours(name: str, steps: int, members: int) -> float:
    """Steps per second of SENTINEL with so many members."""
    from sentinel_rl import Sentinel

    def made() -> Any:
        options = {"k": members, "learn_every": WORK["learn_every"], "warmup": WORK["warmup"], "head": "quantile"}
        return Sentinel(
            "MlpPolicy", gymnasium.make(name), seed=0, samples=WORK["batch"], batch=WORK["batch"], **options
        )

    made().learn(steps // 4)
    again = made()
    began = time.process_time()
    again.learn(steps)
    return steps / (time.process_time() - began)


def theirs(name: str, steps: int) -> float:
    """Steps per second of QR-DQN."""
    import torch
    from sb3_contrib import QRDQN

    torch.set_num_threads(1)
    work = {"train_freq": WORK["learn_every"], "batch_size": WORK["batch"], "learning_starts": WORK["warmup"]}
    networks = {"net_arch": [256, 256], "n_quantiles": 51}
    model = QRDQN("MlpPolicy", name, seed=0, device="cpu", buffer_size=100_000, policy_kwargs=networks, **work)
    began = time.process_time()
    model.learn(steps)
    return steps / (time.process_time() - began)


def main() -> None:
    """Print the steps per second and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="*", default=["LunarLander-v3", "CartPole-v1"])
    parser.add_argument("--steps", type=int, default=10_000)
    given = parser.parse_args()
    print(machine("jax", "sb3-contrib", "torch"))
    for name in given.envs:
        reference = theirs(name, given.steps)
        print(f"{name}: QR-DQN {reference:.0f} steps a second of the processor", flush=True)
        for members in (1, 4):
            speed = ours(name, given.steps, members)
            print(f"{name}: SENTINEL-{members} {speed:.0f}, {speed / reference:.2f} times QR-DQN", flush=True)


if __name__ == "__main__":
    main()
