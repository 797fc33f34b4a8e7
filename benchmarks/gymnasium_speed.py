"""How fast SENTINEL learns in a Gymnasium environment, beside QR-DQN of sb3-contrib with the same work.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false python benchmarks/gymnasium_speed.py

The same networks (256-256, 51 quantiles), batch and updates per step for both, in one environment and in a vector of
eight that is stepped in one process. Compiling is left out. Seconds of the processor, of all threads, hardly depend on
what else the machine does; those of the clock do, and are what a user waits. Needs stable-baselines3, sb3-contrib and
gymnasium[box2d].
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
from _measure import machine

WORK: dict[str, Any] = {"learn_every": 2, "batch": 64, "warmup": 100}


class Pace(NamedTuple):
    """Steps per second, of the processor and of the clock."""

    processor: float
    clock: float


def pace(learn: Callable[[int], Any], steps: int) -> Pace:
    """Measure a training of so many steps."""
    began = time.process_time(), time.perf_counter()
    learn(steps)
    return Pace(steps / (time.process_time() - began[0]), steps / (time.perf_counter() - began[1]))


def ours(name: str, steps: int, copies: int, members: int) -> Pace:
    """SENTINEL with so many members."""
    from sentinel_rl import Sentinel

    def made() -> Any:
        world = gymnasium.make_vec(name, copies, vectorization_mode="sync") if copies > 1 else gymnasium.make(name)
        options = {"k": members, "learn_every": WORK["learn_every"], "warmup": WORK["warmup"], "head": "quantile"}
        return Sentinel("MlpPolicy", world, seed=0, samples=WORK["batch"], batch=WORK["batch"], **options)

    made().learn(steps // 4)
    return pace(made().learn, steps)


def theirs(name: str, steps: int, copies: int) -> Pace:
    """QR-DQN."""
    import torch
    from sb3_contrib import QRDQN
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    every = max(1, WORK["learn_every"] // copies)  # SB3 counts steps of the whole vector
    work = {
        "train_freq": every,
        "gradient_steps": every * copies // WORK["learn_every"],
        "batch_size": WORK["batch"],
        "learning_starts": WORK["warmup"],
    }
    networks = {"net_arch": [256, 256], "n_quantiles": 51}
    world = make_vec_env(name, copies, seed=0)
    model = QRDQN("MlpPolicy", world, seed=0, device="cpu", buffer_size=100_000, policy_kwargs=networks, **work)
    return pace(model.learn, steps)


def main() -> None:
    """Print the steps per second and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="*", default=["LunarLander-v3", "CartPole-v1"])
    parser.add_argument("--copies", nargs="*", type=int, default=[1, 8])
    parser.add_argument("--steps", type=int, default=10_000)
    given = parser.parse_args()
    print(machine("jax", "sb3-contrib", "torch"))
    print("| environment, copies | agent | steps / s of the processor | of the clock | ratios |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name in given.envs:
        for copies in given.copies:
            reference = theirs(name, given.steps, copies)
            rows = {"QR-DQN": reference} | {f"SENTINEL-{k}": ours(name, given.steps, copies, k) for k in (1, 4)}
            for agent, found in rows.items():
                ratios = f"{found.processor / reference.processor:.2f}, {found.clock / reference.clock:.2f}"
                print(
                    f"| {name}, {copies} | {agent} | {found.processor:.0f} | {found.clock:.0f} | {ratios} |", flush=True
                )


if __name__ == "__main__":
    main()
