"""One decision on the highway: the ego's action, then all vehicles for a number of simulation steps.

Every function takes arrays ``[vehicles, *batch]``: worlds beside each other on the last axis.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.highway import collisions, drivers, vehicle
from sentinel_rl.envs.highway.collisions import Boxes, Verdict
from sentinel_rl.envs.highway.neighbours import Cars
from sentinel_rl.envs.highway.numerics import sin_cos
from sentinel_rl.envs.highway.pairs import row_numbers
from sentinel_rl.envs.highway.road import closest_lane, reachable
from sentinel_rl.envs.highway.staging import stage, when
from sentinel_rl.envs.highway.state import HighwayState

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
_SPEEDS = (20.0, 25.0, 30.0)
# Simulation steps per turn of the loop on an accelerator, where a turn has a price of its own.
_UNROLL = 3


class Rules(NamedTuple):
    """What the dynamics must know of the world.

    Args:
        lanes: number of lanes.
        frequency: simulation steps per second.
        substeps: simulation steps per decision.
        period: simulation steps between two thoughts of a driver about changing lane.
        others_collide: whether vehicles other than the ego can hit each other.
    """

    lanes: int
    frequency: int
    substeps: int
    period: int
    others_collide: bool


class Orders(NamedTuple):
    """What drivers have decided for one simulation step."""

    target: Float[Array, "V ..."]
    acceleration: Float[Array, "V ..."]
    slip: Float[Array, "V ..."]
    wait: Int[Array, "V ..."]


class _Moving(NamedTuple):
    """What changes from simulation step to simulation step; lanes are floats here, to be compared with places."""

    x: Float[Array, "V ..."]
    y: Float[Array, "V ..."]
    heading: Float[Array, "V ..."]
    speed: Float[Array, "V ..."]
    cos: Float[Array, "V ..."]
    sin: Float[Array, "V ..."]
    target: Float[Array, "V ..."]
    wait: Int[Array, "V ..."]
    verdict: Verdict


class Traces(NamedTuple):
    """Where the vehicles are after each simulation step of a decision; see `HighwayState`."""

    x: Float[Array, "S V ..."]
    y: Float[Array, "S V ..."]
    heading: Float[Array, "S V ..."]
    speed: Float[Array, "S V ..."]
    crashed: Bool[Array, "S V ..."]


def advance(rules: Rules, state: HighwayState, action: Int[Array, "..."]) -> HighwayState:
    """Carry out a decision."""
    state = _command(rules, state, action)
    substep, moving = _begin(rules, state)
    unroll = 1 if jax.default_backend() == "cpu" else min(_UNROLL, rules.substeps)
    end = jax.lax.fori_loop(0, rules.substeps, lambda _, now: substep(now), moving, unroll=unroll)
    return _finish(state, end)


def trace(rules: Rules, state: HighwayState, action: Int[Array, "..."]) -> tuple[HighwayState, Traces]:
    """Carry out a decision as `advance` does, and tell where the vehicles were on the way."""
    state = _command(rules, state, action)
    substep, moving = _begin(rules, state)

    def turn(now: _Moving, _: None) -> tuple[_Moving, Traces]:
        then = substep(now)
        return then, Traces(then.x, then.y, then.heading, then.speed, then.verdict.crashed)

    end, passed = jax.lax.scan(turn, moving, length=rules.substeps)
    return _finish(state, end), passed


def _begin(rules: Rules, state: HighwayState) -> tuple[Callable[[_Moving], _Moving], _Moving]:
    """One simulation step as a function, and where it starts."""
    always = state.time.reshape(-1)[0] >= 0
    sin, cos = stage(sin_cos, always, state.heading)
    moving = _Moving(
        state.x,
        state.y,
        state.heading,
        state.speed,
        cos,
        sin,
        state.target_lane.astype(state.x.dtype),
        state.wait,
        Verdict(state.crashed, state.hit, state.push_x, state.push_y),
    )

    def substep(now: _Moving) -> _Moving:
        orders = _decide(rules, now, state.target_speed, state.delta, always)
        return _collide(rules, stage(lambda: _move(rules.frequency, now, orders), always), always)

    return substep, moving


def _finish(state: HighwayState, end: _Moving) -> HighwayState:
    """The state after the last simulation step of a decision."""
    return state._replace(
        x=end.x,
        y=end.y,
        heading=end.heading,
        speed=end.speed,
        target_lane=end.target.astype(jnp.int32),
        wait=end.wait,
        time=state.time + 1,
        **end.verdict._asdict(),
    )


def _command(rules: Rules, state: HighwayState, action: Int[Array, "..."]) -> HighwayState:
    """Give the ego its action; one that does not exist makes its speed, and all that follows, NaN.

    FASTER and SLOWER count from the speed it *has*, LEFT and RIGHT from the lane it *wants*.
    """
    speed, lane = state.speed[0], state.target_lane[0]
    index = jnp.clip(jnp.round((speed - _SPEEDS[0]) / 10 * 2), 0, 2)
    wanted = jnp.clip(index + jnp.where(action == FASTER, 1.0, -1.0), 0, 2)
    target_speed = jnp.where((action == FASTER) | (action == SLOWER), 20 + 5 * wanted, state.target_speed[0])
    target_speed = jnp.where((action >= LEFT) & (action <= SLOWER), target_speed, jnp.nan)
    shift = jnp.where(action == LEFT, -1, jnp.where(action == RIGHT, 1, 0))
    side = jnp.clip(lane + shift, 0, rules.lanes - 1)
    lane = jnp.where(reachable(state.y[0], side.astype(state.y.dtype)), side, lane)
    return state._replace(
        target_speed=state.target_speed.at[0].set(target_speed), target_lane=state.target_lane.at[0].set(lane)
    )


def _decide(
    rules: Rules,
    now: _Moving,
    wanted: Float[Array, "V ..."],
    delta: Float[Array, "V ..."],
    always: Bool[Array, ""],
) -> Orders:
    """Let every driver decide: lane, steering, acceleration."""
    cars = stage(lambda: _seen(rules, now, wanted), always)
    awake = (row_numbers(now.x) > 0) & ~now.verdict.crashed
    changing = awake & (cars.lane != now.target)
    due = awake & ~changing & (now.wait <= 0)
    options = stage(drivers.weigh, always, cars, now.target, delta)
    chosen = stage(lambda: drivers.choose_lane(cars, now.target, options, due, rules.lanes), always)
    words = stage(drivers.rivals, always, cars, now.target, chosen, changing)
    gone = when(lambda: jnp.any(jnp.stack([jnp.any(word != 0) for word in words])), drivers.who_gives_up, words)
    target = jnp.where(drivers.unpack_bits(gone, now.x.shape[0]), cars.lane, chosen)
    sideways = jnp.where(target > cars.lane, *_sides(changing, options))
    behind = jnp.where(target != cars.lane, jnp.minimum(options.stay, sideways), options.stay)
    limit = drivers.MAX_ACCELERATION
    own = vehicle.SPEED_GAIN * (wanted - now.speed)
    acceleration = jnp.where(row_numbers(now.x) > 0, jnp.clip(behind, -limit, limit), own)
    slip = vehicle.slip_to_lane(now.y, now.heading, now.speed, target)
    return Orders(target, acceleration, slip, jnp.where(due, rules.period, now.wait))


def _sides(changing: Bool[Array, "V ..."], options: drivers.Options) -> tuple[Array, Array]:
    """The acceleration on the lane to the right, and to the left; in a change, `options.left` is where it leads."""
    return jnp.where(changing, options.left, options.right), options.left


def _seen(rules: Rules, now: _Moving, wanted: Float[Array, "V ..."]) -> Cars:
    """The vehicles as drivers see them."""
    lane = closest_lane(now.y, rules.lanes)
    return Cars(now.x, now.y, now.speed, now.cos, now.sin, lane, drivers.effort(now.speed, wanted))


def _move(frequency: int, now: _Moving, orders: Orders) -> _Moving:
    """Move all vehicles by one simulation step of the bicycle model.

    x += v cos(h + beta) dt, y += v sin(h + beta) dt, h += v sin(beta) / 2.5 dt, v += a dt, all from the old speed.
    A collision that was foreseen pushes now, and makes a wreck.
    """
    crashed, hit, push_x, push_y = now.verdict
    slip = jnp.where(crashed, 0.0, orders.slip)
    acceleration = vehicle.limit_acceleration(orders.acceleration, now.speed, crashed)
    straight = jnp.sqrt(1 - slip * slip)
    dt = 1 / frequency
    x = now.x + now.speed * (now.cos * straight - now.sin * slip) * dt + jnp.where(hit, push_x, 0.0)
    y = now.y + now.speed * (now.sin * straight + now.cos * slip) * dt + jnp.where(hit, push_y, 0.0)
    heading = now.heading + now.speed * slip / (vehicle.LENGTH / 2) * dt
    sin, cos = sin_cos(heading)
    verdict = Verdict(crashed | hit, jnp.zeros_like(hit), jnp.zeros_like(push_x), jnp.zeros_like(push_y))
    return _Moving(x, y, heading, now.speed + acceleration * dt, cos, sin, orders.target, orders.wait - 1, verdict)


def _collide(rules: Rules, now: _Moving, always: Bool[Array, ""]) -> _Moving:
    """Look for collisions after a move."""
    boxes = Boxes(now.x, now.y, now.cos, now.sin, now.speed / rules.frequency)

    def test(boxes: Boxes) -> Verdict:
        code = stage(lambda: collisions.partners(boxes, rules.others_collide), always)
        return collisions.judge(boxes, code)

    verdict = when(lambda: jnp.any(collisions.suspects(boxes, rules.others_collide)), test, boxes)
    return now._replace(verdict=verdict._replace(crashed=now.verdict.crashed | verdict.crashed))
