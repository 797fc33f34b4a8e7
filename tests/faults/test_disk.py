"""A disk that is full or may not be written to: nothing half-written is left, and what was saved before stays."""

import errno
import os
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from sentinel_rl.errors import StorageError
from sentinel_rl.storage import atomic
from sentinel_rl.storage.archive import save_archive
from sentinel_rl.storage.atomic import make_folder, replacing, write_file
from sentinel_rl.storage.checkpoint import latest, save
from sentinel_rl.storage.run_folder import open_run
from tests.faults.children import run, save_as_nobody, save_with_limit, tree_of

TREE = {"n": np.arange(1000)}


def fails(number):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def parent(tmp_path):
    """Checkpoints of a run, one of them good."""
    save(tmp_path / "checkpoints", 1, TREE)
    return tmp_path / "checkpoints"


def assert_only_first(parent):
    assert [entry.name for entry in parent.iterdir()] == ["step_000000001"]
    assert latest(parent, TREE)[1].step == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "mkdir", "rename"])
def test_a_failing_system_call(parent, monkeypatch, number, call):
    with monkeypatch.context() as broken:
        broken.setattr(os, call, fails(number))
        with pytest.raises(StorageError, match=os.strerror(number)) as refusal:
            save(parent, 2, TREE)
    assert refusal.value.exit_code == 74
    assert "is kept" in str(refusal.value)
    assert_only_first(parent)
    save(parent, 3, TREE)


@pytest.mark.parametrize("room", [0, 1, 100, 5000, 8000])
def test_a_write_that_does_not_fit(parent, monkeypatch, room):
    """The disk is full after some bytes, in the arrays, in the zip file's directory or in the manifest."""

    class FullFile:
        left = room

        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.file.close()

        def write(self, data):
            FullFile.left -= len(data)
            if FullFile.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data)

    with monkeypatch.context() as full:
        for module in ("sentinel_rl.storage.checkpoint", "sentinel_rl.storage.atomic"):
            full.setattr(f"{module}.open", lambda *args: FullFile(open(*args)), raising=False)  # noqa: SIM115 (it is one)
        with pytest.raises(StorageError, match="No space left"):
            save(parent, 2, TREE)
        FullFile.left = room
        with pytest.raises(StorageError, match="No space left"):
            save_archive(parent / "policy.zip", TREE)
    assert_only_first(parent)


def test_too_little_room_is_seen_before_anything_is_written(parent, monkeypatch):
    usage = namedtuple("usage", "total used free")
    need = 8000
    for free, fits in ((1.05 * need, False), (1.2 * need, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda folder, free=free: usage(0, 0, free))
        if fits:
            save(parent, 2, TREE)
        else:
            with pytest.raises(StorageError, match=r"0\.0 MB are needed, 0\.0 MB are free"):
                save(parent, 2, TREE)
            assert_only_first(parent)


@pytest.mark.parametrize("limit", [1, 10_000, 799_000])
def test_a_real_limit(tmp_path, limit):
    save(tmp_path, 1, tree_of(1))
    assert run(save_with_limit, tmp_path, 2, limit) == 74
    assert [entry.name for entry in tmp_path.iterdir()] == ["step_000000001"]
    assert latest(tmp_path, tree_of(0))[1].step == 1


def test_a_real_read_only_folder(tmp_path):
    save(tmp_path, 1, tree_of(1))
    tmp_path.chmod(0o555)
    try:
        assert run(save_as_nobody, tmp_path, 2) == 74
    finally:
        tmp_path.chmod(0o755)
    assert [entry.name for entry in tmp_path.iterdir()] == ["step_000000001"]


def test_a_file_that_is_replaced_stays_when_that_fails(tmp_path, monkeypatch):
    path = write_file(tmp_path / "config.json", "old")
    monkeypatch.setattr(atomic.os, "fsync", fails(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"cannot write .*config\.json: No space left"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def write_half():
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert not list(tmp_path.iterdir())


def test_a_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(StorageError, match="Not a directory"):
        make_folder(tmp_path / "file" / "folder")


def test_a_run_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", fails(errno.EROFS))
    with pytest.raises(StorageError, match="Read-only file system"), open_run(tmp_path / "run", {}):
        pass
