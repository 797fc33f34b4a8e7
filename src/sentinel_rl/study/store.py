"""Results on disk: one file per cell, there completely or not at all, and checked when it is read."""

import contextlib
import json
import shutil
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sentinel_rl.errors import CorruptError, IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.atomic import ENDING, make_folder, storage_errors, write_file
from sentinel_rl.storage.manifest import Manifest
from sentinel_rl.storage.validation import from_file, names, number, require
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.record import Record

_SUFFIX = ".cell"
# A file that is still half-written after this many seconds belongs to a process that was killed.
_ABANDONED = 3_600.0


class Status(NamedTuple):
    """What a store holds of a grid.

    Args:
        finished: cells with a result.
        missing: cells without.
        failed: why, for those of the missing that were tried, by id.
        quarantined: files that were damaged.
    """

    finished: list[Cell]
    missing: list[Cell]
    failed: dict[str, str]
    quarantined: list[Path]


class Store:
    """A folder of results.

    ``ID.cell`` is a zip of arrays (NumPy's format, no pickle) and a manifest with settings, circumstances and
    checksums. ``failed/ID.json`` says why a cell could not be computed, and ``quarantine/`` holds damaged files. Many
    processes may use a store at once: a cell that two of them compute is written twice, with the same numbers.

    Args:
        folder: it is made when something is put into it.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints of cells are that have no result yet, one folder each."""
        return self.folder / "checkpoints"

    def path(self, cell: Cell) -> Path:
        """The file of a cell, there or not."""
        return self.folder / f"{cell.id}{_SUFFIX}"

    def put(self, record: Record) -> Path:
        """Write a record at once.

        Raises:
            StorageError: when it could not be written; what was there before is untouched.
        """
        about = {
            "id": record.cell.id,
            "cell": record.cell.to_json(),
            "arrays": sorted(record.arrays),
            "record": dict(record.about),
        }
        path = save_archive(self.path(record.cell), dict(record.arrays), about)
        with contextlib.suppress(OSError):
            self._failure(record.cell).unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints / record.cell.id, ignore_errors=True)
        return path

    def get(self, cell: Cell) -> Record | None:
        """Read the record of a cell, None where there is none.

        A damaged file is moved to ``quarantine/``, with a warning, and counts as missing. The label is that of `cell`.
        """
        found = self._read(self.path(cell))
        return None if found is None else Record(cell, *found[1:])

    def records(self) -> list[Record]:
        """All records, in the order of their ids.

        Those whose cells cannot be made here are left out, with a warning: their agents or environments are not
        registered, or were given as instances. `get` reads them where somebody has the cell.
        """
        found = ((path, self._read(path)) for path in self._files())
        return [
            Record(cell, *content[1:])
            for path, content in found
            if content is not None and (cell := self._cell(path, content[0])) is not None
        ]

    def __contains__(self, cell: Cell) -> bool:
        """Whether there is a file of a cell; its arrays are not looked at."""
        return self.path(cell).is_file()

    def status(self, cells: Sequence[Cell] | None = None) -> Status:
        """Tell what is on disk of a grid, by default of all that was ever tried here, without reading arrays."""
        if cells is None:
            about = ((path, self._about(path)) for path in self._files())
            cells = [cell for path, told in about if told is not None and (cell := self._cell(path, told)) is not None]
        finished = [cell for cell in cells if cell in self]
        missing = [cell for cell in cells if cell not in self]
        failed = {cell.id: why for cell in missing if (why := self.failure(cell)) is not None}
        return Status(finished, missing, failed, sorted((self.folder / "quarantine").glob("*")))

    def note_failure(self, cell: Cell, error: BaseException) -> None:
        """Write down why a cell could not be computed."""
        lines = traceback.format_exception(error)
        content = {"cell": cell.to_json(), "error": f"{type(error).__name__}: {error}", "traceback": "".join(lines)}
        make_folder(self._failure(cell).parent)
        write_file(self._failure(cell), json.dumps(content, indent=1) + "\n")

    def failure(self, cell: Cell) -> str | None:
        """Why a cell could not be computed, if it was tried."""
        try:
            return str(json.loads(self._failure(cell).read_text())["error"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def remove(self, cell: Cell) -> None:
        """Remove what there is of a cell."""
        with storage_errors(f"cannot remove {self.path(cell)}"):
            self.path(cell).unlink(missing_ok=True)
            self._failure(cell).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed processes left half-written; what is young may be at work."""
        for entry in self.folder.glob(f".*{ENDING}"):
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > _ABANDONED:
                    entry.unlink()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_SUFFIX}"))

    def _failure(self, cell: Cell) -> Path:
        return self.folder / "failed" / f"{cell.id}.json"

    def _read(self, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Any]] | None:
        """The cell, the arrays and the notes of a file; None where there is no undamaged one."""
        try:
            return _load(path) if path.exists() else None
        except CorruptError as error:
            self._quarantine(path, error)
            return None

    def _about(self, path: Path) -> dict[str, Any] | None:
        """What a file says of its cell, without its arrays."""
        try:
            return _described(read_archive_manifest(path), path)
        except CorruptError as error:
            self._quarantine(path, error)
            return None

    def _cell(self, path: Path, content: Mapping[str, Any]) -> Cell | None:
        """The cell of a file that is whole."""
        try:
            return Cell.from_json(content)
        except UsageError as error:
            warnings.warn(f"{path} is left out: {error}", SentinelWarning, stacklevel=3)
        except (KeyError, TypeError, ValueError) as error:
            self._quarantine(path, CorruptError(f"{path} does not say which cell it is ({error})"))
        return None

    def _quarantine(self, path: Path, error: CorruptError) -> None:
        """Put a damaged file out of the way."""
        target = make_folder(self.folder / "quarantine") / f"{path.stem}-{time.time_ns()}{_SUFFIX}"
        with storage_errors(f"cannot move {path}"), contextlib.suppress(FileNotFoundError):
            path.rename(target)
        message = f"{error}\n{path.name} is now {target.relative_to(self.folder)}; its cell counts as missing"
        warnings.warn(message, SentinelWarning, stacklevel=4)


def _load(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Any]]:
    manifest = read_archive_manifest(path)
    cell = _described(manifest, path)
    with from_file(str(path), "record"):
        names("arrays", manifest.about["arrays"])
        form = dict(zip(manifest.about["arrays"], (leaf.form() for leaf in manifest.leaves), strict=True))
        record = manifest.about["record"]
        require(isinstance(record, dict), "record", record, "a dictionary")
        _check_notes(record)
    try:
        return cell, load_archive(path, form)[0], record
    except IncompatibleError as error:
        raise CorruptError(f"{path} names other arrays than it holds: {error}") from error


def _check_notes(record: Mapping[str, Any]) -> None:
    """Raise `ValueError` for notes that are not those of a record."""
    failures, seconds = record.get("failures", {}), record.get("seconds", {})
    require(isinstance(failures, dict), "failures", failures, "a dictionary of texts by seed")
    for seed, why in failures.items():
        require(str(seed).isdecimal() and isinstance(why, str), "failures", f"{seed}: {why}", "texts by seed")
    require(isinstance(seconds, dict), "seconds", seconds, "a dictionary of numbers")
    for phase, value in seconds.items():
        number(f"seconds.{phase}", value, 0.0)


def _described(manifest: Manifest, path: Path) -> dict[str, Any]:
    """What a file says of its cell."""
    cell = manifest.about.get("cell")
    if not isinstance(cell, dict):
        raise CorruptError(f"{path} does not say which cell it is")
    # Not the hash of the cell as it would be made today: defaults may have changed since. Version 0.1 noted none.
    if (name := manifest.about.get("id", path.stem)) != path.stem:
        raise CorruptError(f"{path} holds the cell {name}: files were swapped or renamed")
    return cell
