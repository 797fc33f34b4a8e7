"""A recording: episodes of an agent as plain arrays, with the reasons of every decision, in one file."""

import dataclasses
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sentinel_rl.errors import CorruptError
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.arrays import OURS, reading, refuse_foreign
from sentinel_rl.storage.checkpoint import MANIFEST
from sentinel_rl.viewer import schema
from sentinel_rl.viewer.schema import About, check_about, check_arrays

# Members of a file are measured before they are read.
LARGEST_MANIFEST = 2**20
LARGEST_ARRAY = 2**28
LARGEST_FILE = 2**30


@dataclasses.dataclass(frozen=True)
class Recording:
    """Episodes of an agent, one after the other.

    Axes: E episodes, T decisions of all episodes, A actions, K members, n atoms, O numbers of an observation, P parts
    of a value. A *moment* is the place before a decision or after the last one of an episode: there are T + E.

    Args:
        about: what is not an array.
        arrays: by name. Always: ``lengths [E]``, ``obs [T, O]``, ``action [T]`` (counted from 0), ``reward [T]``,
            ``terminated [T]``, ``truncated [T]``, ``realised [T]`` (the discounted return from here on; NaN where it is
            not known), ``value [T, A]``, ``parts [T, P, A]``. Of agents with laws: ``atoms [n]``
            or, where every law has its own, ``atoms [T, K, A, n]``; ``probs [T, K, A, n]`` and ``weights [T, K, A]``.
            The rest is the picture, see `sentinel_rl.viewer.schema`.
    """

    about: About
    arrays: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        check_about(self.about, "the recording")
        check_arrays(self.about, self.arrays, "the recording")

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.arrays["lengths"])

    @property
    def decisions(self) -> int:
        """The number of decisions in all episodes."""
        return len(self.arrays["action"])

    @property
    def has_laws(self) -> bool:
        """Whether the agent has laws of the return, and not only numbers."""
        return "probs" in self.arrays

    def starts(self) -> np.ndarray:
        """The first decision of every episode."""
        lengths = self.arrays["lengths"]
        first: np.ndarray = np.cumsum(lengths) - lengths
        return first


def save_recording(recording: Recording, path: str | Path) -> Path:
    """Save a recording as one file without pickle; a bare name gets ``.zip``.

    Raises:
        StorageError: when it could not be written.
    """
    target = Path(path) if Path(path).suffix else Path(f"{path}.zip")
    about = {"recording": schema.VERSION, **dataclasses.asdict(recording.about)}
    return save_archive(target, dict(recording.arrays), about)


def load_recording(path: str | Path) -> Recording:
    """Load what `save_recording` wrote. Nothing in the file is believed: sizes, types, shapes and ranges are checked.

    Raises:
        UsageError: when there is no such file.
        CorruptError: for a damaged, forged or foreign file.
        IncompatibleError: for a recording of another version.
    """
    where = Path(path)
    if where.exists():
        _require_small(where)
    manifest = read_archive_manifest(where)
    about = schema.read_about(manifest.about, str(where))
    form = schema.read_form(manifest.leaves, about, str(where))
    if sum(array.nbytes for array in form.values()) > LARGEST_FILE:
        raise CorruptError(f"{where} describes more than {LARGEST_FILE} bytes: it was not written by sentinel-rl")
    arrays, _ = load_archive(where, form)
    try:
        return Recording(about, arrays)
    except ValueError as error:
        raise CorruptError(f"{where} is no recording of sentinel-rl: {error}. Record it again") from error


def _require_small(path: Path) -> None:
    """Measure the members of a file, none of which is compressed, before any is read.

    Raises:
        CorruptError: for one that is too large, compressed, doubled or not ours.
    """
    with reading(path) as file:
        refuse_foreign(file, str(path))
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    names = [member.filename for member in members]
    for member in members:
        limit = LARGEST_MANIFEST if member.filename == MANIFEST else LARGEST_ARRAY
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise CorruptError(
                f"{path}: {member.filename} is compressed, and recordings are not: restore it from a copy"
            )
        if member.file_size > limit:
            raise CorruptError(f"{path}: {member.filename} has {member.file_size} bytes, at most {limit} are read")
    if len(set(names)) < len(names) or not all(OURS.fullmatch(name) for name in names):
        raise CorruptError(f"{path} holds members that a recording does not have: restore it from a copy")
