"""Where a result comes from: versions, revision and kind of machine, without names of hosts or users."""

import functools
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from sentinel_rl.storage.manifest import current_device, current_versions


def provenance() -> dict[str, Any]:
    """All that is told of the circumstances of a computation that ends now."""
    return {
        "device": current_device(),
        "devices": jax.local_device_count(),
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "versions": dict(current_versions()),
        "revision": revision(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def revision(file: Path = Path(__file__)) -> str | None:
    """The git revision that a file is kept in, with a ``+`` where the folder of the library was changed since.

    The environment variable ``SENTINEL_REVISION`` comes first: who copies a tree to where git does not follow, as into
    a container, can say what it is. None for a copy that nobody knows: an installed package may stand in a folder of
    somebody else's repository.
    """
    if told := os.environ.get("SENTINEL_REVISION"):
        return told
    try:
        _git(file, "ls-files", "--error-unmatch", file.name)
        changed = _git(file, "status", "--porcelain", "--untracked-files=no", "..")
        return _git(file, "rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(file: Path, *arguments: str) -> str:
    command = ["git", "-C", str(file.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


_COMPILING = "/jax/core/compile/"


class Stopwatch:
    """Adds up the seconds of the blocks that are measured."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Count the block as this phase, but what JAX traces and compiles in it as ``compiling``."""
        spans: list[tuple[float, float]] = []
        own = threading.get_ident()  # others may compile beside this one

        def listen(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
            if event.startswith(_COMPILING) and threading.get_ident() == own:
                spans.append((start_time, end_time))

        jax.monitoring.register_event_time_span_listener(listen)
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            jax.monitoring.unregister_event_time_span_listener(listen)
            compiling = min(covered(spans), took)
            self._add("compiling", compiling)
            self._add(phase, took - compiling)

    def _add(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


def covered(spans: list[tuple[float, float]]) -> float:
    """The length of the union of intervals: a program is traced inside another one.

    >>> covered([(0.0, 2.0), (1.0, 3.0), (1.0, 1.5), (5.0, 6.0)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
