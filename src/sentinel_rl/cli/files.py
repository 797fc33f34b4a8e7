"""Files that are there completely or not at all."""

import os
import tempfile
from pathlib import Path


def writable_folder(folder: Path) -> Path:
    """Make a folder (and its parents) and see that a file can be written there, before any work is done.

    Raises:
        OSError: with the reason and what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = f"cannot write into the folder {folder} ({error.strerror}): give another one with --out"
        raise OSError(error.errno, reason) from error
    return folder


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file under a temporary name, flush it to the disk, then rename it: a reader never sees half of it.

    Text is written as UTF-8. What was there before is replaced; if anything fails it stays.
    """
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    """The permissions new files do not get: temporary files are private, results are ordinary files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
