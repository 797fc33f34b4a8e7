"""SENTINEL with its defaults on six environments of others, beside DQN and QR-DQN of stable-baselines3.

    python benchmarks/elsewhere.py run --agents dqn qrdqn --seeds 0 1 2
    python benchmarks/elsewhere.py run --agents sentinel --seeds 0 1 2
    python benchmarks/elsewhere.py show
    python benchmarks/elsewhere.py options --envs LunarLander-v3 --seeds 100 101 --set alpha_start=1.0 average_over=50

SENTINEL is told nothing but the name of the environment: no range of returns, no option. DQN and QR-DQN have the
hyperparameters of rl-baselines3-zoo where it has some, and their own defaults on Taxi and MiniGrid. A run is judged by
the mean return of 100 greedy episodes, the same ones for all. Every run is a row of the file as soon as it is done, and
rows that are there are not made again.

``options`` trains SENTINEL with other options and judges every run with the networks that it learnt last and with their
average, where there is one, acting with its own measures of risk and neutrally.

Needs stable-baselines3, sb3-contrib, gymnasium[box2d] and minigrid.
"""

import argparse
import dataclasses
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from _measure import append_row, machine, rows_of

# The steps of training.
STEPS = {
    "CartPole-v1": 50_000,
    "Acrobot-v1": 100_000,
    "LunarLander-v3": 100_000,
    "MiniGrid-Empty-5x5-v0": 100_000,
    "Taxi-v4": 100_000,
    "MountainCar-v0": 120_000,
}
AGENTS = ("sentinel", "dqn", "qrdqn")
EPISODES = 100
TOGETHER = 20
# The episodes that judge begin with these seeds, far from those of training.
FIRST_EPISODE = 1_000_000
COLUMNS = ("env", "agent", "seed", "steps", "options", "mean_return", "sd_return", "seconds")
OPTION_COLUMNS = ("env", "seed", "steps", "options", "networks", "acting", "mean_return", "sd_return")

_SMALL: Mapping[str, Any] = {
    "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 0, "gamma": 0.99,
    "target_update_interval": 250, "train_freq": 4, "gradient_steps": -1, "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
}  # fmt: skip
_POLE: Mapping[str, Any] = {
    "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1_000, "gamma": 0.99,
    "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128, "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
}  # fmt: skip
_CAR: Mapping[str, Any] = {
    "learning_rate": 4e-3, "batch_size": 128, "buffer_size": 10_000, "learning_starts": 1_000, "gamma": 0.98,
    "target_update_interval": 600, "train_freq": 16, "gradient_steps": 8, "exploration_fraction": 0.2,
    "exploration_final_eps": 0.07,
}  # fmt: skip
_LANDER: Mapping[str, Any] = {
    "learning_rate": lambda left: 1.5e-3 * left, "batch_size": 128, "buffer_size": 100_000, "learning_starts": 10_000,
    "gamma": 0.995, "target_update_interval": 1, "train_freq": 256, "gradient_steps": -1, "exploration_fraction": 0.24,
    "exploration_final_eps": 0.18,
}  # fmt: skip
_OWN: Mapping[str, Any] = {"buffer_size": 100_000}  # their defaults; no more than is ever filled
# rl-baselines3-zoo, April 2026.
ZOO: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("dqn", "CartPole-v1"): {**_POLE, "policy_kwargs": {"net_arch": [256, 256]}},
    ("dqn", "Acrobot-v1"): {**_SMALL, "policy_kwargs": {"net_arch": [256, 256]}},
    ("dqn", "LunarLander-v3"): {**_SMALL, "policy_kwargs": {"net_arch": [256, 256]}},
    ("dqn", "MountainCar-v0"): {**_CAR, "policy_kwargs": {"net_arch": [256, 256]}},
    ("qrdqn", "CartPole-v1"): {**_POLE, "policy_kwargs": {"net_arch": [256, 256], "n_quantiles": 10}},
    ("qrdqn", "Acrobot-v1"): {**_SMALL, "policy_kwargs": {"net_arch": [256, 256], "n_quantiles": 25}},
    ("qrdqn", "LunarLander-v3"): {**_LANDER, "policy_kwargs": {"net_arch": [256, 256], "n_quantiles": 170}},
    ("qrdqn", "MountainCar-v0"): {**_CAR, "policy_kwargs": {"net_arch": [256, 256], "n_quantiles": 25}},
}

# The greedy actions at a batch of observations.
Predict = Callable[[np.ndarray], np.ndarray]


def make(name: str, agent: str) -> gymnasium.Env[Any, Any]:
    """The environment; of MiniGrid the image, flat for the two others, whose networks for images need larger ones."""
    if not name.startswith("MiniGrid"):
        return gymnasium.make(name)
    from minigrid.wrappers import ImgObsWrapper

    images = ImgObsWrapper(gymnasium.make(name))
    return images if agent == "sentinel" else gymnasium.wrappers.FlattenObservation(images)


def trained_by_sb3(agent: str, name: str, seed: int, steps: int, device: str) -> Predict:
    """Train DQN or QR-DQN, on a CPU with one thread."""
    import torch
    from sb3_contrib import QRDQN
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    kind = DQN if agent == "dqn" else QRDQN
    model = kind("MlpPolicy", make(name, agent), seed=seed, device=device, **ZOO.get((agent, name), _OWN))
    model.learn(steps)
    return lambda obs: np.asarray(model.predict(obs, deterministic=True)[0])


