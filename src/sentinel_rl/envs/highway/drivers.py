"""How the other drivers decide: IDM for the acceleration, MOBIL for the lane.

IDM (Treiber, Hennecke and Helbing 2000) with highway-env's constants: a driver at speed ``v``, ``d`` metres behind a
vehicle that is slower by ``dv``, accelerates by

    3 (1 - (v / v_wanted)^delta) - 3 (gap / d)^2,     gap = 10 + 1.5 v + v dv / (2 sqrt(15)).

MOBIL (Kesting, Treiber and Helbing 2007) with politeness 0: change if this gains 0.2 m/s^2 and does not make the new
follower brake by more than 2 m/s^2. Whoever changes to the same lane ahead of a driver makes him give up his change.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.highway.neighbours import Ahead, Behind, Cars, ahead, behind
from sentinel_rl.envs.highway.numerics import not_zero
from sentinel_rl.envs.highway.pairs import fold, row_numbers
from sentinel_rl.envs.highway.road import SPEED_LIMIT, reachable

MAX_ACCELERATION = 6.0
_COMFORT = 3.0
_JAM_DISTANCE = 10.0
_HEADWAY = 1.5
_BRAKING = 0.5 / math.sqrt(3.0 * 5.0)
_GAIN_WANTED = 0.2
_BRAKING_IMPOSED = 2.0
_SLOWEST_CHANGE = 1.0
_WORD = 31


class Options(NamedTuple):
    """What each driver could do.

    Args:
        stay: acceleration behind the vehicle ahead on the current lane.
        left: acceleration on the lane to the left; during a change of lanes, on the lane it leads to.
        right: acceleration on the lane to the right.
        left_is_safe: whether the follower there need not brake hard.
        right_is_safe: whether the follower there need not brake hard.
    """

    stay: Float[Array, "V ..."]
    left: Float[Array, "V ..."]
    right: Float[Array, "V ..."]
    left_is_safe: Bool[Array, "V ..."]
    right_is_safe: Bool[Array, "V ..."]


def effort(speed: Float[Array, "*shape"], wanted: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``log(v / v_wanted)``, so that a power of it is one exponential."""
    return jnp.log(jnp.maximum(speed, 0.0) / jnp.abs(not_zero(jnp.clip(wanted, 0.0, SPEED_LIMIT))))


def weigh(cars: Cars, target: Float[Array, "V ..."], delta: Float[Array, "V ..."]) -> Options:
    """What each driver's lanes offer."""
    left, right = jnp.where(cars.lane != target, target, cars.lane - 1), cars.lane + 1
    return Options(
        stay=_behind_of(cars, delta, ahead(cars, cars.lane)),
        left=_behind_of(cars, delta, ahead(cars, left)),
        right=_behind_of(cars, delta, ahead(cars, right)),
        left_is_safe=_lets_in(cars, delta, behind(cars, left)),
        right_is_safe=_lets_in(cars, delta, behind(cars, right)),
    )


def choose_lane(
    cars: Cars, target: Float[Array, "V ..."], options: Options, due: Bool[Array, "V ..."], lanes: int
) -> Float[Array, "V ..."]:
    """The lanes that drivers want who are due to think about it; if both sides are good, the right one."""
    moving = due & (jnp.abs(cars.speed) >= _SLOWEST_CHANGE)
    to_left = moving & (cars.lane > 0) & reachable(cars.y, cars.lane - 1) & options.left_is_safe
    to_right = moving & (cars.lane < lanes - 1) & reachable(cars.y, cars.lane + 1) & options.right_is_safe
    chosen = jnp.where(to_left & (options.left - options.stay >= _GAIN_WANTED), cars.lane - 1, target)
    return jnp.where(to_right & (options.right - options.stay >= _GAIN_WANTED), cars.lane + 1, chosen)


