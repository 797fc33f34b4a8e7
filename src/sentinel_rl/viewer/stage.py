"""The world of a recording as a picture, for films: a road between two simulation steps, an image, or a chart."""

import io
import math
from collections.abc import Callable

import numpy as np
from PIL import Image

from sentinel_rl.envs.highway.road import LANE_WIDTH
from sentinel_rl.envs.highway.vehicle import LENGTH, WIDTH
from sentinel_rl.errors import CorruptError
from sentinel_rl.viewer import paint
from sentinel_rl.viewer.paint import Paint, Point, action_colour, onto
from sentinel_rl.viewer.pictures import PIXELS
from sentinel_rl.viewer.recording import Recording

# Metres of a road that are shown, and the share of them behind the agent.
_SPAN, _BEHIND = 100.0, 0.2
_TOP, _BOTTOM, _TALLEST = 34, 10, 340
# Of the lines between lanes, in metres.
_STRIPE, _PERIOD = 3.0, 9.0
# Pixels per metre from which on a speed can be read inside a car.
_READABLE = 7.0
# Pixels within which two actions lead to the same place.
_SAME_PLACE = 15.0


class Stage:
    """Draws the moments of an episode, all in one size.

    Args:
        recording: of what.
        episode: which one.
        width: in pixels.
    """

    def __init__(self, recording: Recording, episode: int, width: int):
        self.recording, self.episode, self.width = recording, episode, width
        self.start = int(recording.starts()[episode])
        self.length = int(recording.arrays["lengths"][episode])
        self._reach = np.maximum(np.abs(recording.arrays["obs"]).max(axis=0), 1e-9)

    @property
    def height(self) -> int:
        """In pixels."""
        about = self.recording.about
        if about.view == "road":
            return _TOP + _BOTTOM + round(int(about.lanes or 1) * LANE_WIDTH * self.width / _SPAN)
        if about.view == "frames":
            first = self._image(0)
            return _TOP + min(_TALLEST, round(first.height * self.width / first.width))
        return _TOP + 170

    def draw(self, t: int, phase: float) -> Image.Image:
        """The world `phase` of a decision after moment `t` of the episode."""
        made = Paint(self.width, self.height, paint.CARD)
        {"road": self._road, "frames": self._frame, "chart": self._chart}[self.recording.about.view](made, t, phase)
        about = self.recording.about
        made.text(12, 17, f"Decision {t + 1} of {self.length}{self._state(t, phase)}", 13, bold=True)
        made.text(
            self.width - 12, 17, f"{about.agent} in {about.env}", 12, paint.SOFT, anchor="rm", room=self.width * 0.5
        )
        return made.picture()

    def _state(self, t: int, phase: float) -> str:
        if self.recording.about.view != "road":
            return ""
        return f" · {self._cars(t, phase)[0, 3]:.0f} m/s"

    def _frame_number(self, t: int, phase: float) -> float:
        substeps = int(self.recording.about.substeps or 1)
        return self.start * substeps + self.episode + (t + phase) * substeps

    def _cars(self, t: int, phase: float) -> np.ndarray:
        """Place, heading and speed of all vehicles, between two simulation steps."""
        frame = self._frame_number(t, phase)
        low, part = int(frame), frame - int(frame)
        cars = self.recording.arrays["cars"]
        mixed: np.ndarray = cars[low] + part * (cars[min(low + 1, len(cars) - 1)] - cars[low]) if part else cars[low]
        return mixed

    def _road(self, made: Paint, t: int, phase: float) -> None:
        arrays, lanes, scale = self.recording.arrays, int(self.recording.about.lanes or 1), self.width / _SPAN
        cars = self._cars(t, phase)
        left = float(cars[0, 0]) - _BEHIND * _SPAN

        def place(x: float, y: float) -> Point:
            return (x - left) * scale, _TOP + (y + LANE_WIDTH / 2) * scale

        made.box(0, _TOP, self.width, _TOP + lanes * LANE_WIDTH * scale, paint.ROAD)
        for k in range(lanes + 1):
            y = _TOP + k * LANE_WIDTH * scale
            if k in (0, lanes):
                made.line([(0, y), (self.width, y)], paint.LANE, 2)
                continue
            for begin in np.arange(math.floor(left / _PERIOD) * _PERIOD, left + _SPAN, _PERIOD):
                made.line([((begin - left) * scale, y), ((begin + _STRIPE - left) * scale, y)], paint.LANE, 1.5)
        decision = self.start + min(t, self.length - 1)
        if t + phase < self.length:
            self._path(made, place, decision)
        crashed = arrays["crashed"][int(self._frame_number(t, phase))]
        seen = set(arrays["seen"][decision].tolist())
        for number in reversed(range(len(cars))):
            fill = paint.EGO if number == 0 else paint.CAR if number in seen else paint.ROAD
            _draw_car(made, place, cars[number], fill, bool(crashed[number]), scale)

    def _path(self, made: Paint, place: Callable[[float, float], Point], decision: int) -> None:
        """Where each action would lead; the one that was taken is drawn in full, a cross is a crash."""
        arrays = self.recording.arrays
        taken, frame = int(arrays["action"][decision]), self._frame_number(decision - self.start, 0.0)
        start = arrays["cars"][int(frame), 0]
        ends: list[tuple[int, Point]] = []
        for action in sorted(range(len(self.recording.about.actions)), key=lambda one: one == taken):
            points = [place(float(start[0]) + LENGTH / 2, float(start[1]))]
            points += [place(float(x), float(y)) for x, y in arrays["paths"][decision, action]]
            made.line(points, action_colour(action), 4 if action == taken else 1.5)
            ends.append((action, points[-1]))
        for group in _together(sorted(ends)):
            for i, (action, (x, y)) in enumerate(group):
                wrecked = bool(arrays["wrecked"][decision, action])
                _draw_end(made, x + (i - (len(group) - 1) / 2) * 15, y, action, action == taken, wrecked)

    def _image(self, moment: int) -> Image.Image:
        """The last image at or before a moment of all episodes."""
        arrays = self.recording.arrays
        index = int(np.searchsorted(arrays["image_at"], moment, side="right")) - 1
        first = int(arrays["image_ends"][index - 1]) if index else 0
        content = arrays["images"][first : int(arrays["image_ends"][index])].tobytes()
        picture = Image.open(io.BytesIO(content), formats=["WEBP"])
        if picture.width * picture.height > 2 * PIXELS:
            raise CorruptError(
                f"an image of {picture.width} x {picture.height} pixels is larger than any recording has"
            )
        return picture

    def _frame(self, made: Paint, t: int, phase: float) -> None:
        picture = self._image(self.start + self.episode + t + int(phase >= 1))
        height = self.height - _TOP
        width = min(self.width, round(picture.width * height / picture.height))
        made.paste(picture, (self.width - width) / 2, _TOP, width, height)

    def _chart(self, made: Paint, t: int, phase: float) -> None:
        del phase  # an observation has nothing between two decisions
        values = self.recording.arrays["obs"][self.start + t] / self._reach
        step, middle = (self.width - 40) / len(values), _TOP + 80
        for i, value in enumerate(values.tolist()):
            left, top = 20 + (i + 0.2) * step, middle - 70 * value
            made.box(left, min(top, middle), left + 0.6 * step, max(top, middle), action_colour(0))
        made.line([(20, middle), (self.width - 20, middle)], paint.LANE)


