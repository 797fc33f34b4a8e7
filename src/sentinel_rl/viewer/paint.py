"""Drawing with Pillow in the colours of the page: everything at twice its size, to be halved with smooth edges."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont

TWICE = 2
Point = tuple[float, float]

# The light scheme of the page, page.css. Actions have the colours of Okabe and Ito, which the colour-blind tell apart.
BACKGROUND, CARD, INK, SOFT, LINE, TINT = "#faf9f6", "#ffffff", "#1b2330", "#596273", "#e2dfd8", "#eef4fa"
ROAD, LANE, EGO, CAR = "#ebe8e1", "#bdb7ab", "#1b2330", "#8d97a6"
CHANCE, IGNORANCE = "#9ba5b4", "#d55e00"
ACTIONS = ("#0072b2", "#009e73", "#c2619a", "#e69f00", "#56b4e9", "#7d5fb0", "#8c6d31", "#5b6b7a")


def action_colour(action: int) -> str:
    """The colour of an action, counted from 0."""
    return ACTIONS[action % len(ACTIONS)]


def onto(colour: str) -> str:
    """A colour that can be read on another one.

    Example:
        >>> onto("#000000"), onto("#ffffff")
        ('#ffffff', '#12161c')
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#12161c" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"


class Paint:
    """A picture of so many pixels that is drawn on in its own pixels, at twice the precision."""

    def __init__(self, width: int, height: int, background: str = BACKGROUND):
        self.width, self.height = width, height
        self._image = Image.new("RGB", (TWICE * width, TWICE * height), background)
        self._draw = ImageDraw.Draw(self._image)

    def picture(self) -> Image.Image:
        """The picture in its own size."""
        return self._image.reduce(TWICE)

    def box(self, left: float, top: float, right: float, bottom: float, fill: str, radius: float = 0.0) -> None:
        """Fill a box; a thin one is at least a pixel wide."""
        right, bottom = max(right, left + 1), max(bottom, top + 1)
        corners = TWICE * left, TWICE * top, TWICE * right - 1, TWICE * bottom - 1
        self._draw.rounded_rectangle(corners, TWICE * radius, fill=fill)

    def line(self, points: Sequence[Point], fill: str, width: float = 1.0) -> None:
        """Draw a line through points."""
        self._draw.line(_scaled(points), fill=fill, width=max(1, round(TWICE * width)), joint="curve")

    def polygon(self, points: Sequence[Point], fill: str, outline: str | None = None, width: float = 1.5) -> None:
        """Fill a polygon."""
        self._draw.polygon(_scaled(points), fill=fill, outline=outline, width=round(TWICE * width))

    def dot(self, x: float, y: float, radius: float, fill: str, outline: str | None = None) -> None:
        """Fill a circle."""
        corners = TWICE * (x - radius), TWICE * (y - radius), TWICE * (x + radius), TWICE * (y + radius)
        self._draw.ellipse(corners, fill=fill, outline=outline, width=TWICE)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        fill: str = INK,
        bold: bool = False,
        anchor: Literal["lm", "mm", "rm"] = "lm",
        room: float | None = None,
    ) -> None:
        """Write one line, its middle at the height `y`; what is wider than `room` ends in an ellipsis."""
        font = _font(round(TWICE * size), bold)
        if room is not None and font.getlength(words) > TWICE * room:
            while words and font.getlength(f"{words}…") > TWICE * room:
                words = words[:-1]
            words = f"{words.rstrip()}…"
        self._draw.text((TWICE * x, TWICE * y), words, fill=fill, font=font, anchor=anchor)

    def paste(self, picture: Image.Image, left: float, top: float, width: int, height: int) -> None:
        """Show an image in a box."""
        self._image.paste(
            picture.convert("RGB").resize((TWICE * width, TWICE * height)), (round(TWICE * left), round(TWICE * top))
        )


def text_width(words: str, size: float, bold: bool = False) -> float:
    """How wide a line is."""
    return float(_font(round(TWICE * size), bold).getlength(words)) / TWICE


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(TWICE * x, TWICE * y) for x, y in points]


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / name), size)
