"""How long the imports take, each in a fresh interpreter. Run it with ``make bench``."""

import argparse
import subprocess
import sys

from _measure import machine

MODULES = ("jax", "sentinel_rl", "sentinel_rl.risk")
TIMED = "import time; start = time.perf_counter(); import {0}; print(time.perf_counter() - start)"


def import_seconds(module: str) -> float:
    """Time one import in a new process, the start of the interpreter excluded."""
    command = [sys.executable, "-c", TIMED.format(module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the least time of every import and the ratio to that of JAX."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="the best of so many runs counts (default: %(default)s)")
    rounds = parser.parse_args().rounds
    for module in MODULES:
        import_seconds(module)  # writes the byte code and fills the file cache
    times = [[import_seconds(module) for module in MODULES] for _ in range(rounds)]
    best = dict(zip(MODULES, map(min, zip(*times, strict=True)), strict=True))
    print(machine("jax", "equinox", "numpy"))
    print(f"\nin a fresh interpreter, best of {rounds}, taking turns:")
    for module, seconds in best.items():
        print(f"  import {module:<18} {seconds:6.3f} s   {seconds / best['jax']:5.2f} x import jax")


if __name__ == "__main__":
    main()
