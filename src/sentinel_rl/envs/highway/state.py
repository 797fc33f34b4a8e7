"""What the highway remembers between two decisions."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int


class HighwayState(NamedTuple):
    """All vehicles, the ego first, and how many decisions the episode has taken.

    The vehicle axis leads. A batch of worlds has its axis *last* inside the dynamics, where a row of numbers is one
    vehicle in many worlds, and first outside, as everywhere in JAX.

    Args:
        x: places along the road, in metres.
        y: places across it; the centre of lane k is at 4k, and y grows to the right.
        heading: radians, 0 along the road.
        speed: metres per second.
        target_lane: the lane that is steered to.
        target_speed: the speed that is wanted.
        delta: exponent of the speed term in each driver's acceleration.
        wait: simulation steps until the driver thinks about a lane change; due at 0 or below.
        crashed: whether the vehicle is a wreck.
        hit: whether a collision has been foreseen; it moves and wrecks the vehicle in the next simulation step.
        push_x: how far that collision moves it along the road.
        push_y: how far across.
        time: decisions so far.
    """

    x: Float[Array, "V ..."]
    y: Float[Array, "V ..."]
    heading: Float[Array, "V ..."]
    speed: Float[Array, "V ..."]
    target_lane: Int[Array, "V ..."]
    target_speed: Float[Array, "V ..."]
    delta: Float[Array, "V ..."]
    wait: Int[Array, "V ..."]
    crashed: Bool[Array, "V ..."]
    hit: Bool[Array, "V ..."]
    push_x: Float[Array, "V ..."]
    push_y: Float[Array, "V ..."]
    time: Int[Array, "..."]
