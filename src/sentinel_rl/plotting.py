"""How our figures look, and how they are saved."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from sentinel_rl.storage.atomic import write_file

# Okabe and Ito's palette, told apart with every common kind of colour blindness.
BLACK, BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    *("#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"),
    "#767676",
)

# One colour per notion, the same in all figures.
TOTAL, COMPOSITE, ADDITIVE, NEUTRAL = BLACK, BLUE, RED, GREY

_STYLE: Any = {
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.labelsize": 13,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "lines.linewidth": 2.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "sentinel-rl",
}


@contextmanager
def figure(width: float = 9.6, height: float = 4.6) -> Iterator[Figure]:
    """An empty figure in the house style, in inches; draw and save it inside the block."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(width, height))


def save(drawing: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.svg``; the same drawing gives the same bytes."""
    png = _rendered(drawing, format="png", dpi=120, metadata={"Software": None})
    svg = _rendered(drawing, format="svg", metadata={"Date": None})
    return [write_file(stem.with_suffix(f".{kind}"), data) for kind, data in (("png", png), ("svg", svg))]


def _rendered(drawing: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    drawing.savefig(buffer, **options)
    return buffer.getvalue()
