"""``sentinel doctor`` and ``sentinel cache``: versions, devices, and the compiled programs that are kept."""

import platform
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Literal

import jax
import jax.numpy as jnp
from rich.table import Table

from sentinel_rl._version import __version__
from sentinel_rl.cli.app import GROUP
from sentinel_rl.compilation import SWITCH, cache_folder, cache_size, clear_cache, use_compilation_cache
from sentinel_rl.console import results

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "gymnasium", "matplotlib", "rich", "typer")


def doctor() -> None:
    """Print the table."""
    table = Table(title="sentinel doctor", show_header=False)
    for label, value in facts():
        table.add_row(label, value)
    results().print(table)


def facts() -> list[tuple[str, str]]:
    """Every line of the table."""
    return [
        ("sentinel-rl", __version__),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        *((package, _version(package)) for package in PACKAGES),
        ("devices", ", ".join(f"{device.device_kind} ({device.platform})" for device in jax.devices())),
        ("compiled programs", str(use_compilation_cache() or "not kept")),
        ("default float", f"{jnp.result_type(float)} (NumPy arrays keep their own)"),
        ("added commands", ", ".join(sorted({entry.name for entry in entry_points(group=GROUP)})) or "none"),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def cache(action: Literal["show", "clear"]) -> None:
    """Print what is kept, or remove it."""
    if action == "clear":
        results().print(f"removed {_megabytes(clear_cache())} of {cache_folder().parent}", soft_wrap=True)
        return
    count, size = cache_size()
    results().print(f"{cache_folder()}: {count} files, {_megabytes(size)}", soft_wrap=True)
    results().print(f"switch it off with {SWITCH}=off, empty it with `sentinel cache clear`", soft_wrap=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
