"""Files are complete or not there."""

import os

import pytest

from sentinel_rl.errors import StorageError
from sentinel_rl.storage.atomic import writable_folder, write_file


def test_text_and_bytes_replace_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    assert write_file(path, "α\n") == path
    assert path.read_bytes() == "α\n".encode()
    write_file(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_keeps_the_old_file_and_leaves_no_litter(tmp_path, monkeypatch):
    path = write_file(tmp_path / "a.txt", "old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "plain").write_text("")
    written = write_file(tmp_path / "written", "")
    assert written.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_is_made_and_tried(tmp_path):
    folder = writable_folder(tmp_path / "a" / "b")
    assert list(folder.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write into the folder .*: give another one with --out"):
        writable_folder(tmp_path / "file" / "b")
