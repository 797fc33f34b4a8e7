"""Who hits whom: separating axes of moving rectangles, and the push that parts them.

After every simulation step highway-env tests each pair (a, b), a being earlier in the list. On each of the eight edge
normals it compares the shadows of both; a gap on one of them means that they do not touch. Once with a's shadow as it
is: if there is no gap the vehicles *intersect* and both are wrecks. And once with a's shadow stretched by its relative
motion in one step: if there is no gap they *will* intersect, and in the next step each is pushed by half the
translation that parts them. A vehicle in several such pairs is pushed by the one whose partner is last in the list.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.highway.pairs import fold, row_numbers
from sentinel_rl.envs.highway.vehicle import LENGTH, WIDTH

_DIAGONAL = math.hypot(LENGTH, WIDTH)
# No gap on the normals of a means |dy| <= 2 + 15.8 |sin h_a| + 5.2 |sin h_b|: see `suspects`.
_SLANT = 16.0


class Boxes(NamedTuple):
    """The vehicles as rectangles: centre, direction, and motion in one simulation step."""

    x: Float[Array, "*shape"]
    y: Float[Array, "*shape"]
    cos: Float[Array, "*shape"]
    sin: Float[Array, "*shape"]
    step: Float[Array, "*shape"]


class Verdict(NamedTuple):
    """What collisions do to each vehicle: is it a wreck now, will it be hit, and which push does that give."""

    crashed: Bool[Array, "V ..."]
    hit: Bool[Array, "V ..."]
    push_x: Float[Array, "V ..."]
    push_y: Float[Array, "V ..."]


def suspects(boxes: Boxes, others_collide: bool) -> Bool[Array, "V ..."]:
    """Vehicles that may be in a collision: cheap, and never wrong about those it clears.

    A pair is not tested unless its centres are within ``sqrt(29) + v_a / 15`` metres, and cannot pass the test on the
    normals of a unless ``|dy| <= |sin h| (2.5 + r + |v|) + |cos h| (1 + r' + |v'|)`` with the half shadows r of b and
    the relative motion v, both of which grow with the sines of the headings.
    """
    rows, cleared = row_numbers(boxes.x), jnp.zeros(boxes.x.shape, bool)
    reach, slant = _DIAGONAL / 2 + jnp.abs(boxes.step), WIDTH / 2 + _SLANT * jnp.abs(boxes.sin)
    circles = (boxes.x, boxes.y, reach, slant)

    def compare(j: Any, other: tuple[Array, ...], found: Bool[Array, "V ..."]) -> Bool[Array, "V ..."]:
        x, y, far, wide = other
        near = (jnp.abs(x - boxes.x) <= reach + far) & (jnp.abs(y - boxes.y) <= slant + wide)
        return found | (near & _may_collide(rows, j, others_collide))

    return fold(compare, circles, cleared, 0, boxes.x.shape[0])


def partners(boxes: Boxes, others_collide: bool) -> Int[Array, "V ..."]:
    """Test all pairs.

    Returns:
        for each vehicle ``2 (j + 1)``, j being the last in the list that will hit it, or 0; plus 1 if it is a wreck.
    """
    rows, none = row_numbers(boxes.x), jnp.zeros(boxes.x.shape, jnp.int32)

    def compare(j: Any, other: Boxes, code: Int[Array, "V ..."]) -> Int[Array, "V ..."]:
        a, b = _in_order(rows < j, boxes, other)
        tested = _may_collide(rows, j, others_collide) & _within_reach(a, b)
        touching, coming = _overlap(a, b)
        code = jnp.where(tested & coming, 2 * (j + 1) + code % 2, code)
        return jnp.where(tested & touching, code - code % 2 + 1, code)

    return fold(compare, boxes, none, 0, boxes.x.shape[0])


def judge(boxes: Boxes, code: Int[Array, "V ..."]) -> Verdict:
    """Turn the partners into crashes and pushes."""
    rows, partner = row_numbers(boxes.x), code // 2 - 1

    def compare(j: Any, other: Boxes, found: Boxes) -> Boxes:
        return Boxes(*(jnp.where(partner == j, new, old) for new, old in zip(other, found, strict=True)))

    other = fold(compare, boxes, jax.tree.map(jnp.zeros_like, boxes), 0, boxes.x.shape[0])
    first = rows < partner
    x, y = _translation(*_in_order(first, boxes, other))
    hit, half = partner >= 0, jnp.where(first, 0.5, -0.5)
    return Verdict(code % 2 == 1, hit, jnp.where(hit, half * x, 0.0), jnp.where(hit, half * y, 0.0))


def _may_collide(rows: Int[Array, "V ..."], j: Any, others_collide: bool) -> Bool[Array, "V ..."]:
    """Whether a pair is looked at: not a vehicle with itself, and maybe only those with the ego."""
    with_ego = jnp.equal(rows, 0) | jnp.equal(j, 0)
    return jnp.not_equal(rows, j) & (others_collide | with_ego)


def _in_order(first: Bool[Array, "..."], one: Boxes, other: Boxes) -> tuple[Boxes, Boxes]:
    """The pair as (a, b), a being `one` where that comes first in the list."""
    pairs = [(jnp.where(first, p, q), jnp.where(first, q, p)) for p, q in zip(one, other, strict=True)]
    return Boxes(*(a for a, _ in pairs)), Boxes(*(b for _, b in pairs))


def _within_reach(a: Boxes, b: Boxes) -> Bool[Array, "*shape"]:
    """highway-env's first look, with the speed of a alone."""
    reach = _DIAGONAL + a.step
    dx, dy = b.x - a.x, b.y - a.y
    return (dx * dx + dy * dy <= reach * reach) & (reach >= 0)


