"""The highway of highway-env, as a JAX environment."""

import functools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl.envs.highway import batching, road
from sentinel_rl.envs.highway.checks import check
from sentinel_rl.envs.highway.dynamics import Rules, Traces, advance, trace
from sentinel_rl.envs.highway.numerics import sin_cos
from sentinel_rl.envs.highway.observation import FEATURES, observe, rows_seen
from sentinel_rl.envs.highway.reset import OTHERS_SPEED, draw_state, steps_until_due
from sentinel_rl.envs.highway.scenarios import SCENARIOS, STRENGTH, scenario_settings
from sentinel_rl.envs.highway.shift import Shift, number
from sentinel_rl.envs.highway.state import HighwayState
from sentinel_rl.envs.highway.view import draw_highway
from sentinel_rl.envs.spec import EnvSpec, TimeStep

ACTION_NAMES = ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")
# Of 1 m/s, in the diagnostics.
SPEED_BINS = 40

PRESETS: dict[str, dict[str, Any]] = {
    "highway-v1": {},
    "highway-v0": {"lanes_count": 4, "vehicles_count": 50},
    "highway-fast-v0": {
        "lanes_count": 3,
        "vehicles_count": 20,
        "duration": 30,
        "simulation_frequency": 5,
        "ego_spacing": 1.5,
        "others_collide": False,
    },
}


def _numbers(values: Any) -> Any:
    return tuple(map(number, values)) if isinstance(values, list | tuple) else values


