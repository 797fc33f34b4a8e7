"""One process per folder: a lock that names its holder, and that a dead process does not keep."""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import storage_errors

if sys.platform != "win32":
    import fcntl


class Holder(NamedTuple):
    """The process that holds a lock."""

    pid: int
    host: str

    @property
    def here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> bool | None:
        """Whether there is a process of that number; None on another machine, of which nothing is known."""
        if not self.here or sys.platform == "win32":  # there, asking would end the process
            return None
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass  # it is there, but somebody else's
        return True


def read_holder(path: Path) -> Holder | None:
    """Who the lock file names, if anyone."""
    try:
        content = json.loads(path.read_text())
        return Holder(int(content["pid"]), str(content["host"]))
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold a lock file during the block.

    The system releases the lock of a process that dies, so that it can be taken over on this machine; the lock of
    another machine cannot be judged from here and is respected.

    Raises:
        UsageError: when another process holds it.
        StorageError: when the file cannot be written.
    """
    with storage_errors(f"cannot lock {path}"):
        handle = _acquire(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if _still_named(handle, path):
                path.unlink()
        os.close(handle)


def _acquire(path: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            exclusive = _exclusive(handle)
            holder = read_holder(path)
            if exclusive is False or (holder is not None and _may_live(holder, exclusive)):
                raise _refusal(path, holder)
            if _still_named(handle, path):
                os.truncate(handle, 0)
                os.write(handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder removed it meanwhile: try again


def _exclusive(handle: int) -> bool | None:
    """Ask the system for the lock: True, False, or None where it has no locks."""
    if sys.platform == "win32":
        return None  # the process number in the file has to do
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _may_live(holder: Holder, exclusive: bool | None) -> bool:
    """Whether a holder may still be at work; with the system's lock in hand, one on this machine is not."""
    if holder.here and (exclusive or holder.pid == os.getpid()):
        return False
    return holder.alive is not False


def _still_named(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _refusal(path: Path, holder: Holder | None) -> UsageError:
    who = f"process {holder.pid} on {holder.host}" if holder else "another process"
    advice = "wait for it, stop it, or use another folder"
    if holder and not holder.here:
        advice += f". If you know that it is gone, delete {path}"
    return UsageError(f"{path.parent} is in use by {who}: {advice}")
