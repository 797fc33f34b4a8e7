"""The folders of a run's checkpoints: their names, their order, and how many are kept.

A step that is saved again gets a new folder, ``step_000050000_1``: nothing is ever overwritten in place.
"""

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

from sentinel_rl.errors import UsageError
from sentinel_rl.runners.atomic import remove_folder

NAME = re.compile(r"step_(\d{9,})(?:_(\d+))?")


class Saved(NamedTuple):
    """A checkpoint by its folder; they sort by age."""

    step: int
    repetition: int
    folder: Path


def saved(parent: Path) -> list[Saved]:
    """All checkpoints in a folder, the newest last; an absent folder has none."""
    entries = parent.iterdir() if parent.is_dir() else ()
    return sorted(place for entry in entries if (place := parse(entry)) and entry.is_dir())


def parse(folder: Path) -> Saved | None:
    """What the name of a folder says, if it is the name of a checkpoint."""
    match = NAME.fullmatch(folder.name)
    return Saved(int(match[1]), int(match[2] or 0), folder) if match else None


def free_name(parent: Path, step: int) -> Path:
    """The folder for a new checkpoint."""
    if step < 0:
        raise UsageError(f"a checkpoint needs a step of at least 0, got {step}")
    taken = [place.repetition for place in saved(parent) if place.step == step]
    return parent / (f"step_{step:09d}_{max(taken) + 1}" if taken else f"step_{step:09d}")


def prune(parent: Path, step: int, keep: int) -> None:
    """Remove all but the newest checkpoints of the last `keep` steps up to `step`.

    What lies beyond `step` was not good enough to resume from, and goes too.
    """
    newest = {place.step: place for place in saved(parent)}
    kept = {newest[number] for number in sorted(number for number in newest if number <= step)[-keep:]}
    for place in saved(parent):
        if place not in kept:
            with contextlib.suppress(OSError):  # tried again after the next checkpoint
                remove_folder(place.folder)
