"""Recordings in a file: what was written is read, and nothing that was forged."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest

from sentinel_rl.errors import CorruptError, IncompatibleError, UsageError
from sentinel_rl.storage import manifest
from sentinel_rl.storage.archive import save_archive
from sentinel_rl.viewer import Recording, load_recording, save_recording
from sentinel_rl.viewer import recording as module
from sentinel_rl.viewer.schema import VERSION
from tests.viewer.made import LENGTHS, made


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_recording(made(), tmp_path_factory.mktemp("recording") / "road")


@pytest.mark.parametrize(
    ("view", "laws", "own_atoms"),
    [
        ("road", True, False),
        ("frames", True, False),
        ("chart", True, False),
        ("chart", False, False),
        ("road", True, True),
    ],
)
def test_what_was_written_is_read(view, laws, own_atoms, tmp_path):
    recording = made(view, laws, own_atoms=own_atoms)
    found = load_recording(save_recording(recording, tmp_path / "one"))
    assert found.about == recording.about
    assert set(found.arrays) == set(recording.arrays)
    for name, array in recording.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    assert (found.episodes, found.decisions, found.has_laws) == (2, sum(LENGTHS), laws)
    assert found.starts().tolist() == [0, LENGTHS[0]]


def forge(recording: Recording, path, about=None, arrays=None, drop=()):
    """A file whose checksums are right, as an attacker would write it."""
    told = {"recording": VERSION, **dataclasses.asdict(recording.about)} | (about or {})
    told = {name: value for name, value in told.items() if name not in drop}
    content = {name: array for name, array in (dict(recording.arrays) | (arrays or {})).items() if name not in drop}
    return save_archive(path, content, told)


def changed(recording, name, index, value):
    array = np.array(recording.arrays[name])
    array[index] = value
    return {name: array}


ROAD = made()
FRAMES = made("frames")
QUANTILES = made(own_atoms=True)
ABOUT = {
    "gamma is text": {"gamma": "1"},
    "gamma above 1": {"gamma": 1.5},
    "gamma is NaN": {"gamma": float("nan")},
    "seed is true": {"seed": True},
    "seed is negative": {"seed": -1},
    "a huge seed": {"seed": 2**70},
    "an unknown view": {"view": "script"},
    "a view of another kind": {"view": "frames"},
    "lanes beyond": {"lanes": 10**9},
    "no lanes": {"lanes": None},
    "more substeps than frames": {"substeps": 4},
    "an action that is a number": {"actions": [1, 2, 3, 4, 5]},
    "actions in one text": {"actions": "ABCDE"},
    "one action less": {"actions": ["A", "B", "C", "D"]},
    "a name of 1000 letters": {"actions": ["x" * 1000, "B", "C", "D", "E"]},
    "a control character": {"env": "a\x00b"},
    "half a letter": {"env": "a\ud800"},
    "a measure that is a list": {"aleatory": ["cvar"]},
    "a measure without its other half": {"aleatory": None},
    "an entry too many": {"monitor_dir": "/tmp"},
    "frames for ever": {"per_second": 0.0},
}
ARRAYS = {
    "probabilities that are negative": changed(ROAD, "probs", (0, 0, 0, 0), -0.5),
    "probabilities that sum to 2": {"probs": ROAD.arrays["probs"] * 2},
    "a probability that is NaN": changed(ROAD, "probs", (0, 0, 0, 0), np.nan),
    "weights that sum to 0": {"weights": ROAD.arrays["weights"] * 0},
    "atoms that descend": {"atoms": ROAD.arrays["atoms"][::-1].copy()},
    "atoms fewer than probabilities": {"atoms": ROAD.arrays["atoms"][:-1]},
    "an action that does not exist": changed(ROAD, "action", 0, 5),
    "an action below 0": changed(ROAD, "action", 0, -1),
    "lengths that add up to more": {"lengths": np.array([6, 5], np.int32)},
    "lengths that overflow": {"lengths": np.array([2**31 - 1, 2**31 - 1], np.int32)},
    "an empty episode": {"lengths": np.array([10, 0], np.int32)},
    "an end in the middle": changed(ROAD, "terminated", 2, True),
    "a place that is infinite": changed(ROAD, "cars", (0, 0, 0), np.inf),
    "a vehicle that is not there": changed(ROAD, "seen", (0, 1), 99),
    "cars of fewer frames": {"cars": ROAD.arrays["cars"][:-1], "crashed": ROAD.arrays["crashed"][:-1]},
    "doubles for floats": {"reward": ROAD.arrays["reward"].astype(np.float64)},
    "an array too many": {"more": np.zeros(3, np.float32)},
    "no axis of actions": {"value": ROAD.arrays["value"][:, 0]},
    "a realised return that is infinite": changed(ROAD, "realised", 0, np.inf),
}
IMAGES = {
    "an image that is markup": changed(FRAMES, "images", slice(0, 4), np.frombuffer(b"<svg", np.uint8)),
    "images that end beyond": changed(FRAMES, "image_ends", -1, 10**8),
    "images out of order": changed(FRAMES, "image_ends", 0, 10**6),
    "an image of no moment": changed(FRAMES, "image_at", -1, 10**6),
}


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize("about", ABOUT.values(), ids=ABOUT)
def test_forged_words_are_refused(about, tmp_path, untyped):
    with pytest.raises(CorruptError):
        load_recording(_forged_text(ROAD, tmp_path / "forged.zip", about))


def _forged_text(recording, path, about):
    """Write the manifest by hand: `save_archive` would refuse some of what is forged here."""
    save_recording(recording, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members["manifest.json"])
    content.pop("checksum")
    content["about"] |= about
    content["checksum"] = manifest._checksum(content)
    members["manifest.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize("arrays", ARRAYS.values(), ids=ARRAYS)
def test_forged_arrays_are_refused(arrays, tmp_path):
    with pytest.raises(CorruptError):
        load_recording(forge(ROAD, tmp_path / "forged.zip", arrays=arrays))


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize("arrays", IMAGES.values(), ids=IMAGES)
def test_forged_images_are_refused(arrays, tmp_path):
    with pytest.raises(CorruptError):
        load_recording(forge(FRAMES, tmp_path / "forged.zip", arrays=arrays))


@pytest.mark.parametrize("atoms", [QUANTILES.arrays["atoms"][..., ::-1], QUANTILES.arrays["atoms"][:, :, :1]])
def test_forged_atoms_of_every_law_are_refused(atoms, tmp_path):
    with pytest.raises(CorruptError, match="atoms"):
        load_recording(forge(QUANTILES, tmp_path / "forged.zip", arrays={"atoms": np.ascontiguousarray(atoms)}))


@pytest.mark.parametrize("name", ["probs", "obs", "gamma", "recording"])
def test_what_is_missing_is_noticed(name, tmp_path):
    with pytest.raises(CorruptError):
        load_recording(forge(ROAD, tmp_path / "forged.zip", drop=(name,)))


def test_another_version_is_told(tmp_path):
    with pytest.raises(IncompatibleError, match="version 99"):
        load_recording(forge(ROAD, tmp_path / "newer.zip", about={"recording": 99}))


def test_a_policy_is_no_recording(tmp_path):
    with pytest.raises(CorruptError, match="no recording"):
        load_recording(save_archive(tmp_path / "policy.zip", {"w": np.zeros(3, np.float32)}, {"spec": {}}))


@pytest.mark.attack("zip-bomb")
def test_members_are_measured_before_they_are_read(saved, tmp_path, monkeypatch):
    """Neither a compressed gigabyte nor a long manifest is unpacked to be looked at."""
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", " " * 50_000_000)
    with pytest.raises(CorruptError, match="compressed"):
        load_recording(bomb)
    monkeypatch.setattr(module, "LARGEST_MANIFEST", 1000)
    with pytest.raises(CorruptError, match="at most 1000 are read"):
        load_recording(saved)


def test_a_description_of_more_than_fits_is_refused(tmp_path, monkeypatch):
    path = save_recording(ROAD, tmp_path / "large.zip")
    monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    with pytest.raises(CorruptError, match="more than 1000 bytes"):
        load_recording(path)


@pytest.mark.parametrize("content", [b"\x80\x04pickle", b"", b"PK\x03\x04 cut", b"<html>"])
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign.zip"
    path.write_bytes(content)
    with pytest.raises(CorruptError):
        load_recording(path)
    with pytest.raises(UsageError, match="there is no file"):
        load_recording(tmp_path / "nowhere.zip")


def test_every_flipped_bit_is_seen_or_harmless(saved, tmp_path):
    """As for policies: a damaged file is refused, or what is read is what was written."""
    content, wanted = saved.read_bytes(), load_recording(saved)
    rng = np.random.default_rng(0)
    path = tmp_path / "flipped.zip"
    refused = 0
    for place in rng.integers(0, len(content), 150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = load_recording(path)
        except (CorruptError, IncompatibleError):
            refused += 1
            continue
        assert found.about == wanted.about
        for name, array in wanted.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array)
    assert refused > 100


def test_a_recording_that_does_not_fit_itself_cannot_be_made():
    with pytest.raises(ValueError, match="action must be from 0 to 4"):
        Recording(ROAD.about, dict(ROAD.arrays) | changed(ROAD, "action", 0, 9))
