"""Compiled programs, kept from one process to the next in a folder of the user's."""

import os
import shutil
from pathlib import Path

import jax
import jaxlib.version

SWITCH = "SENTINEL_COMPILATION_CACHE"

# Programs that compile faster than this (seconds) are not worth a file.
_WORTH_KEEPING = 0.5


def use_compilation_cache() -> Path | None:
    """Let JAX keep what it compiles, unless its own configuration names a folder already or the user does not want it.

    The folder is that of `cache_folder`. The environment variable ``SENTINEL_COMPILATION_CACHE=off`` switches it off.
    What is computed does not depend on it.

    Returns:
        the folder in use, or None.
    """
    if (chosen := jax.config.values["jax_compilation_cache_dir"]) is not None:
        return Path(chosen)
    if os.environ.get(SWITCH, "on").lower() in ("off", "0", "false", "no"):
        return None
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # a home that cannot be written to is no reason to fail
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)
    return folder


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/sentinel-rl/jaxlib-VERSION``, by default in ``~/.cache``: other versions cannot use it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sentinel-rl" / f"jaxlib-{jaxlib.version.__version__}"


def cache_size() -> tuple[int, int]:
    """How many files the folder holds, and their bytes."""
    sizes = [path.stat().st_size for path in cache_folder().glob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def clear_cache() -> int:
    """Remove the folders of all versions; returns the number of bytes that were freed."""
    parent = cache_folder().parent
    freed = sum(path.stat().st_size for path in parent.rglob("*") if path.is_file())
    shutil.rmtree(parent, ignore_errors=True)
    return freed
