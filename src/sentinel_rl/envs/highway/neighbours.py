"""Who drives ahead and behind on a lane, for every vehicle at once.

The search runs over the vehicles one by one and keeps the best so far, all of it elementwise: one pass in registers,
where a matrix of pairs would be written to memory.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.highway.road import counts_on


class Cars(NamedTuple):
    """The vehicles as the drivers see them, while they decide: arrays ``[vehicles, *batch]``.

    Args:
        x: place along the road.
        y: place across.
        speed: along the heading.
        cos: cosine of the heading.
        sin: sine of the heading.
        lane: number of the closest lane.
        effort: logarithm of speed over wanted speed.
    """

    x: Float[Array, "V ..."]
    y: Float[Array, "V ..."]
    speed: Float[Array, "V ..."]
    cos: Float[Array, "V ..."]
    sin: Float[Array, "V ..."]
    lane: Float[Array, "V ..."]
    effort: Float[Array, "V ..."]


class Ahead(NamedTuple):
    """The next vehicle ahead: infinitely far where there is none."""

    distance: Float[Array, "V ..."]
    speed_x: Float[Array, "V ..."]
    speed_y: Float[Array, "V ..."]


class Behind(NamedTuple):
    """The next vehicle behind: infinitely far where there is none."""

    distance: Float[Array, "V ..."]
    speed: Float[Array, "V ..."]
    cos: Float[Array, "V ..."]
    sin: Float[Array, "V ..."]
    effort: Float[Array, "V ..."]


def row_numbers(like: Array) -> Int[Array, "V ..."]:
    """The number of each vehicle, along the leading axis."""
    return jnp.arange(like.shape[0]).reshape(-1, *(1,) * (like.ndim - 1))


def ahead(cars: Cars, lane: Float[Array, "V ..."]) -> Ahead:
    """The nearest vehicle on a lane that is not behind; of two at the same place the later in the list."""
    rows, nothing = row_numbers(cars.x), jnp.zeros_like(cars.x)
    place = jnp.full_like(cars.x, jnp.inf)
    best: tuple[Array, ...] = (nothing, nothing)
    for j in range(cars.x.shape[0]):
        other = _pick(cars, j)
        better = counts_on(other.y, lane) & (other.x >= cars.x) & (other.x <= place) & (rows != j)
        place = jnp.where(better, other.x, place)
        best = _replace(better, (other.speed * other.cos, other.speed * other.sin), best)
    return Ahead(place - cars.x, *best)


def behind(cars: Cars, lane: Float[Array, "V ..."]) -> Behind:
    """The nearest vehicle on a lane that is behind; of two at the same place the earlier in the list."""
    nothing = jnp.zeros_like(cars.x)
    place = jnp.full_like(cars.x, -jnp.inf)
    best: tuple[Array, ...] = (nothing, nothing, nothing, place)
    for j in range(cars.x.shape[0]):
        other = _pick(cars, j)
        better = counts_on(other.y, lane) & (other.x < cars.x) & (other.x > place)
        place = jnp.where(better, other.x, place)
        best = _replace(better, (other.speed, other.cos, other.sin, other.effort), best)
    return Behind(cars.x - place, *best)


def _pick(cars: Cars, j: int) -> Cars:
    """One vehicle, ready to be compared with all."""
    return Cars(*(leaf[j : j + 1] for leaf in cars))


def _replace(better: Array, new: tuple[Array, ...], old: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(jnp.where(better, mine, yours) for mine, yours in zip(new, old, strict=True))
