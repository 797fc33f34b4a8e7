"""Reference drivers of the highway, which learn nothing: a rule on what is observed, and a search with the exact model.

They tell how well the highway can be driven: the rule with the observation that a learning agent has, the search with
all that there is to know. ``docs/highway.md`` has their numbers. The other cars have drivers of their own, which are
part of the environment.
"""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl._checks import is_whole, shown
from sentinel_rl.agents.agent import FixedPolicy
from sentinel_rl.agents.options import checked, options_of, require_known
from sentinel_rl.envs.highway.env import ACTION_NAMES, PRESETS, Highway
from sentinel_rl.envs.highway.observation import FEATURES, scales
from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.highway.vehicle import LENGTH
from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import UsageError

LANE_LEFT, IDLE, LANE_RIGHT, FASTER, SLOWER = range(len(ACTION_NAMES))

# The speeds of the ego are 20, 25 and 30 m/s: above this one FASTER does nothing.
_TOP = 29.0
# The search tries actions in this order and takes the first of equals: IDLE rather than another one without effect.
_ORDER = (IDLE, FASTER, LANE_RIGHT, LANE_LEFT, SLOWER)
# More sequences than 5**6 at every decision are a slip.
_DEEPEST, _LONGEST_HOLD = 6, 100
_LANES = {env.spec.name: env.lanes_count for env in map(Highway.preset, PRESETS)}