class _Line(NamedTuple):
    """Both rectangles seen along one direction: b's distance, a's relative motion, and both half shadows."""

    distance: Float[Array, "*shape"]
    motion: Float[Array, "*shape"]
    half_a: Float[Array, "*shape"] | float
    half_b: Float[Array, "*shape"] | float

    def reversed(self) -> "_Line":
        """The same against the direction."""
        return _Line(-self.distance, -self.motion, self.half_a, self.half_b)

    def gap(self) -> Float[Array, "*shape"]:
        """How far b is from a stretched by its motion: negative if they overlap."""
        low = -self.half_a + jnp.minimum(self.motion, 0.0)
        high = self.half_a + jnp.maximum(self.motion, 0.0)
        return jnp.where(
            low < self.distance - self.half_b, self.distance - self.half_b - high, low - self.distance - self.half_b
        )


def _lines(a: Boxes, b: Boxes) -> tuple[_Line, ...]:
    """The pair along and across a, along and across b."""
    dx, dy = b.x - a.x, b.y - a.y
    cos, sin = a.cos * b.cos + a.sin * b.sin, a.cos * b.sin - a.sin * b.cos
    along, across = LENGTH / 2, WIDTH / 2
    tall = along * jnp.abs(cos) + across * jnp.abs(sin)
    wide = along * jnp.abs(sin) + across * jnp.abs(cos)
    return (
        _Line(a.cos * dx + a.sin * dy, a.step - b.step * cos, along, tall),
        _Line(a.cos * dy - a.sin * dx, -b.step * sin, across, wide),
        _Line(b.cos * dx + b.sin * dy, a.step * cos - b.step, tall, along),
        _Line(b.cos * dy - b.sin * dx, -a.step * sin, wide, across),
    )


def _overlap(a: Boxes, b: Boxes) -> tuple[Bool[Array, "*shape"], Bool[Array, "*shape"]]:
    """Whether they intersect, and whether they will."""
    lines = _lines(a, b)
    touching = jnp.abs(lines[0].distance) <= lines[0].half_a + lines[0].half_b
    coming = lines[0].gap() <= 0
    for line in lines[1:]:
        touching = touching & (jnp.abs(line.distance) <= line.half_a + line.half_b)
        coming = coming & (line.gap() <= 0)
    return touching, coming


def _translation(a: Boxes, b: Boxes) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """The shortest move of a that parts them.

    The order of the directions decides between equals, and both senses of each count: if one shadow lies within the
    other they differ.
    """
    along_a, across_a, along_b, across_b = _lines(a, b)
    shortest = jnp.full_like(a.x, jnp.inf)
    x, y = jnp.zeros_like(a.x), jnp.zeros_like(a.x)
    for line, (nx, ny) in (
        (along_a.reversed(), (-a.cos, -a.sin)),
        (across_a, (-a.sin, a.cos)),
        (along_a, (a.cos, a.sin)),
        (across_a.reversed(), (a.sin, -a.cos)),
        (along_b.reversed(), (-b.cos, -b.sin)),
        (across_b, (-b.sin, b.cos)),
        (along_b, (b.cos, b.sin)),
        (across_b.reversed(), (b.sin, -b.cos)),
    ):
        length = jnp.abs(line.gap())
        signed = jnp.where(line.distance < 0, length, -length)
        shorter = length < shortest
        shortest = jnp.where(shorter, length, shortest)
        x, y = jnp.where(shorter, signed * nx, x), jnp.where(shorter, signed * ny, y)
    return x, y
