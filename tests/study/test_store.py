import dataclasses
import json
import os
import zipfile

import numpy as np
import pytest

from sentinel_rl.agents.options import PRESETS
from sentinel_rl.errors import SentinelWarning, StorageError
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.study import Cell, Record, Store
from tests.study.grids import same_arrays

RECORD = Record(
    Cell("random", "CartPole-v0", 10, (0, 1), label="random"),
    {"steps": np.arange(3), "terminations": np.array([1.0, np.nan]), "metric/loss": np.ones((2, 3), np.float32)},
    {"seconds": {"training": 1.5}, "failures": {"1": "reward nan"}},
)


@pytest.fixture
def store(tmp_path):
    filled = Store(tmp_path / "cells")
    filled.put(RECORD)
    return filled


def test_what_is_put_is_what_is_got(store):
    found = store.get(RECORD.cell)
    assert found.cell == RECORD.cell
    assert found.about == RECORD.about
    assert found.failures == {1: "reward nan"}
    assert same_arrays(found, RECORD)
    assert [record.cell for record in store.records()] == [RECORD.cell]


def test_the_label_is_that_of_who_asks(store):
    assert store.get(dataclasses.replace(RECORD.cell, label="other")).cell.label == "other"


def test_a_file_is_a_zip_of_arrays_and_json(store):
    with zipfile.ZipFile(store.path(RECORD.cell)) as archive:
        assert archive.namelist() == ["00000.npy", "00001.npy", "00002.npy", "manifest.json"]
        about = json.loads(archive.read("manifest.json"))["about"]
    assert Cell.from_json(about["cell"]) == RECORD.cell


def test_nothing_is_there_before(tmp_path):
    store = Store(tmp_path / "none")
    assert store.get(RECORD.cell) is None
    assert store.records() == []
    assert not (tmp_path / "none").exists()


def damage_middle(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-40], damage_middle, lambda data: b"", lambda data: b"\x80\x04K"]
)
def test_a_damaged_file_is_quarantined_and_missing(store, damage):
    path = store.path(RECORD.cell)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(SentinelWarning, match="counts as missing"):
        assert store.get(RECORD.cell) is None
    status = store.status([RECORD.cell])
    assert status.missing == [RECORD.cell]
    assert len(status.quarantined) == 1
    store.put(RECORD)
    assert same_arrays(store.get(RECORD.cell), RECORD)


def test_every_flipped_bit_is_seen(store):
    path = store.path(RECORD.cell)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            found = store.get(RECORD.cell)
        except SentinelWarning:  # warnings are errors here
            continue
        assert same_arrays(found, RECORD), f"byte {place}"  # the zip's own dates are not ours
        assert found.about == RECORD.about


def test_a_renamed_file_is_not_taken_for_another_cell(store):
    other = dataclasses.replace(RECORD.cell, steps=11)
    store.path(RECORD.cell).rename(store.path(other))
    with pytest.warns(SentinelWarning, match="swapped or renamed"):
        assert store.get(other) is None


def test_a_record_of_another_default_is_neither_returned_nor_damaged(tmp_path, monkeypatch):
    store, record = Store(tmp_path), dataclasses.replace(RECORD, cell=Cell("sentinel", "CartPole-v0", 10, (0, 1)))
    path = store.put(record)
    monkeypatch.setitem(PRESETS, "learner", {**PRESETS["learner"], "lam": 2.0})
    today = dataclasses.replace(record.cell)
    assert store.get(today) is None
    assert today not in store
    assert store.status([today]) == ([], [today], {}, [])
    (old,) = store.records()
    assert (old.cell, old.about, path.exists()) == (record.cell, record.about, True)
    assert same_arrays(old, record)
    monkeypatch.undo()
    assert same_arrays(store.get(dataclasses.replace(today)), record), "the default it was computed with"


def test_failures_are_noted_until_there_is_a_result(tmp_path):
    store = Store(tmp_path)
    store.note_failure(RECORD.cell, ValueError("no such lane"))
    assert store.status([RECORD.cell]).failed == {RECORD.cell.id: "ValueError: no such lane"}
    store.put(RECORD)
    assert store.status([RECORD.cell]) == ([RECORD.cell], [], {}, [])
    assert store.status().finished == [RECORD.cell]


def test_a_full_disk_leaves_what_was_there(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        store.put(Record(RECORD.cell, {"steps": np.arange(9)}, {}))
    assert same_arrays(store.get(RECORD.cell), RECORD)
    assert len(list(store.folder.iterdir())) == 1


def test_only_old_remains_are_swept(store):
    old, young = (store.folder / f".{name}{ENDING}" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.sweep()
    assert young.exists()
    assert not old.exists()
