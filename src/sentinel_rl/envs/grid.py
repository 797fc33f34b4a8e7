"""Small worlds on a grid whose exact answers are known: the Guarded Maze, a windy cliff, and a maze with a room unseen.

`sentinel_rl.envs.grid_planning` computes the best mean, the best CVaR and the exact law of the return of any policy.
"""

import math
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl.envs.canvas import Canvas
from sentinel_rl.envs.spec import EnvSpec, TimeStep

ACTION_NAMES = ("UP", "RIGHT", "DOWN", "LEFT")
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
WALL, START, GOAL, GUARDED, CLIFF, UNSEEN, FLOOR = "#SGgX?."
_PIXELS = 40
_COLOURS = {
    WALL: (70, 70, 70),
    START: (225, 235, 250),
    GOAL: (120, 200, 120),
    GUARDED: (245, 200, 110),
    CLIFF: (205, 90, 80),
    UNSEEN: (215, 200, 235),
    FLOOR: (250, 250, 250),
}


def exponential_costs(mean: float, parts: int = 8) -> tuple[float, ...]:
    """The means of an exponential distribution within equally likely parts: its mean, and its tails at their edges.

    Example:
        >>> costs = exponential_costs(32.0)
        >>> round(sum(costs) / 8, 9), round((costs[-1] + costs[-2]) / 2, 3)  # the worst quarter: 32 (1 + log 4)
        (32.0, 76.361)
    """

    def above(share: float) -> float:
        return 0.0 if share == 0 else mean * share * (1 - math.log(share))

    edges = [1 - i / parts for i in range(parts + 1)]
    return tuple(parts * (above(low) - above(high)) for low, high in pairwise(edges))


# The 8 by 8 maze of CeSoR: the way to the goal through the guarded cell is short, the one around the walls is long.
_GUARDED_MAZE = (
    "########",
    "#......#",
    "#..###.#",
    "#....#.#",
    "#....#.#",
    "#....#G#",
    "#S...g.#",
    "########",
)
# A ledge above a cliff, and a sheltered way around it.
_WINDY_CLIFF = (
    "############",
    "#..........#",
    "#.########.#",
    "#.########.#",
    "#S........G#",
    "##XXXXXXXX##",
    "############",
)
_ROOMS = (
    "#########",
    "#.......#",
    "#.#####.#",
    "#.#???#.#",
    "#S?????G#",
    "#.#???#.#",
    "#.#####.#",
    "#.......#",
    "#########",
)

PRESETS: dict[str, dict[str, Any]] = {
    "GuardedMaze-v0": {
        "rows": _GUARDED_MAZE,
        "slip": 0.1,
        "goal_reward": 16.0,
        "costly_steps": 32,
        "max_steps": 100,
        "guard_probability": 0.2,
        "guard_costs": exponential_costs(32.0),
    },
    "WindyCliff-v0": {"rows": _WINDY_CLIFF, "wind": 0.02, "goal_reward": 20.0, "cliff_cost": 20.0, "max_steps": 60},
    "MazeGap-v0": {"rows": _ROOMS, "slip": 0.1, "random_start": True, "goal_reward": 20.0, "walled": True},
    "MazeGapOpen-v0": {"rows": _ROOMS, "slip": 0.1, "random_start": True, "goal_reward": 20.0},
}


class GridState(NamedTuple):
    """Where the agent is, by the number of its cell, and what the episode has drawn.

    Args:
        cell: counted over the cells that are not walls, row by row.
        time: steps so far.
        cost: of the guard, 0 where there is none in this episode.
        met: whether the guarded zone has been entered.
    """

    cell: Int[Array, ""]
    time: Int[Array, ""]
    cost: Float[Array, ""]
    met: Bool[Array, ""]


class Tables(NamedTuple):
    """A map as arrays over its C cells that are not walls.

    Args:
        kinds: the character of each cell.
        places: row and column.
        outcomes: where each action may lead.
        probabilities: of the outcomes.
        starts: the cells to start in, equally likely.
    """

    kinds: tuple[str, ...]
    places: Int[np.ndarray, "C 2"]
    outcomes: Int[np.ndarray, "C 4 6"]
    probabilities: Float[np.ndarray, "C 4 6"]
    starts: Int[np.ndarray, " S"]


