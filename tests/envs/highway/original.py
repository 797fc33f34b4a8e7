"""Episodes of the real highway-env, recorded with its full float64 state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sentinel_rl.envs.highway.reset import steps_until_due

Policy = Callable[[np.random.Generator, int], int]

POLICIES: dict[str, Policy] = {
    "random": lambda rng, last: int(rng.integers(5)),
    "idle": lambda rng, last: 1,
    "faster": lambda rng, last: 3,
    "slower": lambda rng, last: 4,
    "sticky": lambda rng, last: last if rng.random() < 0.7 else int(rng.integers(5)),
}


class Cars(NamedTuple):
    """All vehicles at one time, the ego first: arrays ``[..., vehicles]``.

    `wait` is the original's timer as the simulation steps until it is due, counted by adding up as the original does:
    nothing else is ever asked of a timer.
    """

    x: np.ndarray
    y: np.ndarray
    heading: np.ndarray
    speed: np.ndarray
    lane: np.ndarray
    target_lane: np.ndarray
    target_speed: np.ndarray
    wait: np.ndarray
    crashed: np.ndarray


class Episode(NamedTuple):
    """The first state is that of the seed; then what highway-env returned for T actions, and its cars after each.

    Observations are those of the last actions, of all or of a few.
    """

    seed: int
    cars: Cars
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    obs: np.ndarray


def make(name: str, config: dict[str, Any]) -> Any:
    """A real environment that returns its observation in float64, before it is rounded."""
    import gymnasium
    import highway_env  # noqa: F401 (tells Gymnasium its names)

    return gymnasium.make(name, config=config, disable_env_checker=True).unwrapped


def cars(env: Any) -> Cars:
    """The vehicles of a real environment."""
    frequency = env.config["simulation_frequency"]
    rows = [
        (
            *v.position,
            float(v.heading),
            float(v.speed),
            v.lane_index[2],
            v.target_lane_index[2],
            float(v.target_speed),
            steps_until_due(getattr(v, "timer", 0.0), frequency),
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


def play(env: Any, policy: Policy, seed: int, stream: int | None = None) -> Episode:
    """Play one episode to its end.

    Without a `stream` of its own the policy draws the same numbers as the traffic: good enough to compare step by
    step, but not to ask how random play fares.
    """
    rng = np.random.default_rng(seed if stream is None else [seed, stream])
    env.reset(seed=seed)
    states, rows, over, action = [], [], False, 1
    while not over:
        action = policy(rng, action)
        _, reward, terminated, truncated, _ = env.step(action)
        rows.append((action, reward, terminated, truncated, observation(env)))
        states.append(cars(env))
        over = terminated or truncated
    together = Cars(*(np.stack(column) for column in zip(*states, strict=True)))
    return Episode(seed, together, *(np.array(column) for column in zip(*rows, strict=True)))


def join(episodes: list[Episode]) -> dict[str, np.ndarray]:
    """Episodes of different lengths one after the other, as arrays that a file can hold."""
    columns = {f"cars_{name}": [getattr(e.cars, name) for e in episodes] for name in Cars._fields}
    columns |= {name: [getattr(e, name) for e in episodes] for name in Episode._fields[2:]}
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    counts = {"seed": [e.seed for e in episodes], "length": [len(e.actions) for e in episodes]}
    counts |= {"observed": [len(e.obs) for e in episodes]}
    return joined | {name: np.array(values) for name, values in counts.items()}


def split(columns: dict[str, np.ndarray]) -> list[Episode]:
    """The episodes again."""
    steps, seen = (np.cumsum([0, *columns[name]]) for name in ("length", "observed"))
    episodes = []
    for i, seed in enumerate(columns["seed"]):
        after, last = slice(steps[i], steps[i + 1]), slice(seen[i], seen[i + 1])
        states = Cars(*(columns[f"cars_{name}"][after] for name in Cars._fields))
        rest = (columns[name][after] for name in Episode._fields[2:-1])
        episodes.append(Episode(int(seed), states, *rest, columns["obs"][last]))
    return episodes
