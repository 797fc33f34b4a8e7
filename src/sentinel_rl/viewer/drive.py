"""Drive on, branch and edit: several drivers in copies of the same traffic, and every moment that was is kept.

A *line* is one way that things went. The first begins where an episode begins. Another one begins at a moment of an
earlier line, where the first driver is told to take another action, or where the traffic is changed: up to there it is
what the first driver did, and from there on every driver has his own copy of the same world.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl.agents.agent import Agent, greedy_in
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.envs.highway import Highway, HighwayState
from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.spec import TimeStep
from sentinel_rl.errors import UsageError
from sentinel_rl.training.trips import begin
from sentinel_rl.viewer.pictures import traced
from sentinel_rl.viewer.reasons import Reasons
from sentinel_rl.viewer.record import describe, told_at
from sentinel_rl.viewer.schema import About

MOST_LINES, MOST_DRIVERS, MOST_DECISIONS = 24, 6, 500
# What is kept of every driver.
HAPPENED = ("action", "reward", "terminated", "truncated", "cars", "crashed", "seen", "paths", "wrecked")
# The speed that a driver wants who was told to stand still: IDM divides by it.
_STANDING = 0.01


class Driver(NamedTuple):
    """Who drives: a name, an agent and its state."""

    name: str
    agent: Agent
    state: Any


@dataclasses.dataclass(frozen=True)
class Edit:
    """A change of one vehicle; what is None stays.

    Args:
        vehicle: its number, the agent's own is 0.
        x: metres along the road.
        y: metres across it; the vehicle is turned along the road and wants the lane it is put on.
        speed: metres per second, which it wants to keep.
        freeze: whether it stands still from now on.
        wreck: whether it becomes a wreck, which stands.
    """

    vehicle: int
    x: float | None = None
    y: float | None = None
    speed: float | None = None
    freeze: bool = False
    wreck: bool = False

    def apply(self, env: Highway, state: HighwayState) -> HighwayState:
        """The state with the change made.

        Raises:
            UsageError: for a vehicle that is not there.
        """
        number = self.vehicle
        if not 0 <= number < len(state.x):
            raise UsageError(f"vehicle {number} is not there: the last one is {len(state.x) - 1}")
        changes: dict[str, Any] = {}
        if self.x is not None:
            changes["x"] = self.x
        if self.y is not None:
            y = min(max(self.y, -LANE_WIDTH / 2), LANE_WIDTH * (env.lanes_count - 0.5))
            lane = min(max(round(y / LANE_WIDTH), 0), env.lanes_count - 1)
            changes |= {"y": y, "heading": 0.0, "target_lane": lane}
        if self.speed is not None:
            changes |= {"speed": self.speed, "target_speed": self.speed}
        if self.freeze:
            changes |= {"speed": 0.0, "target_speed": _STANDING}
        if self.wreck:
            changes |= {"speed": 0.0, "crashed": True, "hit": False, "push_x": 0.0, "push_y": 0.0}
        leaves = {name: np.array(getattr(state, name)) for name in changes}
        for name, value in changes.items():
            leaves[name][number] = value
        return state._replace(**{name: jnp.asarray(leaf) for name, leaf in leaves.items()})


class _Ride:
    """What one driver did in a line: the states, and of every decision what a recording holds."""

    def __init__(self, states: Sequence[HighwayState], steps: Sequence[dict[str, np.ndarray]]):
        self.states, self.steps = list(states), list(steps)
        self.over = False

    def until(self, moment: int) -> "_Ride":
        return _Ride(self.states[: moment + 1], self.steps[:moment])


class Line(NamedTuple):
    """One way that things went, with a ride per driver; `fork` is the moment at which it left an earlier line.

    `forced` says that the first driver was told there what to do.
    """

    rides: list[_Ride]
    fork: int
    words: str
    forced: bool = False


class Drive:
    """Drivers on the highway, and the lines they made.

    Args:
        drivers: the first one is the one whose reasons are shown.
        handle: of a JAX highway.
        seed: of the episode.
        episode: its number; with the same seed it begins as the one of `sentinel_rl.evaluate` does.

    Raises:
        UsageError: for another environment, or too many drivers.
    """

    def __init__(self, drivers: Sequence[Driver], handle: EnvHandle, seed: int = 7, episode: int = 0):
        if not isinstance(handle.env, Highway):
            raise UsageError(
                f"{handle.spec.name} cannot be driven live, only a highway in JAX: write a page instead, --html FILE"
            )
        if not 1 <= len(drivers) <= MOST_DRIVERS:
            raise UsageError(f"1 to {MOST_DRIVERS} drivers can be watched side by side, got {len(drivers)}")
        self.drivers, self.env, self.handle = list(drivers), handle.env, handle
        self.capacity = min(handle.env.max_steps, MOST_DECISIONS)
        worlds, _, keys = begin(handle.env, jax.random.key(seed), jnp.arange(episode, episode + 1))
        start: HighwayState = jax.tree.map(lambda leaf: leaf[0], worlds)
        self._key = keys[0]
        self.lines = [Line([_Ride([start], []) for _ in drivers], 0, "the episode")]
        self.abouts: list[About] = []
        # The support that all laws of the first driver share, if they do.
        self.atoms: Float[np.ndarray, " n"] | None = None
        for number, driver in enumerate(self.drivers):
            _, _, words = self._decide(number, start, 0, None)
            self.abouts.append(describe(driver.agent, driver.name, handle, seed, "road", words))

    def drive(self, line: int, count: int = 1) -> dict[int, range]:
        """Let all drivers of a line make decisions, those whose episode is not over; returns which are new."""
        found = {}
        for number, ride in enumerate(self.line(line).rides):
            first = len(ride.steps)
            for _ in range(count):
                self._step(number, ride)
            if len(ride.steps) > first:
                found[number] = range(first, len(ride.steps))
        return found

    def branch(self, line: int, moment: int, action: int) -> int:
        """Begin a line at a moment, where the first driver takes an action; returns its number.

        Raises:
            UsageError: for a line, moment or action that is not there, or too many lines.
        """
        names = self.abouts[0].actions
        if not 0 <= action < len(names):
            raise UsageError(f"action {action} is not there: choose 0 to {len(names) - 1}")
        state, prefix = self._moment(line, moment)
        made = self._fork(prefix, state, moment, f"{names[action]} at {moment + 1}", True)
        self._step(0, self.lines[made].rides[0], action)
        for number in range(1, len(self.drivers)):
            self._step(number, self.lines[made].rides[number])
        return made

    def edit(self, line: int, moment: int, edit: Edit) -> int:
        """Begin a line at a moment, with the traffic changed; returns its number.

        Raises:
            UsageError: for a line, moment or vehicle that is not there, or too many lines.
        """
        state, prefix = self._moment(line, moment)
        changed = edit.apply(self.env, state)
        if moment > 0:
            prefix.steps[-1] = _ending_in(prefix.steps[-1], changed)
        made = self._fork(prefix, changed, moment, f"traffic changed at {moment + 1}")
        self.drive(made)
        return made

    def line(self, number: int) -> Line:
        """The line of a number.

        Raises:
            UsageError: when it is not there.
        """
        if not 0 <= number < len(self.lines):
            raise UsageError(f"line {number} is not there: there are {len(self.lines)}")
        return self.lines[number]

    def state(self, line: int, moment: int, driver: int = 0) -> HighwayState:
        """The state of a driver's world at a moment of a line."""
        ride = self.line(line).rides[driver]
        if not 0 <= moment < len(ride.states):
            raise UsageError(f"moment {moment} is not there: the line has {len(ride.states)}")
        return ride.states[moment]

    def arrays(self, line: int, driver: int, decisions: range) -> dict[str, np.ndarray]:
        """Of decisions of a driver, what a recording holds; ``cars`` and ``crashed`` have the start in the first.

        Of drivers after the first one, only what happened: before a fork they did nothing of their own.
        """
        steps = self.line(line).rides[driver].steps[decisions.start : decisions.stop]
        names = steps[0] if driver == 0 else HAPPENED
        return {name: np.concatenate([step[name] for step in steps]) for name in names}

    def sentence(self, line: int, driver: int, decision: int) -> str:
        """What a driver prefers at a decision, and by how much."""
        own = driver if decision >= self.line(line).fork else 0
        step, about = self.line(line).rides[own].steps[decision], self.abouts[own]
        taken, value = int(step["action"][0]), step["value"][0]
        if about.aleatory is None:
            return about.actions[taken] if not about.parts else Reasons(about.actions, taken, value).sentence
        mean, additive = step["parts"][0]
        return Reasons(about.actions, taken, value, mean, mean - additive, additive - value).sentence

    def realised(self, line: int) -> Float[np.ndarray, " T"] | None:
        """The first driver's discounted returns in a line that ended, where nothing follows its end; else None."""
        ride, about = self.line(line).rides[0], self.abouts[0]
        if not ride.over or not (ride.steps[-1]["terminated"][0] or about.time_limit == "terminal"):
            return None
        total, found = 0.0, np.zeros(len(ride.steps), np.float32)
        for t in reversed(range(len(ride.steps))):
            total = float(ride.steps[t]["reward"][0]) + about.gamma * total
            found[t] = total
        return found

    def _moment(self, line: int, moment: int) -> tuple[HighwayState, _Ride]:
        """A moment of the first driver, before one of his decisions."""
        ride = self.line(line).rides[0]
        if not 0 <= moment < len(ride.steps):
            raise UsageError(f"decision {moment} is not there: the line has {len(ride.steps)}")
        if len(self.lines) >= MOST_LINES:
            raise UsageError(f"there are {MOST_LINES} lines, and no room for more: load the page again to begin anew")
        return ride.states[moment], ride.until(moment)

    def _fork(self, prefix: _Ride, state: HighwayState, moment: int, words: str, forced: bool = False) -> int:
        rides = [_Ride([*prefix.states[:moment], state], prefix.steps) for _ in self.drivers]
        self.lines.append(Line(rides, moment, words, forced))
        return len(self.lines) - 1

    def _step(self, number: int, ride: _Ride, forced: int | None = None) -> None:
        if ride.over or len(ride.steps) >= self.capacity:
            return
        t = len(ride.steps)
        following, step, _ = self._decide(number, ride.states[-1], t, forced)
        ride.states.append(following)
        ride.steps.append(step)
        ride.over = bool(step["terminated"][0] or step["truncated"][0])

    def _decide(
        self, number: int, world: HighwayState, t: int, forced: int | None
    ) -> tuple[HighwayState, dict[str, np.ndarray], dict[str, Any]]:
        """One decision: the next state, what a recording holds of it, and the words of its numbers."""
        driver, count = self.drivers[number], self.handle.spec.num_actions
        keys = _keys(self._key, jnp.int32(t))
        obs, chosen = _choose(driver.agent, driver.state, self.env, world, keys[0])
        action = chosen if forced is None else jnp.int32(forced)
        following, after = _go(self.env, world, action, keys[1])
        worlds = jax.tree.map(lambda leaf: leaf[None], world)
        picture = traced(self.env, worlds, action[None])
        seen, acted, told, drawn = jax.device_get((obs, action, after, picture))
        cars, crashed, rows, paths, wrecked = (np.asarray(part) for part in drawn)
        if t == 0:
            cars = np.concatenate([_cars(world)[None, None], cars], axis=1)
            crashed = np.concatenate([np.asarray(world.crashed)[None, None], crashed], axis=1)
        flat = np.asarray(seen, np.float32).reshape(1, -1)
        taken = np.asarray(acted, np.int32).reshape(1)
        arrays, words = told_at(driver.agent, driver.state, flat, np.asarray(chosen, np.int32).reshape(1), count, 1)
        step = {
            "obs": flat,
            "action": taken,
            "reward": np.asarray(told.reward, np.float32).reshape(1),
            "terminated": np.asarray(told.terminated, bool).reshape(1),
            "truncated": np.asarray(told.truncated, bool).reshape(1),
            "cars": cars[0].astype(np.float32),
            "crashed": crashed[0],
            "seen": rows.astype(np.int32),
            "paths": paths.astype(np.float32),
            "wrecked": wrecked,
        }
        if number == 0 and "atoms" in arrays and arrays["atoms"].ndim == 1:
            self.atoms = arrays["atoms"]
        if arrays.get("atoms", np.zeros((1, 1))).ndim == 1:
            del arrays["atoms"]
        return following, step | arrays, words


