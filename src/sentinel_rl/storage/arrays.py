"""Pytrees of JAX arrays to arrays on the host and back, bit for bit, and those to a zip file and back."""

import io
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.errors import CorruptError, StorageError, UsageError
from sentinel_rl.storage.manifest import DTYPES, Leaf

LONGEST_HEADER = 2**16


def describe(tree: Any) -> list[Leaf]:
    """Name every array of a tree; a ``jax.ShapeDtypeStruct`` is as good as an array.

    Raises:
        UsageError: when a leaf is no array, or of a type that is not saved.
    """
    return [_leaf(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def to_host(tree: Any) -> list[np.ndarray]:
    """Fetch the arrays of a tree from the device, keys as their data."""
    return [
        np.asarray(array, order="C")
        for array in jax.device_get(
            [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in jax.tree.leaves(tree)]
        )
    ]


def to_tree(arrays: Sequence[np.ndarray], like: Any) -> Any:
    """Put arrays into the form of a tree: JAX's on the devices of its leaves, NumPy's as they are."""
    leaves, structure = jax.tree.flatten(like)
    return jax.tree.unflatten(structure, [_place(*pair) for pair in zip(arrays, leaves, strict=True)])


def write_arrays(archive: zipfile.ZipFile, arrays: Sequence[np.ndarray]) -> list[int]:
    """Add arrays to a zip file in NumPy's format, so that it is an ``.npz``.

    Returns:
        the checksum of each.
    """
    for index, array in enumerate(arrays):
        with archive.open(_member(index), "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
    return [archive.getinfo(_member(index)).CRC for index in range(len(arrays))]


def read_arrays(file: BinaryIO, leaves: Sequence[Leaf], where: str) -> list[np.ndarray]:
    """Read the arrays of a zip file, each checked against its description.

    Raises:
        CorruptError: when the file is damaged, or not the one described.
    """
    name = where
    refuse_foreign(file, where)
    try:
        with zipfile.ZipFile(file) as archive:
            arrays = []
            for index, leaf in enumerate(leaves):
                name = f"{where}, array {leaf.path}"
                arrays.append(_read(archive, index, leaf))
            return arrays
    except Exception as error:  # whatever a damaged or malicious file provokes in its readers
        raise CorruptError(f"{name}: damaged or incomplete ({str(error) or type(error).__name__})") from error


def _read(archive: zipfile.ZipFile, index: int, leaf: Leaf) -> np.ndarray:
    info = archive.getinfo(_member(index))
    dtype = np.dtype(leaf.dtype)
    if info.CRC != leaf.crc32:
        raise ValueError(f"checksum {info.CRC:08x}, expected {leaf.crc32 or 0:08x}")
    if info.file_size > leaf.count * dtype.itemsize + LONGEST_HEADER:
        raise ValueError(f"{info.file_size} bytes for {leaf.kind}")
    data = archive.read(info)  # compares the checksum
    header = io.BytesIO(data)
    shape, fortran, found = _read_header(header)
    if (shape, found, fortran) != (leaf.shape, dtype, False):
        raise ValueError(f"{found}{list(shape)}, expected {leaf.kind}")
    return np.frombuffer(data, dtype, leaf.count, header.tell()).reshape(shape)


def _read_header(file: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    raise ValueError(f"NumPy format {version}, expected (1, 0)")


def _leaf(path: str, leaf: Any) -> Leaf:
    if _is_key(leaf):
        data, generator = _key_parts(leaf)
        return Leaf(path, data.shape, data.dtype.name, generator)
    if not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic)):
        raise UsageError(f"{path} is of type {type(leaf).__name__}: only arrays are saved, make it one or leave it out")
    if leaf.dtype.name not in DTYPES or not np.dtype(leaf.dtype).isnative:
        raise UsageError(f"{path} is of type {leaf.dtype}, which is not saved: use one of {', '.join(sorted(DTYPES))}")
    return Leaf(path, tuple(leaf.shape), leaf.dtype.name)


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _key_parts(key: Any) -> tuple[jax.ShapeDtypeStruct, str]:
    """The shape of a key's data, and its generator; works on a key that is not there yet."""
    generators = []

    def look(key: jax.Array) -> jax.Array:
        generators.append(str(jax.random.key_impl(key)))
        return jax.random.key_data(key)

    return jax.eval_shape(look, key), generators[0]


def _place(array: np.ndarray, like: Any) -> Any:
    """Put an array where its model is. JAX narrows 64 bits unless told, and may share memory with NumPy unless told."""
    if not isinstance(like, (jax.Array, jax.ShapeDtypeStruct)):
        return array.copy()
    if _is_key(like):
        return jax.device_put(jax.random.wrap_key_data(jnp.asarray(array), impl=_key_parts(like)[1]), like.sharding)
    with jax.enable_x64(True):
        return jax.device_put(array, like.sharding, may_alias=False)


def _member(index: int) -> str:
    return f"{index:05d}.npy"


OURS = re.compile(r"manifest\.json|\d{5}\.npy")
PICKLES = (".pkl", ".pickle", ".pt", ".pth")


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a saved file.

    Raises:
        CorruptError: when it is not there, or the disk does not give it back.
        StorageError: when it may not be read.
    """
    try:
        with open(path, "rb") as file:
            yield file
    except PermissionError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}. See that you may read it") from error
    except OSError as error:
        raise CorruptError(f"cannot read {path}: {error.strerror}. Restore it from a copy") from error


def refuse_foreign(file: BinaryIO, where: str) -> None:
    """Raise `CorruptError` unless an open file is a whole zip file that could be ours.

    A pickle is recognised without being loaded: loading one can run any code.
    """
    head = file.read(2)
    file.seek(0)
    if not head:
        raise CorruptError(f"{where} is empty: restore it from a copy")
    if head[:1] == b"\x80" or (head != b"PK" and os.path.splitext(where)[1] in PICKLES):
        raise CorruptError(
            f"{where} is a pickle, expected a zip file of sentinel-rl. Pickles can run any code and are never loaded: "
            "load it with the program that wrote it, and save what you need as arrays"
        )
    if head != b"PK":
        raise CorruptError(
            f"{where} is no zip file of sentinel-rl, or its beginning is damaged: restore it from a copy"
        )
    names = _names(file, where)
    if names and not any(OURS.fullmatch(name) for name in names):
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        raise CorruptError(
            f"{where} is a zip file of another program (it holds {shown}), expected one of sentinel-rl: "
            "load it with the program that wrote it"
        )


def _names(file: BinaryIO, where: str) -> list[str]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except Exception as error:  # whatever a damaged file provokes in its reader
        raise CorruptError(f"{where} is a truncated or damaged zip file ({error}): restore it from a copy") from error
