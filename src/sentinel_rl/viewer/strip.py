"""The decision under the world of a film: every action with mean - chance - ignorance = value, and the sentence."""

from collections.abc import Callable

import numpy as np
from PIL import Image

from sentinel_rl.viewer import paint
from sentinel_rl.viewer.paint import Paint, action_colour, onto
from sentinel_rl.viewer.reasons import Reasons

_HEAD, _ROW, _FOOT, _EDGE = 44, 27, 30, 14
# Of more actions than these, the best ones and the one that was taken are shown.
MOST = 8


def strip_height(actions: int) -> int:
    """In pixels, for so many actions."""
    return _HEAD + _ROW * min(actions, MOST) + _FOOT


def draw_strip(reasons: Reasons, width: int) -> Image.Image:
    """The strip of a decision."""
    made = Paint(width, strip_height(len(reasons.names)), paint.BACKGROUND)
    made.box(0, 10, 5, 36, action_colour(reasons.best))
    size = 17.0 if width >= 700 else 13.0
    while size > 10 and paint.text_width(reasons.sentence, size, bold=True) > width - 2 * _EDGE:
        size -= 0.5
    made.text(_EDGE, 23, reasons.sentence, size, bold=True, room=width - 2 * _EDGE)
    rows = shown_actions(reasons)
    low, high = _range(reasons, rows)
    name_width = max(paint.text_width(reasons.names[action], 12, bold=True) for action in rows)
    name_width = min(name_width + 34, 0.3 * width)
    sums = {action: _sum(reasons, action) for action in rows}
    sum_width = max(paint.text_width(words, 12) for words in sums.values())
    left, right = _EDGE + name_width + 14, width - _EDGE - sum_width - 18
    for i, action in enumerate(rows):
        middle = _HEAD + _ROW * (i + 0.5)
        colour = action_colour(action)
        if action == reasons.taken:
            made.box(6, middle - _ROW / 2 + 1, width - 6, middle + _ROW / 2 - 1, paint.TINT, 5)
        made.dot(_EDGE + 9, middle, 9, colour)
        made.text(_EDGE + 9, middle, str(action + 1), 11, onto(colour), bold=True, anchor="mm")
        made.text(_EDGE + 26, middle, reasons.names[action], 12, bold=True, room=name_width - 30)
        _draw_bar(made, reasons, action, middle, lambda value: left + (value - low) / (high - low) * (right - left))
        made.text(width - _EDGE, middle, sums[action], 12, bold=action == reasons.best, anchor="rm")
    _draw_key(made, reasons, width)
    return made.picture()


def shown_actions(reasons: Reasons) -> list[int]:
    """The actions that have a row, in their order."""
    every = range(len(reasons.names))
    if len(every) <= MOST:
        return list(every)
    first = [reasons.best, reasons.taken, *(int(action) for action in np.argsort(-reasons.value, kind="stable"))]
    return sorted(list(dict.fromkeys(first))[:MOST])


def _range(reasons: Reasons, rows: list[int]) -> tuple[float, float]:
    numbers = reasons.value[rows] if reasons.mean is None else np.append(reasons.value[rows], reasons.mean[rows])
    low, high = float(numbers.min()), float(numbers.max())
    pad = 0.05 * (high - low) or 0.5
    return low - pad, high + pad


def _sum(reasons: Reasons, action: int) -> str:
    value = f"{reasons.value[action]:.2f}".replace("-", "−")
    if reasons.mean is None or reasons.chance is None or reasons.ignorance is None:
        return value
    parts = f"{reasons.mean[action]:.2f} − {reasons.chance[action]:.2f} − {reasons.ignorance[action]:.2f}"
    return f"{parts.replace('-', '−')} = {value}"


def _draw_bar(made: Paint, reasons: Reasons, action: int, middle: float, at: Callable[[float], float]) -> None:
    """From the mean down to the value: what chance costs, then what ignorance costs; a dot is the value."""
    value = at(float(reasons.value[action]))
    if reasons.mean is not None and reasons.chance is not None:
        mean = at(float(reasons.mean[action]))
        additive = at(float(reasons.mean[action] - reasons.chance[action]))
        made.box(min(additive, mean), middle - 6, max(additive, mean), middle + 6, paint.CHANCE)
        made.box(min(value, additive), middle - 6, max(value, additive), middle + 6, paint.IGNORANCE)
        made.box(mean - 1, middle - 9, mean + 1, middle + 9, paint.INK)
    made.dot(value, middle, 6, action_colour(action), paint.CARD)


def _draw_key(made: Paint, reasons: Reasons, width: int) -> None:
    """What the colours are."""
    y = made.height - _FOOT / 2
    if reasons.mean is None:
        made.text(_EDGE, y, "dot: value · shaded row: what it does", 11, paint.SOFT)
        return
    x = float(_EDGE)
    for colour, words in ((paint.INK, "mean"), (paint.CHANCE, "− chance"), (paint.IGNORANCE, "− ignorance")):
        made.box(x, y - 5, x + (3 if colour == paint.INK else 11), y + 5, colour)
        made.text(x + 16, y, words, 11, paint.SOFT)
        x += 30 + paint.text_width(words, 11)
    made.text(x, y, "= value (dot) · shaded row: what it does", 11, paint.SOFT, room=width - x - _EDGE)
