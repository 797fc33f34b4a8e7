"""Observations of any Gymnasium space as rows of numbers, which is what networks and replays take.

Boxes are flattened. ``Discrete`` and ``MultiDiscrete`` become one-hot, ``Tuple`` and ``Dict`` are flattened part by
part, as ``gymnasium.spaces.flatten`` does; parts without numbers, such as texts, are left out. A box of three axes, or
of two and bytes, is an image: its shape goes into the `EnvSpec`, so that the right encoder is chosen.
"""

import dataclasses
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from jaxtyping import Float

from sentinel_rl.errors import UsageError

_NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_PARTS = (spaces.Dict, spaces.Tuple)


@dataclasses.dataclass(frozen=True)
class Observations:
    """How observations of a space become rows of numbers.

    Args:
        space: of one observation.
        size: of a row.
        image: (height, width, channels) where the observation is one.
        left_out: the names of the parts that have no numbers.
    """

    space: spaces.Space[Any]
    size: int
    image: tuple[int, int, int] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an observation as users hand it in; that of a row where it is not one array."""
        return self.space.shape if isinstance(self.space, spaces.Box) else (self.size,)

    def rows(self, values: Any, count: int) -> Float[np.ndarray, "count size"]:
        """Flatten a batch of observations, as a vector environment returns them."""
        if isinstance(self.space, spaces.Box):
            return np.asarray(values, np.float32).reshape(count, -1)
        each = iterate(batch_space(self.space, count), values)
        return np.stack([self.row(one) for one in each])

    def row(self, value: Any) -> Float[np.ndarray, " size"]:
        """Flatten one observation."""
        if isinstance(self.space, spaces.Box):
            return np.asarray(value, np.float32).reshape(-1)
        flat: list[np.ndarray] = []
        _flatten(self.space, value, flat)
        return np.concatenate(flat, dtype=np.float32)

    def is_one(self, value: Any) -> bool:
        """Whether a value is one observation of a space that is no box."""
        if isinstance(self.space, spaces.Box):
            return False
        try:
            return bool(self.space.contains(value))
        except (TypeError, ValueError, KeyError, AttributeError):
            return False


def observations_of(space: Any, name: str) -> Observations:
    """How the observations of a space become numbers.

    Args:
        space: of one observation.
        name: of the environment, for messages.

    Raises:
        UsageError: for a space without numbers, or one whose observations have no fixed size.

    Example:
        >>> observations_of(spaces.Dict(at=spaces.Discrete(4), speed=spaces.Box(-1, 1, (2,))), "Mine").size
        6
    """
    left_out: list[str] = []
    size = _size(space, "", left_out, name)
    if size == 0:
        raise UsageError(
            f"{name} has the observation space {space}, which holds no numbers: wrap it with "
            "gymnasium.wrappers.TransformObservation to show some"
        )
    image: tuple[int, int, int] | None = None
    if isinstance(space, spaces.Box):
        axes = len(space.shape)
        if axes == 3 or (axes == 2 and space.dtype == np.uint8):
            height, width, *channels = space.shape
            image = height, width, channels[0] if channels else 1
    return Observations(space, size, image, tuple(left_out))


def _size(space: Any, place: str, left_out: list[str], name: str) -> int:
    """The numbers of a space; parts without any are noted."""
    if isinstance(space, spaces.Dict):
        return sum(_size(part, f"{place}{key}.", left_out, name) for key, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return sum(_size(part, f"{place}{index}.", left_out, name) for index, part in enumerate(space.spaces))
    if isinstance(space, _NUMBERS):
        return int(spaces.flatdim(space))
    if isinstance(space, (spaces.Sequence, spaces.Graph, spaces.OneOf)):
        where = f" at {place[:-1]}" if place else ""
        raise UsageError(
            f"{name} observes a {type(space).__name__}{where}, whose size changes: wrap it with "
            "gymnasium.wrappers.TransformObservation to show arrays of one size"
        )
    left_out.append(place[:-1] or type(space).__name__)
    return 0


def _flatten(space: Any, value: Any, flat: list[np.ndarray]) -> None:
    """Append the numbers of an observation, in the order of `_size`."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            if isinstance(part, _PARTS + _NUMBERS):
                _flatten(part, value[key], flat)
    elif isinstance(space, spaces.Tuple):
        for part, one in zip(space.spaces, value, strict=True):
            if isinstance(part, _PARTS + _NUMBERS):
                _flatten(part, one, flat)
    else:
        flat.append(np.asarray(spaces.flatten(space, value), np.float32).reshape(-1))
