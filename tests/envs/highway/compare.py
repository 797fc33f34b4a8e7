"""The twin beside recorded episodes of the original, decision by decision."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.envs.highway import Highway, HighwayState
from sentinel_rl.envs.highway.reset import steps_until_due
from sentinel_rl.envs.highway.road import closest_lane
from sentinel_rl.envs.spec import TimeStep
from tests.envs.highway.original import Episode
from tests.envs.highway.redraw import FirstState

NUMBERS = ("x", "y", "heading", "speed", "target_speed", "observation", "reward")
FLAGS = ("lane", "target_lane", "timer", "crashed", "terminated", "truncated")
KEY = jax.random.key(0)


class Difference(NamedTuple):
    """How far the twin is from one episode: the largest difference of each number, and how many flags differ."""

    steps: int
    crashed: bool
    lane_changes: int
    numbers: dict[str, float]
    flags: dict[str, int]

    def equal(self, tolerance: float = 1e-8) -> bool:
        """Whether every number is within the tolerance, and every flag the same."""
        return max(self.numbers.values()) <= tolerance and not any(self.flags.values())


def differences(env: Highway, firsts: list[FirstState], episodes: list[Episode]) -> list[Difference]:
    """Play the recorded actions from the same first states, all episodes beside each other, in float64."""
    with jax.enable_x64(True):
        states, after = jax.device_get(play(env, start(env, firsts), actions(episodes)))
        return [_difference(env, episode, _row(states, i), _row(after, i)) for i, episode in enumerate(episodes)]


@jax.jit
def play(env: Highway, states: HighwayState, actions: jax.Array) -> tuple[HighwayState, TimeStep]:
    """Every state after every action, ``[steps, worlds, ...]``; worlds go on after their end."""

    def step(state, action):
        state, after = jax.vmap(env.step, (0, 0, None))(state, action, KEY)
        return state, (state, after)

    return jax.lax.scan(step, states, actions)[1]


def start(env: Highway, firsts: list[FirstState]) -> HighwayState:
    """First states of the original, beside each other."""
    x, lane, speed, delta, timer = (np.stack(column) for column in zip(*firsts, strict=True))
    wait = np.vectorize(lambda clock: steps_until_due(clock, env.simulation_frequency))(timer)
    none, no = jnp.zeros(x.shape), jnp.zeros(x.shape, bool)
    return HighwayState(
        x=jnp.asarray(x),
        y=jnp.asarray(4.0 * lane),
        heading=none,
        speed=jnp.asarray(speed),
        target_lane=jnp.asarray(lane, jnp.int32),
        target_speed=jnp.asarray(speed),
        delta=jnp.asarray(delta),
        wait=jnp.asarray(wait, jnp.int32),
        crashed=no,
        hit=no,
        push_x=none,
        push_y=none,
        time=jnp.zeros(len(firsts), jnp.int32),
    )


def actions(episodes: list[Episode]) -> jax.Array:
    """The recorded actions ``[steps, worlds]``, filled up with 1 (IDLE)."""
    rows = np.ones((max(len(e.actions) for e in episodes), len(episodes)), np.int32)
    for i, episode in enumerate(episodes):
        rows[: len(episode.actions), i] = episode.actions
    return jnp.asarray(rows)


def _difference(env: Highway, episode: Episode, ours: HighwayState, after: TimeStep) -> Difference:
    steps, cars, others = len(episode.actions), episode.cars, (slice(None), slice(1, None))
    pairs = {name: (getattr(ours, name)[:steps], getattr(cars, name)) for name in NUMBERS[:5]}
    pairs |= {"reward": (after.reward[:steps], episode.rewards)}
    pairs |= {"observation": (after.obs[steps - len(episode.obs) : steps], episode.obs)}
    same = {name: (getattr(ours, name)[:steps], getattr(cars, name)) for name in ("target_lane", "crashed")}
    # Of all steps, so that episodes of every length share a program.
    same |= {"lane": (np.asarray(closest_lane(jnp.asarray(ours.y), env.lanes_count))[:steps], cars.lane)}
    same |= {"timer": (np.maximum(ours.wait, 0)[:steps][others], cars.wait[others])}
    same |= {name: (getattr(after, name)[:steps], getattr(episode, name)) for name in ("terminated", "truncated")}
    return Difference(
        steps,
        bool(episode.terminated[-1]),
        int((np.diff(cars.target_lane.astype(int), axis=0) != 0).sum()),
        {name: float(np.abs(mine - other).max()) for name, (mine, other) in pairs.items()},
        {name: int((mine != other).sum()) for name, (mine, other) in same.items()},
    )


def _row(tree, i: int):
    return jax.tree.map(lambda leaf: leaf[:, i], tree)


def table(found: dict[str, Iterable[Difference]], tolerance: float = 1e-8) -> str:
    """A line for every group of episodes."""
    heads = ("group", "episodes", "decisions", "crashes", "lane changes", "unequal", "flags", *NUMBERS)
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for name, group in found.items():
        rows = list(group)
        sums = (len(rows), sum(r.steps for r in rows), sum(r.crashed for r in rows), sum(r.lane_changes for r in rows))
        unequal, flags = sum(not r.equal(tolerance) for r in rows), sum(sum(r.flags.values()) for r in rows)
        worst = (f"{max(r.numbers[number] for r in rows):.0e}" for number in NUMBERS)
        lines.append("| " + " | ".join([name, *map(str, sums), str(unequal), str(flags), *worst]) + " |")
    return "\n".join(lines)