class Highway(eqx.Module):
    """Drive fast on a road with traffic, keep right, and do not crash.

    The ego chooses once a second between 0 (LANE_LEFT), 1 (IDLE), 2 (LANE_RIGHT), 3 (FASTER) and 4 (SLOWER); its
    speeds are 20, 25 and 30 m/s. The others follow IDM and MOBIL. In float64 every decision equals highway-env 1.12.1
    (see ``docs/highway.md``). With the ego's wish for a lane ``l`` and its speed ``v cos h`` scaled from
    `reward_speed_range` to ``s`` in [0, 1] the reward is

        r = collision_reward [crashed] + right_lane_reward l / (lanes - 1) + high_speed_reward s,

    scaled from ``[collision_reward, high_speed_reward + right_lane_reward]`` to [0, 1], and 0 off the road. The
    episode *terminates* with a crash of the ego and is *truncated* after `duration` seconds; both may be true at once.
    Settings have the names and defaults of highway-env's configuration, with the paper's 5 lanes and 10 vehicles.

    `step` and `reset` are made for ``jax.vmap``: a batch runs as one program with the batch on the last axis. The three
    settings that only say how an episode begins, `vehicles_density`, `others_speed` and `ego_spacing`, are leaves of
    the environment as a pytree: a function compiled with the environment as its argument serves all their values.

    Args:
        lanes_count: number of lanes.
        vehicles_count: number of other vehicles.
        vehicles_density: of the others at the start; 2 halves their distances.
        others_speed: (low, high), between which the speed is drawn that each of the others starts with and wants.
            highway-env always draws it from 0.7 to 0.8 of the speed limit of 30 m/s; there the same takes a subclass of
            its ``IDMVehicle`` with another ``create_random`` (see ``docs/highway.md``).
        duration: seconds of an episode.
        simulation_frequency: steps of the simulation per second.
        policy_frequency: decisions per second.
        ego_spacing: how far the ego starts behind the others, relative to their distances.
        initial_lane_id: lane of the ego at the start; drawn when None.
        observed_vehicles: rows of the observation, the ego included.
        collision_reward: see above.
        right_lane_reward: see above.
        high_speed_reward: see above.
        reward_speed_range: see above.
        normalize_reward: whether the reward is scaled to [0, 1].
        offroad_terminal: whether leaving the road ends the episode.
        others_collide: whether vehicles other than the ego can hit each other; not so in ``highway-fast-v0``.
        any_crash_terminal: whether a crash of any vehicle ends the episode, not only one of the ego.
        shift: wrecks and events that highway-env does not have by itself; see `Highway.scenario`.

    Example:
        >>> env = Highway.preset("highway-v1", duration=20)
        >>> states, obs = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 3))
        >>> obs.shape
        (3, 25)
    """

    lanes_count: int = eqx.field(static=True, default=5)
    vehicles_count: int = eqx.field(static=True, default=10)
    vehicles_density: float = eqx.field(converter=number, default=1.0)
    others_speed: tuple[float, float] = eqx.field(converter=_numbers, default=OTHERS_SPEED)
    duration: float = eqx.field(static=True, default=40.0)
    simulation_frequency: int = eqx.field(static=True, default=15)
    policy_frequency: int = eqx.field(static=True, default=1)
    ego_spacing: float = eqx.field(converter=number, default=2.0)
    initial_lane_id: int | None = eqx.field(static=True, default=None)
    observed_vehicles: int = eqx.field(static=True, default=5)
    collision_reward: float = eqx.field(static=True, default=-1.0)
    right_lane_reward: float = eqx.field(static=True, default=0.1)
    high_speed_reward: float = eqx.field(static=True, default=0.4)
    reward_speed_range: tuple[float, float] = eqx.field(static=True, default=(20.0, 30.0))
    normalize_reward: bool = eqx.field(static=True, default=True)
    offroad_terminal: bool = eqx.field(static=True, default=False)
    others_collide: bool = eqx.field(static=True, default=True)
    any_crash_terminal: bool = eqx.field(static=True, default=False)
    shift: Shift | None = None

    def __check_init__(self) -> None:
        check(self)

    @classmethod
    def preset(cls, name: str, scenario: str | None = None, strength: float = STRENGTH, **settings: Any) -> Self:
        """The highway of a name.

        Args:
            name: ``"highway-v1"`` is the paper's (5 lanes, 10 other vehicles, 40 decisions), ``"highway-v0"`` and
                ``"highway-fast-v0"`` are highway-env's own.
            scenario: a shift of its traffic, see `Highway.scenario`; as text it can be a setting of a study.
            strength: of the scenario.
            settings: replace those of the name and the scenario.

        Raises:
            ValueError: for a name that is not one of the three, or an impossible setting.
        """
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
        shifted = {} if scenario is None else scenario_settings(scenario, strength)
        return cls(**(PRESETS[name] | shifted | settings))

    @classmethod
    def scenario(cls, name: str, strength: float = STRENGTH, **settings: Any) -> Self:
        """The paper's highway with traffic that it does not have in training.

        Args:
            name: one of `scenario_names`.
            strength: above 0, where the traffic is as in training; the tables have 1, 2 and 3.
            settings: replace those of the scenario.

        Raises:
            ValueError: for an unknown name, or an impossible strength or setting.

        Example:
            >>> Highway.scenario("dense", 1).vehicles_density
            2.0
            >>> Highway.scenario("braker").spec.name
            'sentinel/highway-braker-v1'
        """
        return cls.preset("highway-v1", name, strength, **settings)

    @property
    def spec(self) -> EnvSpec:
        """Five numbers in [-1, 1] for every observed vehicle, five actions."""
        size = FEATURES * self.observed_vehicles
        return EnvSpec(
            name=self._name(),
            obs_size=size,
            num_actions=5,
            reward_range=self._reward_range(),
            max_steps=self.max_steps,
            obs_low=(-1.0,) * size,
            obs_high=(1.0,) * size,
            action_names=ACTION_NAMES,
            obs_shape=(self.observed_vehicles, FEATURES),
            structure="rows",
        )

    @property
    def max_steps(self) -> int:
        """Decisions of a full episode, counted as highway-env adds up its time."""
        time, steps = 0.0, 0
        while time < self.duration:
            time += 1 / self.policy_frequency
            steps += 1
        return steps

    @property
    def render_fps(self) -> int:
        """Decisions per second."""
        return self.policy_frequency

    def reset(self, key: jax.Array) -> tuple[HighwayState, Float[Array, " obs"]]:
        """Draw the vehicles; all others start ahead of the ego."""
        state = draw_state(
            key,
            self.vehicles_count + 1,
            self.lanes_count,
            (self.ego_spacing, 1 / self.vehicles_density),
            self.others_speed,
            self.initial_lane_id,
            self.simulation_frequency,
        )
        if self.shift is not None:
            state = self.shift.begin(state, self.lanes_count, self.simulation_frequency)
        return state, self.observe(state)

    def step(self, state: HighwayState, action: Int[Array, ""], key: jax.Array) -> tuple[HighwayState, TimeStep]:
        """Drive for one decision. The key is not used: nothing is random here.

        An action that does not exist makes the ego's speed, the observation and the reward NaN.
        """
        result: tuple[HighwayState, TimeStep] = batching.batched(
            _step, self, self._intervened(state), jnp.asarray(action)
        )
        return result

    def observe(self, state: HighwayState) -> Float[Array, " obs"]:
        """What the ego sees of a state."""
        obs: Array = batching.batched(_observe, self, state)
        return obs

    def trace(self, state: HighwayState, action: Int[Array, ""]) -> tuple[HighwayState, Traces]:
        """Drive for one decision as `step` does, and tell where all vehicles are after each simulation step."""
        result: tuple[HighwayState, Traces] = batching.batched(
            _trace, self, self._intervened(state), jnp.asarray(action)
        )
        return result

    def seen(self, state: HighwayState) -> Int[Array, " rows"]:
        """The vehicles in the rows of the observation, by number; -1 where a row is empty."""
        rows: Array = batching.batched(_seen, self, state)
        return rows

    def render(self, state: HighwayState) -> UInt8[np.ndarray, "height width 3"]:
        """Draw the road around the ego."""
        return draw_highway(state, self.lanes_count)

    def diagnostics(self, state: HighwayState) -> dict[str, Float[Array, "..."]]:
        """How fast the ego drives (in m/s, and in bins of 1 m/s from 0), and in which lane (0 is the left-most)."""
        lane = road.closest_lane(state.y[0], self.lanes_count).astype(jnp.int32)
        speed = jnp.clip(jnp.floor(state.speed[0]), 0, SPEED_BINS - 1).astype(jnp.int32)
        return {
            "speed": jax.nn.one_hot(speed, SPEED_BINS),
            "mean_speed": state.speed[0],
            "lane": jax.nn.one_hot(lane, self.lanes_count),
        }

    def _name(self) -> str:
        """The name of the preset or scenario that this is, or that of them all."""
        return next(
            (name for name, env in _presets_and_scenarios(type(self)) if (env == self) is True), "sentinel/highway"
        )

    def _intervened(self, state: HighwayState) -> HighwayState:
        """The state after the events that are due before a decision."""
        if self.shift is None:
            return state
        return self.shift.intervene(state, self.lanes_count, self.policy_frequency)

    def _rules(self) -> Rules:
        return Rules(
            self.lanes_count,
            self.simulation_frequency,
            self.simulation_frequency // self.policy_frequency,
            steps_until_due(0.0, self.simulation_frequency),
            self.others_collide,
        )

    def _reward(self, state: HighwayState) -> Float[Array, "..."]:
        """The reward of the state that was reached."""
        _, cos = sin_cos(state.heading[0])
        crashed, lane = (value[0].astype(state.x.dtype) for value in (state.crashed, state.target_lane))
        slow, fast = self.reward_speed_range
        reward = (
            self.collision_reward * crashed
            + self.right_lane_reward * lane / max(self.lanes_count - 1, 1)
            + self.high_speed_reward * jnp.clip((state.speed[0] * cos - slow) / (fast - slow), 0.0, 1.0)
        )
        if self.normalize_reward:
            best = self.high_speed_reward + self.right_lane_reward
            reward = (reward - self.collision_reward) / (best - self.collision_reward)
        return jnp.where(road.off_road(state.y[0], self.lanes_count), 0.0, reward)

    def _terminated(self, state: HighwayState) -> Bool[Array, "..."]:
        crashed = jnp.any(state.crashed, axis=0) if self.any_crash_terminal else state.crashed[0]
        return crashed | road.off_road(state.y[0], self.lanes_count) if self.offroad_terminal else crashed

    def _reward_range(self) -> tuple[float, float]:
        """The smallest and the largest sum of the three parts, or 0 off the road."""
        parts = (self.collision_reward, self.right_lane_reward, self.high_speed_reward)
        low, high = (sum(pick(part, 0.0) for part in parts) for pick in (min, max))
        if self.normalize_reward:
            best = self.high_speed_reward + self.right_lane_reward
            low, high = sorted((end - self.collision_reward) / (best - self.collision_reward) for end in (low, high))
        return min(low, 0.0), max(high, 0.0)


