"""A small image to draw on, with NumPy alone: pictures need no window and no graphics library."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, UInt8

Colour = tuple[int, int, int]
Point = tuple[float, float] | Float[np.ndarray, " 2"]


class Canvas:
    """A white image whose points are pixels from the lower left corner, with smooth edges.

    Example:
        >>> canvas = Canvas(4, 2)
        >>> canvas.polygon([(0, 0), (2, 0), (2, 1), (0, 1)], (0, 0, 0))
        >>> canvas.pixels()[..., 0]
        array([[255, 255, 255, 255],
               [  0,   0, 255, 255]], dtype=uint8)
    """

    def __init__(self, width: int, height: int, background: Colour = (255, 255, 255)):
        self._image = np.broadcast_to(np.array(background, np.float32), (height, width, 3)).copy()
        self._x = np.arange(width) + 0.5
        self._y = np.arange(height) + 0.5

    def polygon(self, corners: Sequence[Point] | Float[np.ndarray, "n 2"], colour: Colour) -> None:
        """Fill a convex polygon; its corners run counter-clockwise."""
        points = np.asarray(corners, float)
        rows, columns = self._window(points.min(axis=0), points.max(axis=0))
        outside = np.full((rows.sum(), columns.sum()), -np.inf)
        for (x, y), (dx, dy) in zip(points, np.roll(points, -1, axis=0) - points, strict=True):
            across = (self._x[columns] - x) * dy - (self._y[rows, None] - y) * dx
            outside = np.maximum(outside, across / np.hypot(dx, dy))
        self._blend(rows, columns, outside, colour)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Fill a circle."""
        middle = np.asarray(centre, float)
        rows, columns = self._window(middle - radius, middle + radius)
        away = np.hypot(self._x[columns] - middle[0], self._y[rows, None] - middle[1])
        self._blend(rows, columns, away - radius, colour)

    def pixels(self) -> UInt8[np.ndarray, "height width 3"]:
        """The image with its first row on top, as screens and video files have it."""
        return np.round(self._image[::-1]).astype(np.uint8)

    def _window(
        self, low: Float[np.ndarray, " 2"], high: Float[np.ndarray, " 2"]
    ) -> tuple[Bool[np.ndarray, " height"], Bool[np.ndarray, " width"]]:
        """The rows and columns that a shape may touch."""
        rows = (self._y > low[1] - 1) & (self._y < high[1] + 1)
        columns = (self._x > low[0] - 1) & (self._x < high[0] + 1)
        return rows, columns

    def _blend(
        self,
        rows: Bool[np.ndarray, " height"],
        columns: Bool[np.ndarray, " width"],
        outside: Float[np.ndarray, "h w"],
        colour: Colour,
    ) -> None:
        """Paint a window by the distance of its pixels to the shape: a pixel cut by the edge is mixed."""
        cover = np.clip(0.5 - outside, 0.0, 1.0)[..., None]
        window = np.ix_(rows, columns)
        self._image[window] += (cover * (np.array(colour) - self._image[window])).astype(np.float32)
