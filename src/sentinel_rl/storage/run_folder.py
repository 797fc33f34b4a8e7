"""The folder of a run: whose it is, what it was asked to do, and whether that is done.

``config.json`` says which configuration runs here, ``checkpoints/`` how far it came, ``finished.json`` that it is
done, and ``lock`` that a process is at work.
"""

import contextlib
import dataclasses
import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.storage.atomic import ENDING, make_folder, remove_folder, storage_errors, sweep, write_file
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.storage.configuration import differences, digest, plain, table
from sentinel_rl.storage.lock import Holder, hold, read_holder

CONFIG, FINISHED, CHECKPOINTS, LOCK = "config.json", "finished.json", "checkpoints", "lock"
FORMAT = "sentinel-rl run"
# Of a file that is read whole; a configuration has a few kilobytes, and that of 100 000 seeds some megabytes.
LARGEST_TEXT = 64_000_000
FINISHED_FORMAT = "sentinel-rl finished run"

# Turns a saved configuration into one of this version.
Upgrade = Callable[[dict[str, Any]], Mapping[str, Any]]

State = Literal["empty", "unfinished", "finished", "foreign"]


@dataclasses.dataclass(frozen=True)
class Status:
    """What is in a folder.

    Args:
        state: ``empty`` (or not there), ``unfinished``, ``finished``, or ``foreign`` (files of something else).
        configuration: of the run, if there is one.
        about: what was noted beside it, for example the options as they were typed.
        step: of its newest checkpoint.
        holder: the process that the lock names, dead or alive.
        result: what the run said when it finished.
    """

    state: State
    configuration: dict[str, Any] | None = None
    about: dict[str, Any] | None = None
    step: int | None = None
    holder: Holder | None = None
    result: dict[str, Any] | None = None

    @property
    def hash(self) -> str | None:
        """The hash of the configuration: runs of the same have the same."""
        return None if self.configuration is None else digest(self.configuration)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """A folder in which this process runs a configuration.

    Args:
        path: the folder.
        configuration: as it is saved.
        about: what is noted beside it.
        resumed: whether the run began before; there may still be no checkpoint yet.
    """

    path: Path
    configuration: dict[str, Any]
    about: dict[str, Any]
    resumed: bool

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are."""
        return self.path / CHECKPOINTS

    def finish(self, result: Mapping[str, Any] | None = None) -> None:
        """Mark the run as done, with what shall be known of its end."""
        content = {**plain(result or {}), "format": FINISHED_FORMAT}
        write_file(self.path / FINISHED, json.dumps(_signed(content), indent=1, sort_keys=True) + "\n")


def status(path: Path | str) -> Status:
    """Look at a folder, without touching it."""
    path = Path(path)
    configuration, about = _read_configuration(path)
    if configuration is None:
        return Status("foreign" if _has_files(path) else "empty", holder=read_holder(path / LOCK))
    places = saved(path / CHECKPOINTS)
    result = _read_finished(path / FINISHED)
    return Status(
        state="unfinished" if result is None else "finished",
        configuration=configuration,
        about=about,
        step=places[-1].step if places else None,
        holder=read_holder(path / LOCK),
        result=result,
    )


@contextlib.contextmanager
def open_run(
    path: Path | str,
    configuration: Mapping[str, Any],
    overwrite: bool = False,
    artifacts: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
    upgrade: Upgrade = lambda configuration: configuration,
    extend: Sequence[str] = (),
) -> Iterator[RunFolder]:
    """Begin or resume a run in a folder, and keep other processes out of it during the block.

    Args:
        path: the folder; it is made if need be.
        configuration: all that makes the run what it is (JSON values), the seed list included: a folder of another
            one is refused.
        overwrite: begin anew where a run is, finished or not. Only what runs write is removed.
        artifacts: patterns of the other files that the run writes (``"monitor*.csv"``), to be removed with it.
        about: what shall be noted beside the configuration, without being compared.
        upgrade: turns a configuration that an earlier version saved into one of this version.
        extend: entries (``"plan.steps"``) in which the folder's run may differ: it is then continued as this one,
            finished or not.

    Raises:
        UsageError: when the folder holds something else, another configuration (with a table of the differences) or a
            finished run, or when another process is at work in it.
        StorageError: when it cannot be written to.
    """
    path, asked = Path(path), plain(configuration, "configuration")
    _require_fit(path, asked, overwrite, upgrade, extend)  # before anything is written
    make_folder(path)
    with hold(path / LOCK):
        longer = _require_fit(path, asked, overwrite, upgrade, extend)
        with storage_errors(f"cannot clear {path}"):
            # Runs that are stepped from Python have a folder of checkpoints for each seed.
            for folder in (path, path / CHECKPOINTS, *(path / CHECKPOINTS).glob("seed_*")):
                sweep(folder)
            if overwrite:
                _clear(path, artifacts)
            elif longer:
                (path / FINISHED).unlink(missing_ok=True)  # first: a run that is not finished can be extended too
        resumed = (path / CONFIG).exists() and not overwrite
        if longer or not resumed:
            noted = plain(about or {}, "about")
            content = {"format": FORMAT, "hash": digest(asked), "configuration": asked, "about": noted}
            write_file(path / CONFIG, json.dumps(_signed(content), indent=1) + "\n")
        yield RunFolder(path, asked, plain(about or {}, "about"), resumed)


def _require_fit(path: Path, asked: dict[str, Any], overwrite: bool, upgrade: Upgrade, extend: Sequence[str]) -> bool:
    """Raise `UsageError` unless a run can begin or go on here; returns whether it is a longer one."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file, expected a folder: give another one")
    found = status(path)
    if found.state == "foreign":
        raise UsageError(
            f"{path} holds files, but no run of sentinel-rl (no readable {CONFIG}): give an empty or a new folder"
        )
    if overwrite or found.state == "empty":
        return False
    saved_configuration = plain(upgrade(found.configuration or {}))
    rows = differences(saved_configuration, asked)
    if rows and all(row.what in extend for row in rows):
        return True
    if rows:
        raise UsageError(
            f"{path} holds a run of another configuration:\n{table(rows)}\n"
            "Give another folder, ask for the saved configuration to resume it, or overwrite it"
        )
    if found.state == "finished":
        raise UsageError(
            f"{path} holds a finished run of this configuration: ask for more steps to extend it, overwrite it, or "
            "give another folder"
        )
    return False


