"""One small portable file for a pytree, such as a trained policy or a record of a study.

The file is a zip of the arrays (NumPy's format, no pickle) and the same manifest that a checkpoint has.
"""

import dataclasses
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.arrays import describe, read_arrays, reading, refuse_foreign, to_host, to_tree, write_arrays
from sentinel_rl.storage.atomic import make_folder, replacing, require_space
from sentinel_rl.storage.checkpoint import MANIFEST
from sentinel_rl.storage.manifest import Manifest, from_text, make_manifest, require_fit, to_text

# Bytes of the largest manifest that is read; that of the largest study has a hundredth of it.
LARGEST_MANIFEST = 2**24


def save_archive(
    path: Path | str, tree: Any, about: Mapping[str, Any] | None = None, *, compress: bool = False
) -> Path:
    """Save a pytree of arrays as one file; a file that was there is replaced, at once.

    Args:
        path: of the file; missing folders are made.
        tree: JAX or NumPy arrays, typed PRNG keys among them.
        about: what shall be known about it (JSON values).
        compress: deflate the arrays; weights that were not rounded before hardly become smaller.

    Raises:
        StorageError: when it could not be written. A file that was there is untouched.
    """
    path = Path(path)
    leaves, arrays = describe(tree), to_host(tree)
    make_folder(path.parent)
    require_space(path.parent, sum(array.nbytes for array in arrays))
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with replacing(path) as file, zipfile.ZipFile(file, "w", method) as archive:
        checksums = write_arrays(archive, arrays)
        marked = [dataclasses.replace(leaf, crc32=crc) for leaf, crc in zip(leaves, checksums, strict=True)]
        archive.writestr(zipfile.ZipInfo(MANIFEST), to_text(make_manifest(marked, about)))
    return path


def load_archive(path: Path | str, like: Any, expect: Mapping[str, Any] | None = None) -> tuple[Any, Manifest]:
    """Load a file of `save_archive`, after comparing it with what is asked for.

    Arguments and results are those of `sentinel_rl.storage.checkpoint.load`.

    Raises:
        UsageError: when there is no such file.
        IncompatibleError: with a table of saved against asked.
        CorruptError: when it is damaged, or not ours.
    """
    path = _existing(path)
    with reading(path) as file:
        manifest = _manifest(file, str(path))
        require_fit(manifest, describe(like), expect, str(path))
        return to_tree(read_arrays(file, manifest.leaves, str(path)), like), manifest


def read_archive_manifest(path: Path | str) -> Manifest:
    """Read what a file of `save_archive` says about itself, without its arrays. It raises what `load_archive` does."""
    path = _existing(path)
    with reading(path) as file:
        return _manifest(file, str(path))


def _existing(path: Path | str) -> Path:
    path = Path(path)
    if not path.exists():
        raise UsageError(f"there is no file {path}: check its name, and the folder you are in")
    return path


def _manifest(file: BinaryIO, where: str) -> Manifest:
    refuse_foreign(file, where)
    try:
        with zipfile.ZipFile(file) as archive:
            size = archive.getinfo(MANIFEST).file_size
            if size > LARGEST_MANIFEST:  # measured before it is read
                raise ValueError(f"{size} bytes, at most {LARGEST_MANIFEST} are read")
            text = archive.read(MANIFEST)
    except Exception as error:  # whatever a damaged file provokes in its reader
        raise CorruptError(f"{where}: {MANIFEST} in it is damaged ({error}): restore it from a copy") from error
    return from_text(text, f"{where}, {MANIFEST}")
