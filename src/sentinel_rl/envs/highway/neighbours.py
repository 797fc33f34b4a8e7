"""Who drives ahead and behind on a lane, for every vehicle at once."""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sentinel_rl.envs.highway.pairs import fold, row_numbers
from sentinel_rl.envs.highway.road import counts_on

_Found = TypeVar("_Found")


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
    """The next vehicle ahead: infinitely far where there is none; while it is looked for, its place."""

    distance: Float[Array, "V ..."]
    speed_x: Float[Array, "V ..."]
    speed_y: Float[Array, "V ..."]


class Behind(NamedTuple):
    """The next vehicle behind: infinitely far where there is none; while it is looked for, its place."""

    distance: Float[Array, "V ..."]
    speed: Float[Array, "V ..."]
    cos: Float[Array, "V ..."]
    sin: Float[Array, "V ..."]
    effort: Float[Array, "V ..."]


def ahead(cars: Cars, lane: Float[Array, "V ..."]) -> Ahead:
    """The nearest vehicle on a lane that is not behind; of two at the same place the later in the list."""
    rows, nothing = row_numbers(cars.x), jnp.zeros_like(cars.x)

    def compare(j: Any, other: Cars, best: Ahead) -> Ahead:
        nearer = counts_on(other.y, lane) & (other.x >= cars.x) & (other.x <= best.distance) & (rows != j)
        return _replace(nearer, Ahead(other.x, other.speed * other.cos, other.speed * other.sin), best)

    nobody = Ahead(jnp.full_like(cars.x, jnp.inf), nothing, nothing)
    found = fold(compare, cars, nobody, 0, cars.x.shape[0])
    return found._replace(distance=found.distance - cars.x)


def behind(cars: Cars, lane: Float[Array, "V ..."]) -> Behind:
    """The nearest vehicle on a lane that is behind; of two at the same place the earlier in the list."""
    nothing, nowhere = jnp.zeros_like(cars.x), jnp.full_like(cars.x, -jnp.inf)

    def compare(j: Any, other: Cars, best: Behind) -> Behind:
        nearer = counts_on(other.y, lane) & (other.x < cars.x) & (other.x > best.distance)
        return _replace(nearer, Behind(other.x, other.speed, other.cos, other.sin, other.effort), best)

    nobody = Behind(nowhere, nothing, nothing, nothing, nowhere)
    found = fold(compare, cars, nobody, 0, cars.x.shape[0])
    return found._replace(distance=cars.x - found.distance)


def _replace(better: Bool[Array, "V ..."], new: _Found, old: _Found) -> _Found:
    chosen: _Found = jax.tree.map(lambda mine, yours: jnp.where(better, mine, yours), new, old)
    return chosen