def _cars(world: HighwayState) -> Float[np.ndarray, "V 4"]:
    """Where the vehicles of a state are drawn."""
    return np.stack([world.x, world.y, world.heading, world.speed], axis=-1).astype(np.float32)


def _ending_in(step: dict[str, np.ndarray], world: HighwayState) -> dict[str, np.ndarray]:
    """A decision whose last picture is that of another state: the traffic that was changed is drawn at once."""
    cars, crashed = np.array(step["cars"]), np.array(step["crashed"])
    cars[-1], crashed[-1] = _cars(world), np.asarray(world.crashed)
    return {**step, "cars": cars, "crashed": crashed}


@jax.jit
def _keys(key: jax.Array, t: Array) -> jax.Array:
    """The keys of a decision, as `sentinel_rl.evaluate` draws them."""
    return jax.random.split(jax.random.fold_in(key, t))


@jax.jit
def _choose(agent: Agent, state: Any, env: Highway, world: HighwayState, key: jax.Array) -> tuple[Array, Array]:
    obs = env.observe(world)
    return obs, greedy_in(agent, state, env, world, obs, key)


@jax.jit
def _go(env: Highway, world: HighwayState, action: Array, key: jax.Array) -> tuple[HighwayState, TimeStep]:
    return env.step(world, action, key)
