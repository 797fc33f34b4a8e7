"""The picture of a highway, in the colours of highway-env."""

import numpy as np
from jaxtyping import Float, UInt8

from sentinel_rl.envs.canvas import Canvas
from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.highway.state import HighwayState
from sentinel_rl.envs.highway.vehicle import LENGTH, WIDTH

_SCALE = 5.5
_WIDTH, _MARGIN = 600, 3.5
_EGO_AT = 0.3
_GREY, _WHITE, _EDGE = (100, 100, 100), (255, 255, 255), (60, 60, 60)
_EGO, _OTHER, _WRECK = (50, 200, 0), (100, 200, 255), (255, 100, 100)
_STRIPE, _PERIOD, _LINE = 3.0, 4.33, 0.3


def draw_highway(state: HighwayState, lanes: int) -> UInt8[np.ndarray, "height 600 3"]:
    """Draw the road around the ego, all of its lanes, driving to the right: the ego green, others blue, wrecks red."""
    canvas = Canvas(_WIDTH, round(_SCALE * (LANE_WIDTH * lanes + 2 * _MARGIN)), _GREY)
    x, y, heading = (np.asarray(part, float) for part in (state.x, state.y, state.heading))
    if not np.isfinite([x[0], y[0]]).all():
        return canvas.pixels()
    origin = np.array([x[0] - _EGO_AT * _WIDTH / _SCALE, LANE_WIDTH * (lanes - 0.5) + _MARGIN])
    _draw_lines(canvas, origin, lanes)
    colours = [_EGO, *[_OTHER] * (len(x) - 1)]
    for i in reversed(range(len(x))):
        colour = _WRECK if state.crashed[i] else colours[i]
        if np.isfinite([x[i], y[i], heading[i]]).all():
            _draw_car(canvas, origin, (x[i], y[i]), heading[i], colour)
    return canvas.pixels()


def _draw_lines(canvas: Canvas, origin: Float[np.ndarray, " 2"], lanes: int) -> None:
    """Edges of the road in full, lines between lanes in stripes that stand still on the road."""
    span = _WIDTH / _SCALE
    for k in range(lanes + 1):
        across = LANE_WIDTH * (k - 0.5)
        if k in (0, lanes):
            parts = [(origin[0] - 1, origin[0] + span + 1)]
        else:
            first = np.floor(origin[0] / _PERIOD) * _PERIOD
            parts = [(begin, begin + _STRIPE) for begin in np.arange(first, origin[0] + span, _PERIOD)]
        for begin, end in parts:
            centre = ((begin + end) / 2, across)
            canvas.polygon(_corners(origin, centre, 0.0, end - begin, _LINE), _WHITE)


def _draw_car(
    canvas: Canvas, origin: Float[np.ndarray, " 2"], place: tuple[float, float], heading: float, colour: tuple[int, ...]
) -> None:
    """A rectangle with a dark edge and a windscreen that shows where it heads."""
    red, green, blue = colour
    dark = (red * 3 // 5, green * 3 // 5, blue * 3 // 5)
    canvas.polygon(_corners(origin, place, heading, LENGTH, WIDTH), _EDGE)
    canvas.polygon(_corners(origin, place, heading, LENGTH - 0.36, WIDTH - 0.36), (red, green, blue))
    front = (place[0] + 0.75 * np.cos(heading), place[1] + 0.75 * np.sin(heading))
    canvas.polygon(_corners(origin, front, heading, 0.9, WIDTH - 0.7), dark)


def _corners(
    origin: Float[np.ndarray, " 2"], place: tuple[float, float], heading: float, length: float, width: float
) -> Float[np.ndarray, "4 2"]:
    """A box on the road as counter-clockwise pixels; y grows to the right of the road, downwards in the picture."""
    cos, sin = np.cos(heading), np.sin(heading)
    box = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * (length / 2, width / 2)
    turned = box @ np.array([(cos, sin), (-sin, cos)]) + np.asarray(place) - origin
    pixels: Float[np.ndarray, "4 2"] = turned * (_SCALE, -_SCALE)
    return pixels
