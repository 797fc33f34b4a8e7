"""Files that are not ours, recognised and refused by name before anything in them is used."""

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sentinel_rl.errors import CorruptError, StorageError

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