def _together(ends: list[tuple[int, Point]]) -> list[list[tuple[int, Point]]]:
    """Actions that lead to the same place, whose dots stand side by side."""
    groups: list[list[tuple[int, Point]]] = []
    for end in ends:
        same = next((group for group in groups if math.dist(group[0][1], end[1]) < _SAME_PLACE), None)
        if same is None:
            groups.append([end])
        else:
            same.append(end)
    return groups


def _draw_end(made: Paint, x: float, y: float, action: int, taken: bool, wrecked: bool) -> None:
    """The number of an action where it leads to."""
    colour = action_colour(action)
    made.dot(x, y, 9 if taken else 7.5, colour, paint.CARD)
    made.text(x, y, str(action + 1), 11 if taken else 9, onto(colour), bold=True, anchor="mm")
    if wrecked:
        for side in (-5, 5):
            made.line([(x - 5, y - 15 - side), (x + 5, y - 15 + side)], paint.IGNORANCE, 2.5)


def _draw_car(
    made: Paint, place: Callable[[float, float], Point], car: np.ndarray, fill: str, crashed: bool, scale: float
) -> None:
    """A rectangle with a windscreen that shows where it heads, and its speed."""
    x, y, heading, speed = (float(number) for number in car)
    cos, sin = math.cos(heading), math.sin(heading)

    def corners(ahead: float, length: float, width: float) -> list[Point]:
        box = [(ahead + a * length / 2, b * width / 2) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        return [place(x + u * cos - v * sin, y + u * sin + v * cos) for u, v in box]

    hollow = fill == paint.ROAD
    body = paint.IGNORANCE if crashed else fill
    made.polygon(corners(0.0, LENGTH, WIDTH), body, paint.CAR if hollow and not crashed else body)
    made.polygon(corners(1.0, 0.9, WIDTH * 0.66), paint.CAR if fill == paint.EGO else paint.ROAD)
    if scale >= _READABLE and not crashed:
        colour = paint.SOFT if hollow and not crashed else onto(body)
        made.text(*place(x - 0.9, y), f"{speed:.0f}", 10, colour, bold=True, anchor="mm")