def trained_by_us(name: str, seed: int, steps: int, options: Mapping[str, Any]) -> Any:
    """Train SENTINEL."""
    from sentinel_rl import Sentinel

    model = Sentinel("MlpPolicy", make(name, "sentinel"), seed=seed, **options)
    model.learn(steps)
    return model


def predict_of(model: Any, name: str) -> Predict:
    """The greedy actions of SENTINEL, which takes observations as rows of numbers."""
    space = make(name, "sentinel").observation_space

    def predict(obs: np.ndarray) -> np.ndarray:
        rows = np.stack([gymnasium.spaces.flatten(space, one) for one in obs])
        return np.asarray(model.predict(rows, deterministic=True)[0])

    return predict


def judge(predict: Predict, name: str, agent: str) -> np.ndarray:
    """The returns of the greedy episodes, some of them side by side."""
    envs = [make(name, agent) for _ in range(TOGETHER)]
    returns = np.zeros(EPISODES)
    for first in range(0, EPISODES, TOGETHER):
        seen = [env.reset(seed=FIRST_EPISODE + first + place)[0] for place, env in enumerate(envs)]
        running = np.ones(TOGETHER, bool)
        while running.any():
            actions = predict(np.stack(seen))
            for place in np.flatnonzero(running):
                seen[place], reward, terminated, truncated, _ = envs[place].step(int(actions[place]))
                returns[first + place] += float(reward)
                running[place] = not (terminated or truncated)
    return returns


def run(given: argparse.Namespace) -> None:
    """Make the runs that the file does not have."""
    options = _options(given.set)
    told = " ".join(given.set)
    print(machine("jax", "gymnasium", "stable-baselines3", "sb3-contrib", "torch", "minigrid", "Box2D"), flush=True)
    for seed in given.seeds:
        for name in given.envs:
            for agent in given.agents:
                steps = given.steps or STEPS[name]
                here = (name, agent, str(seed), str(steps), told if agent == "sentinel" else "")
                if any(tuple(row[column] for column in COLUMNS[:5]) == here for row in rows_of(given.out)):
                    continue
                began = time.perf_counter()
                if agent == "sentinel":
                    predict = predict_of(trained_by_us(name, seed, steps, options), name)
                else:
                    predict = trained_by_sb3(agent, name, seed, steps, given.device)
                seconds = time.perf_counter() - began
                returns = judge(predict, name, agent)
                figures = (f"{returns.mean():.2f}", f"{returns.std(ddof=1):.2f}", f"{seconds:.0f}")
                print(*here, *figures, flush=True)
                append_row(given.out, COLUMNS, (*here, *figures))


def run_options(given: argparse.Namespace) -> None:
    """Train SENTINEL with other options, and judge every run with both networks and both measures."""
    from sentinel_rl.risk import CVaR

    print(machine("jax", "gymnasium", "minigrid", "Box2D"), flush=True)
    for seed in given.seeds:
        for name in given.envs:
            steps = given.steps or STEPS[name]
            here = (name, str(seed), str(steps), " ".join(given.set))
            if any(tuple(row[column] for column in OPTION_COLUMNS[:4]) == here for row in rows_of(given.out)):
                continue
            model = trained_by_us(name, seed, steps, _options(given.set))
            neutral = model.with_risk(aleatory=CVaR(1.0), epistemic=CVaR(1.0))
            latest = dataclasses.replace(model.state, average=None)
            networks = {"latest": latest} if model.state.average is None else {"average": model.state, "latest": latest}
            for networks_name, state in networks.items():
                for acting, actor in (("own", model), ("neutral", neutral)):
                    actor.state = state
                    returns = judge(predict_of(actor, name), name, "sentinel")
                    row = (*here, networks_name, acting, f"{returns.mean():.2f}", f"{returns.std(ddof=1):.2f}")
                    print(*row, flush=True)
                    append_row(given.out, OPTION_COLUMNS, row)


def show(given: argparse.Namespace) -> None:
    """Print means over the runs with 95 % bootstrap intervals, and the number of runs, as a table."""
    from sentinel_rl.study import summarise

    rows = [row for row in rows_of(given.out) if not row["options"]]
    print("| environment, steps | SENTINEL, defaults | DQN | QR-DQN |", "| --- | ---: | ---: | ---: |", sep="\n")
    for name, steps in STEPS.items():
        cells = [f"{name}, {steps:,}".replace(",", " ").replace("  ", ", ")]
        for agent in AGENTS:
            runs = [row for row in rows if (row["env"], row["agent"], row["steps"]) == (name, agent, str(steps))]
            one = summarise(np.array([float(row["mean_return"]) for row in runs]))
            digits = 1 if abs(one.mean) >= 1 else 2
            interval = f" [{one.low:.{digits}f}, {one.high:.{digits}f}]" if len(runs) > 1 else ""
            cells.append(f"{one.mean:.{digits}f}{interval} ({len(runs)})" if runs else "not run")
        print("| " + " | ".join(cells) + " |")


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    """The options that are given as texts ``NAME=VALUE``."""
    return {name: _value(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def _value(text: str) -> Any:
    if text == "None":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def main() -> None:
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show", "options"))
    parser.add_argument("--agents", nargs="*", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--envs", nargs="*", default=list(STEPS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="of training, other than the table's")
    parser.add_argument("--device", default="cpu", help="of DQN and QR-DQN, as torch calls it")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="options of SENTINEL")
    parser.add_argument("--out", type=Path, default=Path("results/elsewhere/runs.csv"))
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*out of date.*")
    {"run": run, "show": show, "options": run_options}[given.command](given)


if __name__ == "__main__":
    main()
