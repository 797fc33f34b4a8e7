"""Where a result comes from: versions, revision and kind of machine, without names of hosts or users."""

import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from sentinel_rl.runners.manifest import current_device, current_versions


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