class GridWorld(eqx.Module):
    """Walk from the start to the goal; every step costs, and there are dangers on the short way.

    The map has walls ``#``, floor ``.``, the start ``S``, the goal ``G``, which ends the episode with `goal_reward`, a
    cliff ``X``, which ends it with ``-cliff_cost``, guarded cells ``g``, and cells ``?`` that training does not show.
    A step costs `step_cost`, the last one of an episode and those after `costly_steps` nothing. With the probability
    `slip` a step goes to a side instead; with the probability `wind` it is followed by a push downwards. Against a wall
    nothing moves. In an episode with a guard (`guard_probability`) the first guarded cell that is entered costs one of
    `guard_costs`, all equally likely; the agent does not see whether there is one.

    Returns are judged without a discount (``spec.gamma`` is 1), so that they can be compared with the exact answers.

    Args:
        rows: the map.
        slip: see above.
        wind: see above.
        step_cost: see above.
        goal_reward: see above.
        cliff_cost: see above.
        costly_steps: all steps cost when None.
        guard_probability: see above.
        guard_costs: see above.
        max_steps: the episode is truncated after so many.
        random_start: start in any cell that ends nothing, instead of ``S``.
        walled: whether the cells ``?`` are walls, so that training cannot show them.
        observe: ``"place"`` is the row and the column, scaled to [0, 1], as in CeSoR; ``"cell"`` is one-hot.

    Example:
        >>> maze = GridWorld.preset("GuardedMaze-v0")
        >>> state, obs = maze.reset(jax.random.key(0))
        >>> state, after = maze.step(state, jnp.int32(1), jax.random.key(1))
        >>> print(after.obs.shape, after.reward)
        (2,) -1.0
    """

    rows: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    slip: float = eqx.field(static=True, default=0.0)
    wind: float = eqx.field(static=True, default=0.0)
    step_cost: float = eqx.field(static=True, default=1.0)
    goal_reward: float = eqx.field(static=True, default=16.0)
    cliff_cost: float = eqx.field(static=True, default=0.0)
    costly_steps: int | None = eqx.field(static=True, default=None)
    guard_probability: float = eqx.field(static=True, default=0.0)
    guard_costs: tuple[float, ...] = eqx.field(static=True, converter=tuple, default=())
    max_steps: int = eqx.field(static=True, default=60)
    random_start: bool = eqx.field(static=True, default=False)
    walled: bool = eqx.field(static=True, default=False)
    observe: Literal["place", "cell"] = eqx.field(static=True, default="place")

    def __check_init__(self) -> None:
        width = {len(row) for row in self.rows}
        cells = "".join(self.rows)
        if len(width) != 1 or set(cells) - set(_COLOURS) or GOAL not in cells:
            raise ValueError(
                f"rows = {self.rows!r} is no map: give rows of equal length of {''.join(_COLOURS)}, with G"
            )
        edge = self.rows[0] + self.rows[-1] + "".join(row[0] + row[-1] for row in self.rows)
        if set(edge) != {WALL} or (START not in cells and not self.random_start):
            raise ValueError(f"rows = {self.rows!r} needs walls # around it, and a start S")
        for name in ("slip", "wind", "guard_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)!r} is not allowed: give a probability")
        if self.guard_probability > 0 and not self.guard_costs:
            raise ValueError("a guard needs guard_costs, for example exponential_costs(32.0)")
        if self.max_steps < 1:
            raise ValueError(f"max_steps = {self.max_steps} is not allowed: give at least 1")

    @classmethod
    def preset(cls, name: str, **settings: Any) -> Self:
        """The world of a name: ``GuardedMaze-v0``, ``WindyCliff-v0``, ``MazeGap-v0`` or ``MazeGapOpen-v0``.

        Raises:
            ValueError: for another name, or an impossible setting.
        """
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
        return cls(**(PRESETS[name] | settings))

    @property
    def spec(self) -> EnvSpec:
        """Two numbers or a one-hot cell, four actions."""
        names = [name for name, settings in PRESETS.items() if type(self)(**settings) == self]
        size = 2 if self.observe == "place" else len(self.tables.kinds)
        worst = max(self.step_cost, self.cliff_cost) + max(self.guard_costs, default=0.0)
        return EnvSpec(
            name=f"sentinel/{names[0]}" if names else "sentinel/Grid",
            obs_size=size,
            num_actions=4,
            reward_range=(-worst, max(self.goal_reward, 0.0)),
            max_steps=self.max_steps,
            obs_low=(0.0,) * size,
            obs_high=(1.0,) * size,
            action_names=ACTION_NAMES,
            gamma=1.0,
        )

    @property
    def tables(self) -> Tables:
        """The map as arrays."""
        return _tables(self.rows, self.slip, self.wind, self.random_start, self.walled)

    @property
    def render_fps(self) -> int:
        """Steps per second of a film."""
        return 4

    def reset(self, key: jax.Array) -> tuple[GridState, Float[Array, " obs"]]:
        """Draw the start and the guard."""
        start_key, guard_key, cost_key = jax.random.split(key, 3)
        starts = jnp.array(self.tables.starts)
        cell = starts[jax.random.randint(start_key, (), 0, len(starts))]
        cost = jnp.zeros(())
        if self.guard_probability > 0:
            drawn = jnp.array(self.guard_costs)[jax.random.randint(cost_key, (), 0, len(self.guard_costs))]
            cost = jnp.where(jax.random.uniform(guard_key) < self.guard_probability, drawn, 0.0)
        state = GridState(cell, jnp.zeros((), jnp.int32), cost, jnp.zeros((), bool))
        return state, self._observed(cell)

    def step(self, state: GridState, action: Int[Array, ""], key: jax.Array) -> tuple[GridState, TimeStep]:
        """Walk one cell; an action that does not exist makes the reward and the observation NaN."""
        exists = (action >= 0) & (action < len(ACTION_NAMES))
        choice = jnp.clip(action, 0, len(ACTION_NAMES) - 1)
        shares = jnp.cumsum(jnp.array(self.tables.probabilities, jnp.float32)[state.cell, choice])
        outcome = jnp.sum(jax.random.uniform(key) >= shares[:-1])
        cell = jnp.array(self.tables.outcomes)[state.cell, choice, outcome]
        at = {kind: self._is(kind, cell) for kind in (GOAL, CLIFF, GUARDED)}
        costs = True if self.costly_steps is None else state.time < self.costly_steps
        walked = jnp.where(costs, -self.step_cost, 0.0)
        reward = jnp.where(at[GOAL], self.goal_reward, jnp.where(at[CLIFF], -self.cliff_cost, walked))
        reward = reward - jnp.where(at[GUARDED] & ~state.met, state.cost, 0.0)
        state = GridState(cell, state.time + 1, state.cost, state.met | at[GUARDED])
        after = TimeStep(
            obs=jnp.where(exists, self._observed(cell), jnp.nan),
            reward=jnp.where(exists, reward, jnp.nan),
            terminated=at[GOAL] | at[CLIFF],
            truncated=state.time >= self.max_steps,
        )
        return state, after

    def in_gap(self, state: GridState) -> Bool[Array, ""]:
        """Whether a state is in a cell ``?``, which training with ``walled=True`` never shows."""
        return self._is(UNSEEN, state.cell)

    def render(self, state: GridState) -> UInt8[np.ndarray, "height width 3"]:
        """Draw the map with the agent on it."""
        height, width = len(self.rows), len(self.rows[0])
        canvas = Canvas(_PIXELS * width, _PIXELS * height, _COLOURS[WALL])
        places = [(int(row), int(column)) for row, column in self.tables.places]
        for kind, (row, column) in zip(self.tables.kinds, places, strict=True):
            left, low = _PIXELS * column + 1, _PIXELS * (height - 1 - row) + 1
            right, top = left + _PIXELS - 2, low + _PIXELS - 2
            canvas.polygon([(left, low), (right, low), (right, top), (left, top)], _COLOURS[kind])
        row, column = places[int(state.cell)]
        centre = (_PIXELS * (column + 0.5), _PIXELS * (height - row - 0.5))
        canvas.disc(centre, 0.3 * _PIXELS, (0, 114, 178))
        return canvas.pixels()

    def _observed(self, cell: Int[Array, ""]) -> Float[Array, " obs"]:
        if self.observe == "cell":
            return jax.nn.one_hot(cell, len(self.tables.kinds))
        scale = np.array([len(self.rows) - 1, len(self.rows[0]) - 1])
        return jnp.array(self.tables.places / scale, jnp.float32)[cell]

    def _is(self, kind: str, cell: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.array([each == kind for each in self.tables.kinds])[cell]


@cache
def _tables(rows: tuple[str, ...], slip: float, wind: float, random_start: bool, walled: bool) -> Tables:
    """Number the cells, and list where each action leads from each: straight or to a side, with or without wind."""
    places = [(i, j) for i, row in enumerate(rows) for j, kind in enumerate(row) if kind != WALL]
    kinds = tuple(rows[i][j] for i, j in places)
    shown = [cell for cell, kind in enumerate(kinds) if not (walled and kind == UNSEEN)]
    number = {places[cell]: cell for cell in shown}

    def move(cell: int, direction: int) -> int:
        (i, j), (di, dj) = places[cell], _MOVES[direction % 4]
        return number.get((i + di, j + dj), cell)

    def blown(cell: int) -> int:
        return cell if kinds[cell] in (GOAL, CLIFF) else move(cell, 2)

    outcomes = np.zeros((len(places), 4, 6), np.int32)
    for cell in range(len(places)):
        for action in range(4):
            reached = [move(cell, action + turn) for turn in (0, 1, 3)]
            outcomes[cell, action] = reached + [blown(each) for each in reached]
    sides = np.array([1 - slip, slip / 2, slip / 2])
    shares = np.concatenate([(1 - wind) * sides, wind * sides])
    ends = (GOAL, CLIFF)
    starts = [c for c in shown if (kinds[c] not in ends if random_start else kinds[c] == START)]
    return Tables(
        kinds, np.array(places), outcomes, np.broadcast_to(shares, outcomes.shape), np.array(starts, np.int32)
    )