class HighwayRule(FixedPolicy):
    """Drive by seven numbers on what is observed: change to the better free lane, FASTER when free, SLOWER when near.

    The gap of a lane is that to its nearest car ahead in `horizon` seconds at constant speeds, at most `sight`. A car
    counts on every lane whose centre it is within `margin` of, now or on its way of the next second. Another lane is
    better when its gap is larger: the lane to the right is given `right` metres more, the one to the left as much less.
    A lane can be entered when no car on it is or will be less than `ahead` in front of the ego.

    Where the gap is below `near`, the ego changes to a better lane, or brakes if there is none to enter. Else it goes
    FASTER where its gap is above `free`, unless it has its top speed already; else it changes to a better lane; else
    it is IDLE. The defaults were fitted to ``highway-v1`` by ``benchmarks/highway_drivers.py``.

    Args:
        horizon: seconds.
        sight: metres.
        right: metres.
        ahead: metres, between the centres of the cars.
        margin: in widths of a lane.
        near: metres.
        free: metres.
        lanes: of the road, by which the observation is scaled.

    Example:
        >>> alone = jnp.zeros(25).at[:4].set(jnp.array([1.0, 0.5, 0.8, 25 / 80]))  # the right-most lane, 25 m/s
        >>> ACTION_NAMES[HighwayRule().act((), alone, jnp.zeros(()), jax.random.key(0))]
        'FASTER'
    """

    horizon: float | Array = 2.0
    sight: float | Array = 90.0
    right: float | Array = 6.0
    ahead: float | Array = 12.5
    margin: float | Array = 0.6
    near: float | Array = 4.5
    free: float | Array = 30.0
    lanes: int = eqx.field(static=True, default=5)

    def act(self, state: Any, obs: Float[Array, " obs"], epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        """Choose an action; epsilon changes nothing."""
        if obs.size % FEATURES:
            raise UsageError(
                f"highway-rule needs rows of {FEATURES} numbers, as the highway has, got {obs.size} numbers"
            )
        rows = obs.reshape(-1, FEATURES)
        present = rows[1:, 0] > 0
        columns = [scale * rows[:, 1 + i] for i, scale in enumerate(scales(self.lanes))]
        _, own_y, own_speed, own_drift = (column[0] for column in columns)
        x, y, speed, drift = (column[1:] for column in columns)
        lane = jnp.round(own_y / LANE_WIDTH)
        place = (own_y + y) / LANE_WIDTH
        following = place + (own_drift + drift) / LANE_WIDTH
        later = x + self.horizon * speed

        def on(side: int) -> Bool[Array, " cars"]:
            """Who counts on the lane of the ego (0) or on the one to its left (-1) or right (1)."""
            left, right = jnp.minimum(place, following), jnp.maximum(place, following)
            return present & (left < lane + side + self.margin) & (right > lane + side - self.margin)

        def gap(side: int) -> Float[Array, ""]:
            ahead = jnp.where(on(side) & (x > 0), later - LENGTH, self.sight)
            return jnp.minimum(jnp.min(ahead, initial=jnp.inf), self.sight)

        def enterable(side: int) -> Bool[Array, ""]:
            beside = on(side) & (jnp.minimum(x, later) < self.ahead)
            return (lane + side >= 0) & (lane + side < self.lanes) & ~jnp.any(beside)

        here = gap(0)
        gains = jnp.stack([gap(-1) - self.right - here, gap(1) + self.right - here])
        gains = jnp.where(jnp.stack([enterable(-1), enterable(1)]), gains, -jnp.inf)
        change = jnp.where(gains[0] > gains[1], LANE_LEFT, LANE_RIGHT)
        is_better = jnp.max(gains) > 0
        speeds_up = (here > self.free) & (own_speed < _TOP)
        calm = jnp.where(speeds_up, FASTER, jnp.where(is_better, change, IDLE))
        pressed = jnp.where(is_better, change, SLOWER)
        return jnp.where(here < self.near, pressed, calm).astype(jnp.int32)


class HighwaySearch(FixedPolicy):
    """Plan with the exact model: try all sequences of some decisions from the true state, and begin the best one.

    A sequence is `depth` decisions and then IDLE for `hold` more. Its value is the discounted sum of the rewards until
    the episode ends, by a crash or by its limit. Planning starts anew at every decision: the driver remembers nothing.

    Args:
        depth: of the decisions that are tried, all ``5**depth`` sequences.
        hold: IDLE decisions after them.
        gamma: discount.
    """

    depth: int = eqx.field(static=True, default=2)
    hold: int = eqx.field(static=True, default=2)
    gamma: float | Array = 0.99

    def __check_init__(self) -> None:
        if not is_whole(self.depth, 1, _DEEPEST) or not is_whole(self.hold, 0, _LONGEST_HOLD):
            raise UsageError(
                f"a search has a depth of 1 to {_DEEPEST} and holds for 0 to {_LONGEST_HOLD} decisions, got "
                f"depth={shown(self.depth)} and hold={shown(self.hold)}"
            )

    def act(self, state: Any, obs: Array, epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        """An observation is not enough.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "highway-search plans with the true state of the environment, and here only an observation is given: "
            "use it where a JAX highway is played, for example sentinel/highway-v1"
        )

    def choose_in(self, state: Any, env: Env, env_state: Any, obs: Array, key: jax.Array) -> Int[Array, ""]:
        """The first action of the best sequence.

        Raises:
            UsageError: for an environment that is not the highway.
        """
        require_highway(env.spec, "highway-search")
        return jnp.asarray(_ORDER)[jnp.argmax(self.values(env, env_state))].astype(jnp.int32)

    def values(self, env: Env, env_state: Any) -> Float[Array, " A"]:
        """The value of the best sequence that begins with each action, in the order of `_ORDER`."""
        return self._tried(env, env_state)[0]

    def outcomes(self, env: Env, env_state: Any) -> tuple[Float[Array, " A"], Bool[Array, " A"]]:
        """For each action, the value of the best sequence that begins with it, and whether one of them has no crash.

        Raises:
            UsageError: for an environment that is not the highway.
        """
        require_highway(env.spec, "highway-search")
        values, survives = self._tried(env, env_state)
        places = jnp.asarray(np.argsort(_ORDER))
        return values[places], survives[places]

    def _tried(self, env: Env, env_state: Any) -> tuple[Float[Array, " A"], Bool[Array, " A"]]:
        """What becomes of the sequences that begin with each action, in the order of `_ORDER`."""
        plans = _plans(self.depth, self.hold)

        def follow(plan: Int[Array, " steps"]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
            def step(carry: Any, action: Array) -> tuple[Any, None]:
                world, total, discount, crashed = carry
                # The highway draws nothing after its reset: any key will do.
                world, after = env.step(world, action, jax.random.key(0))
                total = total + discount * after.reward
                crashed = crashed | (after.terminated & (discount > 0))
                going = ~(after.terminated | after.truncated)
                return (world, total, jnp.where(going, self.gamma * discount, 0.0), crashed), None

            start = env_state, jnp.zeros(()), jnp.ones(()), jnp.zeros((), bool)
            (_, total, _, crashed), _ = jax.lax.scan(step, start, plan)
            return total, ~crashed

        def best(own: Int[Array, "plans steps"]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
            totals, safe = jax.vmap(follow)(own)
            return jnp.max(totals), jnp.any(safe)

        # One first action after the other: a batch of all sequences in many worlds is too large for a CPU's cache.
        found: tuple[Array, Array] = jax.lax.map(best, jnp.asarray(plans))
        return found


def _plans(depth: int, hold: int) -> Int[np.ndarray, "A plans steps"]:
    """All sequences, by their first action."""
    every = np.array(list(itertools.product(_ORDER, repeat=depth)), np.int32)
    held = np.full((len(every), hold), IDLE, np.int32)
    return np.concatenate([every, held], axis=1).reshape(len(_ORDER), -1, depth + hold)


def require_highway(spec: EnvSpec, driver: str) -> None:
    """Raise `UsageError` unless an environment has the actions and the observation of the highway."""
    rows = spec.obs_shape is not None and spec.obs_shape[-1] == FEATURES
    if spec.action_names != ACTION_NAMES or not rows:
        raise UsageError(
            f"{driver} drives on the highway, and {spec.name} is another environment: "
            "use sentinel/highway-v1, sentinel/highway-v0 or sentinel/highway-fast-v0"
        )


RULE_OPTIONS, SEARCH_OPTIONS = options_of(HighwayRule), options_of(HighwaySearch)


def make_highway_rule(spec: EnvSpec, **options: Any) -> HighwayRule:
    """Make the rule for a highway from options: fields of `HighwayRule`.

    A road with a name tells its lanes; the lanes of another one are to be given where they are not 5.

    Raises:
        UsageError: for an unknown option, or an environment that is not the highway.
    """
    require_known(options, RULE_OPTIONS)
    require_highway(spec, "highway-rule")
    default = _LANES.get(spec.name, HighwayRule().lanes)
    return HighwayRule(**checked(HighwayRule, {"lanes": default, **options}))


def make_highway_search(spec: EnvSpec, **options: Any) -> HighwaySearch:
    """Make the search from options: fields of `HighwaySearch`.

    Raises:
        UsageError: for an unknown option or value, or an environment that is not the highway.
    """
    require_known(options, SEARCH_OPTIONS)
    require_highway(spec, "highway-search")
    return HighwaySearch(**checked(HighwaySearch, options))