def _observe(env: Highway, state: HighwayState) -> Float[Array, "obs ..."]:
    return observe(state, env.observed_vehicles, env.lanes_count)


def _seen(env: Highway, state: HighwayState) -> Int[Array, "rows ..."]:
    return rows_seen(state, env.observed_vehicles)


def _trace(env: Highway, state: HighwayState, action: Int[Array, "..."]) -> tuple[HighwayState, Traces]:
    return trace(env._rules(), state, action)


def _step(env: Highway, state: HighwayState, action: Int[Array, "..."]) -> tuple[HighwayState, TimeStep]:
    """Step worlds beside each other: the batch is the last axis."""
    state = advance(env._rules(), state, action)
    after = TimeStep(
        obs=_observe(env, state),
        reward=env._reward(state),
        terminated=env._terminated(state),
        truncated=state.time >= env.max_steps,
    )
    return state, after


@functools.cache
def _presets_and_scenarios(kind: type[Highway]) -> tuple[tuple[str, Highway], ...]:
    """The presets and scenarios with their names: made once, as every `Highway.spec` compares with them."""
    known = {f"sentinel/{name}": settings for name, settings in PRESETS.items()}
    known |= {each.env: each.settings(STRENGTH) for each in SCENARIOS.values()}
    return tuple((name, kind(**settings)) for name, settings in known.items())