def _clear(path: Path, artifacts: Sequence[str]) -> None:
    """Remove a run, except for its configuration: if this is interrupted, it is still known to be a run."""
    (path / FINISHED).unlink(missing_ok=True)
    for place in saved(path / CHECKPOINTS):
        remove_folder(place.folder)
    for found in [entry for pattern in artifacts for entry in path.glob(pattern)]:
        shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()


def _has_files(path: Path) -> bool:
    """Whether there is more than what a run leaves that was killed before its first word."""
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    return any(name != LOCK and not name.endswith(ENDING) for name in names)


def _read_configuration(path: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The configuration of a run and what is noted beside it, unless the file is not ours, damaged or edited."""
    content = _read_object(path / CONFIG) or {}
    configuration, about = content.get("configuration"), content.get("about")
    if content.get("format") != FORMAT or not isinstance(configuration, dict):
        return None, None
    if content.get("hash") != digest(configuration) or not (set(content) <= _OF_CONFIG or _is_signed(content)):
        return None, None
    return configuration, about if isinstance(about, dict) else None


# Of a file of version 0.1, which has no checksum.
_OF_CONFIG = {"format", "hash", "configuration", "about"}


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file with its checksum."""
    return {**content, "checksum": digest(content)}


def _is_signed(content: dict[str, Any]) -> bool:
    """Whether the checksum of a content is there and right."""
    return "checksum" in content and content["checksum"] == digest(
        {name: value for name, value in content.items() if name != "checksum"}
    )


def _read_finished(path: Path) -> dict[str, Any] | None:
    """What a run said when it finished; a damaged file is warned about, and the run counts as unfinished."""
    if not path.is_file():
        return None
    content = _read_object(path)
    # A file of version 0.1 has neither a format nor a checksum; no single damage takes both away.
    legacy = content is not None and not {"format", "checksum"} & set(content)
    if content is not None and (legacy or _is_signed(content)):
        return {name: value for name, value in content.items() if name not in ("checksum", "format")}
    warnings.warn(
        f"{path} is damaged, and the run counts as unfinished: the same `sentinel train` command writes it again, from "
        "the last checkpoint",
        SentinelWarning,
        stacklevel=4,
    )
    return None


def _read_object(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST_TEXT:
            return None
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
