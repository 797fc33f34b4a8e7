"""The picture of a cart and its pole, laid out as Gymnasium draws it."""

import numpy as np
from jaxtyping import Float, UInt8

from sentinel_rl.envs.canvas import Canvas

_WIDTH, _HEIGHT = 600, 400
_TRACK = 100.0
_CART = (50.0, 30.0)
_POLE_WIDTH = 10.0
_BLACK, _WOOD, _AXLE = (0, 0, 0), (202, 152, 101), (129, 132, 203)


def draw_cartpole(x: float, theta: float, x_limit: float, pole_length: float) -> UInt8[np.ndarray, "400 600 3"]:
    """Draw the cart at `x` on a track of ``[-x_limit, x_limit]`` with its pole at `theta` radians.

    A place that is not finite cannot be drawn: then only the track is.
    """
    canvas = Canvas(_WIDTH, _HEIGHT)
    if np.isfinite([x, theta]).all():
        scale = _WIDTH / (2 * x_limit)
        centre = np.array([x * scale + _WIDTH / 2, _TRACK])
        axle = centre + np.array([0.0, _CART[1] / 4])
        canvas.polygon(centre + _box(*_CART), _BLACK)
        canvas.polygon(axle + _pole(pole_length * scale) @ _turn(theta).T, _WOOD)
        canvas.disc(axle, _POLE_WIDTH / 2, _AXLE)
    canvas.polygon([(0, _TRACK), (_WIDTH, _TRACK), (_WIDTH, _TRACK + 1), (0, _TRACK + 1)], _BLACK)
    return canvas.pixels()


def _box(width: float, height: float) -> Float[np.ndarray, "4 2"]:
    """Corners of a box around the origin, counter-clockwise."""
    right, top = width / 2, height / 2
    return np.array([(-right, -top), (right, -top), (right, top), (-right, top)])


def _pole(length: float) -> Float[np.ndarray, "4 2"]:
    """Corners of the upright pole, which reaches half its width below the axle."""
    side, top = _POLE_WIDTH / 2, length - _POLE_WIDTH / 2
    return np.array([(-side, -side), (side, -side), (side, top), (-side, top)])


def _turn(theta: float) -> Float[np.ndarray, "2 2"]:
    """Matrix of a clockwise turn: a positive angle leans to the right."""
    sin, cos = np.sin(theta), np.cos(theta)
    return np.array([(cos, sin), (-sin, cos)])
