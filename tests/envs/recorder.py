"""Episodes of Gymnasium's CartPole, recorded with its full float64 state."""

from collections.abc import Callable
from typing import NamedTuple

import gymnasium
import numpy as np

Policy = Callable[[np.ndarray, np.random.Generator], int]


class Episode(NamedTuple):
    """States 0, ..., T in float64, and what Gymnasium returned for the T actions between them."""

    states: np.ndarray
    actions: np.ndarray
    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def randomly(state: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.integers(2))


def always(action: int) -> Policy:
    return lambda state, rng: action


def balance(lean: float = 0.0) -> Policy:
    """A linear controller that keeps the pole up; asked to lean, it drives the cart off that side of the track."""

    def policy(state: np.ndarray, rng: np.random.Generator) -> int:
        x, speed, theta, spin = state
        pull = 0.25 * x + 0.8 * speed if lean == 0 else 0.0
        return int(pull + 10 * (theta - lean) + 2 * spin > 0)

    return policy


def record(name: str, policy: Policy, seed: int, max_steps: int | None = None) -> Episode:
    """Play one episode of a Gymnasium environment to its end."""
    env = gymnasium.make(gymnasium.spec(name), max_episode_steps=max_steps, disable_env_checker=True)
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    states, rows, over = [env.unwrapped.state.copy()], [], False
    while not over:
        action = policy(states[-1], rng)
        obs, reward, terminated, truncated, _ = env.step(action)
        rows.append((action, obs, reward, terminated, truncated))
        states.append(env.unwrapped.state.copy())
        over = terminated or truncated
    return Episode(np.array(states), *(np.array(column) for column in zip(*rows, strict=True)))


def episodes(name: str) -> list[Episode]:
    """Many episodes that end in every way there is."""
    plays = [(randomly, seed) for seed in range(60)]
    plays += [(always(action), seed) for action in (0, 1) for seed in range(5)]
    plays += [(balance(), seed) for seed in range(6)]
    plays += [(balance(lean), seed) for lean in (-0.06, 0.06) for seed in range(4)]
    return [record(name, policy, seed) for policy, seed in plays]
