"""What a saved pytree says about itself, and whether that fits what is asked for."""

import dataclasses
import functools
import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from sentinel_rl._version import __version__
from sentinel_rl.errors import CorruptError, IncompatibleError
from sentinel_rl.storage import validation
from sentinel_rl.storage.configuration import ABSENT, Difference, canonical, differences, plain, table

FORMAT = "sentinel-rl"
SCHEMA = 1
# Types whose bytes mean the same everywhere; nothing here can hold a Python object.
DTYPES = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    ]
)
PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy")


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a pytree: where it stands and what it is.

    Args:
        path: its place in the tree, as JAX writes it.
        shape: of the array; of a PRNG key: of its data.
        dtype: likewise.
        prng: the generator, if it is a typed PRNG key.
        crc32: checksum of its bytes in the file (None for what is not saved).
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    prng: str | None = None
    crc32: int | None = None

    def form(self) -> np.ndarray:
        """An array that is as large for the one who looks, and a single number in memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    @property
    def kind(self) -> str:
        """Shape and type, for people: ``float32[4,2]``."""
        return f"{self.prng + ' key ' if self.prng else ''}{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def count(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Manifest:
    """All about a saved pytree except its numbers.

    Args:
        leaves: its arrays, in order.
        about: what the caller wants to be known: configuration, seed list, counters, environment.
        step: the step at which it was saved, in checkpoints.
        versions: of the libraries that made the numbers.
        device: the kind of device that made them.
        schema: version of this format.
    """

    leaves: tuple[Leaf, ...]
    about: dict[str, Any]
    step: int | None
    versions: dict[str, str]
    device: str
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if not all(isinstance(entry, dict) for entry in (self.about, self.versions)):
            raise TypeError("about and versions are dictionaries")
        if self.step is not None:
            validation.whole("step", self.step)


def make_manifest(leaves: Sequence[Leaf], about: Mapping[str, Any] | None, step: int | None = None) -> Manifest:
    """Describe a tree that is saved here and now."""
    return Manifest(tuple(leaves), plain(about or {}, "about"), step, dict(current_versions()), current_device())


@functools.cache
def current_versions() -> Mapping[str, str]:
    """The versions of this library and of those that make the numbers."""
    own = {"python": platform.python_version(), "sentinel-rl": __version__}
    return MappingProxyType(own | {package: version(package) for package in PACKAGES})


def current_device() -> str:
    """The kind of device that JAX uses when it is not told."""
    return str(next(iter(jnp.zeros(()).devices())).device_kind)


def to_text(manifest: Manifest) -> str:
    """Write a manifest as JSON that contains its own checksum."""
    content = {"format": FORMAT} | plain(dataclasses.asdict(manifest))
    return json.dumps(content | {"checksum": _checksum(content)}, indent=1) + "\n"


def from_text(text: str | bytes, where: str) -> Manifest:
    """Read a manifest.

    Args:
        text: of `to_text`.
        where: the name of the file, for messages.

    Raises:
        CorruptError: when it is not ours, or damaged.
        IncompatibleError: when it was written by a newer version.
    """
    try:
        content = json.loads(text)
        checksum, whole = content.pop("checksum"), _checksum(content)
        ours = content.pop("format") == FORMAT
    except Exception as error:  # whatever a damaged or foreign file holds
        raise CorruptError(f"{where} is no manifest of sentinel-rl, or damaged: restore it from a copy") from error
    if not ours or checksum != whole:
        raise CorruptError(f"{where} is damaged or was edited (wrong checksum): restore it from a copy")
    if content.get("schema") != SCHEMA:
        raise IncompatibleError(
            f"{where} has schema {content.get('schema')}, and sentinel-rl {__version__} reads schema {SCHEMA}: "
            f"use the version that wrote it ({content.get('versions')})"
        )
    try:
        return Manifest(**content | {"leaves": tuple(_leaf(**leaf) for leaf in content["leaves"])})
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{where} does not have the entries of schema {SCHEMA}: restore it from a copy") from error


def require_fit(manifest: Manifest, asked: Sequence[Leaf], expect: Mapping[str, Any] | None, where: str) -> None:
    """Raise `IncompatibleError`, with a table of saved against asked, unless the saved tree is the one asked for."""
    expect = plain(expect or {})
    rows = differences({key: manifest.about[key] for key in expect if key in manifest.about}, expect)
    rows += _leaf_differences(manifest.leaves, asked)
    if rows:
        raise IncompatibleError(
            f"{where} does not fit what is asked for:\n{table(rows)}\n"
            "Ask for what was saved, or start anew in another folder"
        )


def other_makers(manifest: Manifest) -> list[Difference]:
    """What differs here and now from what made the saved numbers, and can change the bits of those that follow."""
    makers = ("jax", "jaxlib")
    saved, here = (
        {name: versions.get(name) for name in makers} for versions in (manifest.versions, current_versions())
    )
    return differences(saved | {"device": manifest.device}, here | {"device": current_device()})


def _leaf(shape: list[int], path: str, dtype: str, **entries: Any) -> Leaf:
    validation.sizes(f"the shape of {path}", shape)
    validation.text("the place of an array", path)
    validation.require(dtype in DTYPES, f"the type of {path}", dtype, f"one of {', '.join(sorted(DTYPES))}")
    return Leaf(path, tuple(shape), dtype, **entries)


def _leaf_differences(saved: Sequence[Leaf], asked: Sequence[Leaf]) -> list[Difference]:
    old, new = ([(leaf.path, leaf.kind) for leaf in leaves] for leaves in (saved, asked))
    if old == new:
        return []
    before, after = dict(old), dict(new)
    pairs = [(path, before.get(path, ABSENT), after.get(path, ABSENT)) for path in before | after]
    rows = [Difference(*pair) for pair in pairs if pair[1] != pair[2]]
    return rows or [Difference("order of the arrays", *(", ".join(path for path, _ in side) for side in (old, new)))]


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()
