"""Train a stable-baselines3 agent on the highway: any library that knows Gymnasium can.

    pip install stable-baselines3
    python examples/highway_sb3.py

All copies of the world are stepped in one compiled call. Afterwards the agent drives beside drivers who learn nothing:
those who always brake, do nothing, or act at random.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import sentinel_rl.envs  # noqa: F401 (tells Gymnasium the name)

NAME = "sentinel/highway-v1"
Drive = Callable[[np.ndarray], np.ndarray]


class Copies(VecEnv):
    """Gymnasium's vector environment as stable-baselines3 wants it."""

    def __init__(self, count: int):
        self.envs = gymnasium.make_vec(NAME, num_envs=count, autoreset_mode="SameStep")
        super().__init__(count, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> np.ndarray:
        """Start every copy, with the seeds of `seed`."""
        obs, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions."""
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take them; where an episode ends, the next one begins at once."""
        obs, rewards, terminated, truncated, info = self.envs.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            infos[i] = {"terminal_observation": info["final_obs"][i]}
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return obs, rewards, terminated | truncated, infos

    def close(self) -> None:
        """Close the copies."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for all copies."""
        return [getattr(self.envs, attr_name)] * len(self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Copies are not changed."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Copies have no methods of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """They are not."""
        return [False] * len(self._get_indices(indices))


def evaluate(drive: Drive, copies: int) -> tuple[float, float, float]:
    """Mean return of one episode per copy, its standard error, and the share that crashed."""
    envs = gymnasium.make_vec(NAME, num_envs=copies)
    obs, _ = envs.reset(seed=1000)
    returns, alive, crashed = np.zeros(copies), np.ones(copies, bool), np.zeros(copies, bool)
    while alive.any():
        obs, rewards, terminated, truncated, _ = envs.step(drive(obs))
        returns += rewards * alive
        crashed |= terminated & alive
        alive &= ~(terminated | truncated)
    return float(returns.mean()), float(returns.std() / copies**0.5), float(crashed.mean())


def main() -> None:
    """Train, and print how well everybody drives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300_000, help="decisions of training, of all copies together")
    parser.add_argument("--copies", type=int, default=64, help="worlds side by side")
    parser.add_argument("--episodes", type=int, default=500, help="of each driver afterwards")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    agent = PPO(
        "MlpPolicy",
        Copies(args.copies),
        n_steps=32,
        batch_size=256,
        n_epochs=6,
        learning_rate=5e-4,
        gamma=0.95,
        ent_coef=0.005,
        policy_kwargs={"net_arch": [128, 128]},
        seed=args.seed,
        device="cpu",
    )
    begin = time.perf_counter()
    agent.learn(args.steps)
    print(f"PPO, seed {args.seed}: {args.steps} decisions in {time.perf_counter() - begin:.0f} s")
    rng = np.random.default_rng(0)
    drivers: dict[str, Drive] = {
        "PPO": lambda obs: agent.predict(obs, deterministic=True)[0],
        "always SLOWER": lambda obs: np.full(len(obs), 4),
        "always IDLE": lambda obs: np.full(len(obs), 1),
        "random": lambda obs: rng.integers(5, size=len(obs)),
    }
    for name, drive in drivers.items():
        mean, error, crashes = evaluate(drive, args.episodes)
        print(f"{name:>14}: return {mean:5.2f} ± {error:.2f} of at most 40, crashes in {crashes:4.1%} of the episodes")


if __name__ == "__main__":
    main()
