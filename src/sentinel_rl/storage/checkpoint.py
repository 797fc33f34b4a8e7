"""Checkpoints of a run: a kill at any moment leaves the last one whole, and what is loaded is what was saved.

``checkpoints/step_000050000/`` holds ``state.npz`` (the arrays, no pickle) and ``manifest.json`` (what they are).
"""

import contextlib
import dataclasses
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

from sentinel_rl.errors import CorruptError, SentinelWarning, StorageError, UsageError
from sentinel_rl.storage.arrays import describe, read_arrays, reading, to_host, to_tree, write_arrays
from sentinel_rl.storage.atomic import make_folder, new_folder, remove_folder, require_space, sync_file
from sentinel_rl.storage.configuration import table
from sentinel_rl.storage.manifest import Manifest, from_text, make_manifest, other_makers, require_fit, to_text
from sentinel_rl.storage.validation import from_file

STATE, MANIFEST = "state.npz", "manifest.json"

# The form of a saved tree, from the form of the tree in memory and what the checkpoint says of itself: for example
# replays that were cut to their filled part.
Fit = Callable[[Any, Manifest], Any]


def save(parent: Path, step: int, tree: Any, about: Mapping[str, Any] | None = None, keep: int = 2) -> Path:
    """Save a pytree of arrays.

    Args:
        parent: the folder of the run's checkpoints.
        step: the number of steps made.
        tree: JAX or NumPy arrays, typed PRNG keys among them. It may be less than the run has in memory, see `load`.
        about: what shall be known about it (JSON values); `load` compares with it.
        keep: how many checkpoints to keep.

    Returns:
        the folder of the checkpoint.

    Raises:
        StorageError: when it could not be written. Nothing is left of it, and the earlier checkpoints are untouched.
    """
    if keep < 1:
        raise UsageError(f"at least 1 checkpoint must be kept, got keep={keep}")
    leaves, arrays = describe(tree), to_host(tree)
    make_folder(parent)
    require_space(parent, sum(array.nbytes for array in arrays))
    target = free_name(parent, step)
    with new_folder(target) as folder:
        with open(folder / STATE, "xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                checksums = write_arrays(archive, arrays)
            sync_file(file)
        marked = [dataclasses.replace(leaf, crc32=crc) for leaf, crc in zip(leaves, checksums, strict=True)]
        with open(folder / MANIFEST, "xb") as file:
            file.write(to_text(make_manifest(marked, about, step)).encode())
            sync_file(file)
    prune(parent, step, keep)
    return target


def load(
    folder: Path, like: Any, expect: Mapping[str, Any] | None = None, fit: Fit | None = None
) -> tuple[Any, Manifest]:
    """Load a checkpoint, after comparing it with what is asked for.

    Args:
        folder: of the checkpoint.
        like: a tree of the same form, of arrays or ``jax.ShapeDtypeStruct`` (see ``jax.eval_shape``).
        expect: entries that `about` must have had when it was saved, for example configuration and seed list.
        fit: gives the form of what was saved, where that is less than `like`.

    Returns:
        the tree, its JAX arrays on the devices of `like`, and the manifest. Other versions of JAX or another
        kind of device than it was saved with are warned about: what follows may differ in its last bits.

    Raises:
        IncompatibleError: with a table of saved against asked.
        CorruptError: when it is damaged or incomplete.
    """
    manifest = read_manifest(folder)
    if fit is not None:
        with from_file(str(folder), "checkpoint"), jax.enable_x64(True):  # shapes only, and no type is narrowed
            like = jax.eval_shape(lambda tree: fit(tree, manifest), like)
    require_fit(manifest, describe(like), expect, str(folder))
    with reading(folder / STATE) as file:
        arrays = read_arrays(file, manifest.leaves, str(folder / STATE))
    if rows := other_makers(manifest):
        warnings.warn(
            f"{folder} was saved by other makers, results may differ in their last bits from an uninterrupted run:\n"
            f"{table(rows)}",
            SentinelWarning,
            stacklevel=2,
        )
    return to_tree(arrays, like), manifest


def latest(
    parent: Path, like: Any, expect: Mapping[str, Any] | None = None, fit: Fit | None = None
) -> tuple[Any, Manifest] | None:
    """Load the newest checkpoint that is undamaged, with a warning for every newer one that is not.

    Arguments and errors are those of `load`. A checkpoint that is whole but does not fit is an error, not passed over.

    Returns:
        tree and manifest, or None when nothing was ever saved.

    Raises:
        CorruptError: when there are checkpoints, and none of them is readable.
    """
    problems: dict[Path, CorruptError] = {}
    # Looked up anew each time: a run that goes on may have replaced what was there.
    while untried := [place.folder for place in saved(parent) if place.folder not in problems]:
        try:
            found = load(untried[-1], like, expect, fit)
        except CorruptError as error:
            problems[untried[-1]] = error
            continue
        for problem in problems.values():
            message = f"{problem}\nFALLING BACK to the checkpoint of step {found[1].step}: the steps after it are lost"
            warnings.warn(message, SentinelWarning, stacklevel=2)
        return found
    if problems:
        reasons = "\n".join(f"  {error}" for error in problems.values())
        raise CorruptError(
            f"none of the {len(problems)} checkpoints in {parent} is readable:\n{reasons}\n"
            "Restore one from a copy, or start the run anew"
        )
    return None


def read_manifest(folder: Path) -> Manifest:
    """Read what a checkpoint says about itself, without its arrays.

    Raises:
        IncompatibleError: when this version cannot read it.
        CorruptError: when it is damaged or missing.
    """
    path = folder / MANIFEST
    with reading(path) as file:
        manifest = from_text(file.read(), str(path))
    name = parse(folder)
    if name is not None and name.step != manifest.step:
        raise CorruptError(f"{folder} holds the checkpoint of step {manifest.step}: files were swapped or renamed")
    return manifest


class Saver:
    """Saves a run's checkpoints, and bears with a full disk for a while: it may have room again at the next one.

    Args:
        parent: the folder of the run's checkpoints.
        patience: failures in a row after which the error is raised.
        keep: how many checkpoints to keep.
    """

    def __init__(self, parent: Path, patience: int = 3, keep: int = 2):
        self.parent, self.patience, self.keep, self.failures = parent, patience, keep, 0

    def write_beside(self, write: Callable[[], None]) -> None:
        """Write something that goes with the next checkpoint; what fails is tried again with the one after it."""
        try:
            write()
        except StorageError:
            if self.failures + 1 >= self.patience:
                raise

    def save(self, step: int, tree: Any, about: Mapping[str, Any] | None = None) -> Path | None:
        """Save as the function `save` does; None, with a warning, when it failed and will be tried again."""
        try:
            folder = save(self.parent, step, tree, about, self.keep)
        except StorageError as error:
            self.failures += 1
            if self.failures >= self.patience:
                raise
            message = f"checkpoint {self.failures} of {self.patience} in a row failed, the run goes on: {error}"
            warnings.warn(message, SentinelWarning, stacklevel=2)
            return None
        self.failures = 0
        return folder

    def tidy(self, step: int) -> None:
        """Remove old checkpoints that a process has left which was killed before it could.

        Args:
            step: of the checkpoint that is resumed from; nothing is removed where there is a newer one.
        """
        if saved(self.parent)[-1].step == step:
            prune(self.parent, step, self.keep)


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
