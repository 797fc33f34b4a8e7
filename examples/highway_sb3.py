"""Train a stable-baselines3 agent on the highway: any library that knows Gymnasium can.

    pip install stable-baselines3
    python examples/highway_sb3.py --steps 20000

All copies of the world are stepped in one compiled call. The agent is compared with drivers that always brake, do
nothing, or act at random.
"""

import argparse
from collections.abc import Callable

import gymnasium
import numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv

import sentinel_rl.envs  # noqa: F401 (tells Gymnasium the name)

NAME = "sentinel/highway-v1"
Drive = Callable[[np.ndarray], np.ndarray]


def evaluate(drive: Drive, copies: int = 100) -> tuple[float, float]:
    """Mean return of one episode per copy, and the share that crashed."""
    envs = gymnasium.make_vec(NAME, num_envs=copies)
    obs, _ = envs.reset(seed=1000)
    returns, alive, crashed = np.zeros(copies), np.ones(copies, bool), np.zeros(copies, bool)
    while alive.any():
        obs, rewards, terminated, truncated, _ = envs.step(drive(obs))
        returns += rewards * alive
        crashed |= terminated & alive
        alive &= ~(terminated | truncated)
    return float(returns.mean()), float(crashed.mean())


def main() -> None:
    """Train, and print how well everybody drives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="decisions of training")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    agent = DQN(
        "MlpPolicy",
        DummyVecEnv([lambda: gymnasium.make(NAME)] * 4),
        policy_kwargs={"net_arch": [256, 256]},
        learning_rate=5e-4,
        gamma=0.9,
        learning_starts=200,
        exploration_fraction=0.5,
        target_update_interval=200,
        seed=args.seed,
        device="cpu",
    )
    agent.learn(args.steps)
    rng = np.random.default_rng(0)
    drivers: dict[str, Drive] = {
        "DQN": lambda obs: agent.predict(obs, deterministic=True)[0],
        "always SLOWER": lambda obs: np.full(len(obs), 4),
        "always IDLE": lambda obs: np.full(len(obs), 1),
        "random": lambda obs: rng.integers(5, size=len(obs)),
    }
    for name, drive in drivers.items():
        mean, crashes = evaluate(drive)
        print(f"{name:>14}: return {mean:5.2f}, crashes in {crashes:4.0%} of the episodes")


if __name__ == "__main__":
    main()
