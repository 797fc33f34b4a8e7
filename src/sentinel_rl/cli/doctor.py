"""``sentinel doctor``: what is installed, and what it runs on."""

import platform
from importlib.metadata import PackageNotFoundError, entry_points, version

import jax
import jax.numpy as jnp
from rich.table import Table

from sentinel_rl._version import __version__
from sentinel_rl.cli.console import results
from sentinel_rl.cli.plugins import GROUP
from sentinel_rl.compilation import use_compilation_cache

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "gymnasium", "matplotlib", "rich", "typer")


def run() -> None:
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
