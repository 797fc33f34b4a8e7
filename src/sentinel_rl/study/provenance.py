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

    For a copy that git does not keep (an installed package may stand in a folder of somebody else's repository) it is
    what the environment variable ``SENTINEL_REVISION`` says, as a container's recipe can set it, or None.
    """
    try:
        _git(file, "ls-files", "--error-unmatch", file.name)
        changed = _git(file, "status", "--porcelain", "--untracked-files=no", "..")
        return _git(file, "rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("SENTINEL_REVISION")


def _git(file: Path, *arguments: str) -> str:
    command = ["git", "-C", str(file.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