def rivals(
    cars: Cars, before: Float[Array, "V ..."], after: Float[Array, "V ..."], changing: Bool[Array, "V ..."]
) -> tuple[Int[Array, "V ..."], ...]:
    """For each driver in a change: who else is changing to the same lane, close ahead.

    Drivers decide in the order of the list: those before him have already chosen (`after`), the others have not.

    Returns:
        bit ``j`` of word ``w`` stands for vehicle ``31 w + j``.
    """
    rows, count = row_numbers(cars.x), cars.x.shape[0]

    def word(start: int) -> Int[Array, "V ..."]:
        def compare(j: Any, other: tuple[Cars, Array, Array], bits: Int[Array, "V ..."]) -> Int[Array, "V ..."]:
            car, old_goal, new_goal = other
            goal = jnp.where(rows > j, new_goal, old_goal)
            closing = cars.speed - car.speed * (car.cos * cars.cos + car.sin * cars.sin)
            distance = car.x - cars.x
            close = (distance > 0) & (distance < _gap(cars.speed, closing))
            rival = changing & (goal == before) & (car.lane != before) & close
            return bits | jnp.where(rival, jnp.left_shift(1, j - start), 0)

        none = jnp.zeros(cars.x.shape, jnp.int32)
        return fold(compare, (cars, before, after), none, start, min(start + _WORD, count))

    return tuple(word(start) for start in range(0, count, _WORD))


def who_gives_up(words: tuple[Int[Array, "V ..."], ...]) -> tuple[Int[Array, "..."], ...]:
    """Whose change is called off, as bits: those with a rival who has not called off his own.

    In the order of the list, because a driver sees what those before him have decided.
    """
    gone = [jnp.zeros(words[0].shape[1:], jnp.int32) for _ in words]
    for i in range(words[0].shape[0]):
        blocked = jnp.zeros(words[0].shape[1:], bool)
        for word, given in zip(words, gone, strict=True):
            blocked = blocked | ((word[i] & ~given) != 0)
        gone[i // _WORD] = gone[i // _WORD] | jnp.where(blocked, 1 << (i % _WORD), 0)
    return tuple(gone)


def unpack_bits(words: tuple[Int[Array, "..."], ...], vehicles: int) -> Bool[Array, "V ..."]:
    """One row of truth values per vehicle."""
    rows = row_numbers(jnp.zeros((vehicles, *words[0].shape)))
    value = words[0][None]
    for w, word in enumerate(words[1:], start=1):
        value = jnp.where(rows >= w * _WORD, word[None], value)
    return ((value >> (rows % _WORD)) & 1) != 0


def _gap(speed: Float[Array, "*shape"], closing: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The distance that a driver wants to keep."""
    return _JAM_DISTANCE + _HEADWAY * speed + _BRAKING * speed * closing


def _idm(
    effort: Float[Array, "*shape"],
    delta: Float[Array, "*shape"],
    speed: Float[Array, "*shape"],
    closing: Float[Array, "*shape"],
    distance: Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """The acceleration of a driver; an infinite distance leaves the road free."""
    crowding = _gap(speed, closing) / jnp.maximum(distance, 0.01)
    return _COMFORT * (1 - jnp.exp(delta * effort)) - _COMFORT * crowding * crowding


def _behind_of(cars: Cars, delta: Float[Array, "V ..."], front: Ahead) -> Float[Array, "V ..."]:
    """Each driver's acceleration behind a vehicle."""
    closing = cars.speed - (front.speed_x * cars.cos + front.speed_y * cars.sin)
    return _idm(cars.effort, delta, cars.speed, closing, front.distance)


def _lets_in(cars: Cars, delta: Float[Array, "V ..."], rear: Behind) -> Bool[Array, "V ..."]:
    """Whether the vehicle behind would not brake hard; its driver is thought to have one's own `delta`."""
    closing = rear.speed - cars.speed * (cars.cos * rear.cos + cars.sin * rear.sin)
    return _idm(rear.effort, delta, rear.speed, closing, rear.distance) >= -_BRAKING_IMPOSED
