"""``sentinel cache``: the compiled programs that are kept between processes."""

from typing import Literal

from sentinel_rl.cli.console import results
from sentinel_rl.compilation import SWITCH, cache_folder, cache_size, clear_cache


def run(action: Literal["show", "clear"]) -> None:
    """Print what is kept, or remove it."""
    if action == "clear":
        results().print(f"removed {_megabytes(clear_cache())} of {cache_folder().parent}", soft_wrap=True)
        return
    count, size = cache_size()
    results().print(f"{cache_folder()}: {count} files, {_megabytes(size)}", soft_wrap=True)
    results().print(f"switch it off with {SWITCH}=off, empty it with `sentinel cache clear`", soft_wrap=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
