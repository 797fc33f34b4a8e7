"""Episodes of the real highway-env, recorded with its full float64 state."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Policy = Callable[[np.random.Generator, int], int]

POLICIES: dict[str, Policy] = {
    "random": lambda rng, last: int(rng.integers(5)),
    "idle": lambda rng, last: 1,
    "faster": lambda rng, last: 3,
    "slower": lambda rng, last: 4,
    "sticky": lambda rng, last: last if rng.random() < 0.7 else int(rng.integers(5)),
}


class Cars(NamedTuple):
    """All vehicles at one time, the ego first: arrays ``[..., vehicles]``."""

    x: np.ndarray
    y: np.ndarray
    heading: np.ndarray
    speed: np.ndarray
    lane: np.ndarray
    target_lane: np.ndarray
    target_speed: np.ndarray
    timer: np.ndarray
    crashed: np.ndarray


class Episode(NamedTuple):
    """Cars at times 0, ..., T, the exponents of their drivers, and what highway-env returned for the T actions."""

    cars: Cars
    delta: np.ndarray
    actions: np.ndarray
    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def make(name: str, config: dict[str, Any]) -> Any:
    """A real environment that returns its observation in float64, before it is rounded."""
    import gymnasium
    import highway_env  # noqa: F401 (tells Gymnasium its names)

    return gymnasium.make(name, config=config, disable_env_checker=True).unwrapped


def cars(env: Any) -> Cars:
    """The vehicles of a real environment."""
    rows = [
        (
            *v.position,
            v.heading,
            v.speed,
            v.lane_index[2],
            v.target_lane_index[2],
            v.target_speed,
            getattr(v, "timer", 0.0),
            v.crashed,
        )
        for v in env.road.vehicles
    ]
    return Cars(*(np.array(column) for column in zip(*rows, strict=True)))


def observation(env: Any) -> np.ndarray:
    """What it observes, flat and in float64."""
    kind = env.observation_type
    kind.space = lambda: type("Box", (), {"dtype": np.float64, "shape": (kind.vehicles_count, len(kind.features))})
    return kind.observe().ravel()


def play(env: Any, policy: Policy, seed: int) -> Episode:
    """Play one episode to its end."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    states, rows, over, action = [cars(env)], [], False, 1
    delta = np.array([getattr(v, "DELTA", 4.0) for v in env.road.vehicles])
    while not over:
        action = policy(rng, action)
        _, reward, terminated, truncated, _ = env.step(action)
        rows.append((action, observation(env), reward, terminated, truncated))
        states.append(cars(env))
        over = terminated or truncated
    return Episode(stack(states), delta, *(np.array(column) for column in zip(*rows, strict=True)))


def stack(states: Iterable[Cars]) -> Cars:
    """Put states on a leading axis."""
    return Cars(*(np.stack(column) for column in zip(*states, strict=True)))


def join(episodes: list[Episode]) -> dict[str, np.ndarray]:
    """Episodes of different lengths one after the other, as arrays that a file can hold."""
    columns = {f"cars_{name}": [getattr(e.cars, name) for e in episodes] for name in Cars._fields}
    columns |= {name: [getattr(e, name) for e in episodes] for name in Episode._fields[2:]}
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return joined | {
        "delta": np.stack([e.delta for e in episodes]),
        "length": np.array([len(e.actions) for e in episodes]),
    }


def split(columns: dict[str, np.ndarray]) -> list[Episode]:
    """The episodes again."""
    length, episodes, begin = columns["length"], [], 0
    for i, steps in enumerate(length):
        state = slice(begin + i, begin + i + steps + 1)
        after = slice(begin, begin + steps)
        states = Cars(*(columns[f"cars_{name}"][state] for name in Cars._fields))
        episodes.append(Episode(states, columns["delta"][i], *(columns[name][after] for name in Episode._fields[2:])))
        begin += steps
    return episodes
