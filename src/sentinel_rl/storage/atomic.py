"""Files and folders that are there completely or not at all, whenever the process or the machine dies.

Everything is made under a temporary name beside its target, flushed to the disk and renamed. A name with the ending of
`temporary` is never read; what a killed process left behind is removed by `sweep`.
"""

import contextlib
import errno
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sentinel_rl.errors import StorageError

ENDING = ".sentinel-tmp"
SPARE = 1.1


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file at once, text as UTF-8; what was there before is replaced, and stays if anything fails."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when the block ends well.

    Raises:
        StorageError: when the disk is full, or the folder read-only or not permitted.
    """
    hidden = temporary(path)
    with storage_errors(f"cannot write {path}"):
        try:
            with open(hidden, "xb") as file:
                yield file
                sync_file(file)
            os.replace(hidden, path)
        except BaseException:
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a folder to fill, which takes the name `path` only when the block ends well.

    Raises:
        StorageError: when the disk is full, or the folder read-only or not permitted.
    """
    hidden = temporary(path)
    with storage_errors(f"cannot write {path}"):
        try:
            hidden.mkdir()
            yield hidden
            sync_folder(hidden)
            hidden.rename(path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        sync_folder(path.parent)


def writable_folder(folder: Path) -> Path:
    """Make a folder (and its parents) and see that a file can be written there, before any work is done.

    Raises:
        StorageError: with the reason and what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = f"cannot write into the folder {folder} ({error.strerror}): give another one with --out"
        raise StorageError(reason) from error
    return folder


def make_folder(path: Path) -> Path:
    """Make a folder and its parents, if they are not there yet.

    Raises:
        StorageError: when that is not possible.
    """
    with storage_errors(f"cannot make the folder {path}"):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
    return path


def remove_folder(path: Path) -> None:
    """Remove a folder: it loses its name first, so that nobody takes the rest for the whole."""
    hidden = temporary(path)
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder; only for the one process that may write there."""
    for entry in folder.glob(f".*{ENDING}"):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink(missing_ok=True)


def temporary(path: Path) -> Path:
    """A new hidden name beside a path."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{ENDING}")


def require_space(folder: Path, size: int) -> None:
    """Raise `StorageError` unless there is a tenth more than `size` bytes free."""
    with storage_errors(f"cannot look at {folder}"):
        free = shutil.disk_usage(folder).free
    if free < SPARE * size:
        raise StorageError(
            f"{folder}: no room on the disk: {SPARE * size / 1e6:.1f} MB are needed, {free / 1e6:.1f} MB are free. "
            "What was saved before is kept: free some space, or give another folder"
        )


def sync_file(file: BinaryIO) -> None:
    """Flush an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can: Windows and some network disks cannot."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn the errors of the operating system into a `StorageError` that begins with `what`."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{what}: {error.strerror or error}. What was saved before is kept: "
            "free some space, see that the folder may be written to, or give another one"
        ) from error
