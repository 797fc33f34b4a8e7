"""A policy in one file: the same promises as a checkpoint."""

import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from tests.storage.trees import assert_same, shapes_of, trees

TREE = {"w": jnp.arange(6.0), "key": jax.random.key(0), "n": np.int64(2**40 + 1)}


@given(tree=trees())
def test_what_is_loaded_is_what_was_saved(tmp_path_factory, tree):
    path = save_archive(tmp_path_factory.mktemp("policy") / "pole.zip", tree, {"k": 4})
    assert_same(load_archive(path, tree, {"k": 4})[0], tree)
    assert_same(load_archive(path, shapes_of(tree))[0], tree)


def test_what_it_says_about_itself_can_be_read_first(tmp_path):
    path = save_archive(tmp_path / "new" / "pole.zip", TREE, {"configuration": {"k": 4}, "lam": np.inf})
    found = read_archive_manifest(str(path))
    assert found.about == {"configuration": {"k": 4}, "lam": "inf"}
    assert found.step is None
    assert [leaf.kind for leaf in found.leaves] == ["threefry2x32 key uint32[2]", "int64[]", "float32[6]"]


def test_it_is_replaced_at_once(tmp_path):
    for n in range(2):
        save_archive(tmp_path / "pole.zip", {"n": np.int64(n)})
    assert int(load_archive(tmp_path / "pole.zip", {"n": np.int64(0)})[0]["n"]) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["pole.zip"]


def test_the_same_tree_makes_the_same_file(tmp_path):
    one, other = (save_archive(tmp_path / name, TREE, {"k": 4}) for name in ("a.zip", "b.zip"))
    assert one.read_bytes() == other.read_bytes()


def test_numpy_and_unzip_read_it(tmp_path):
    path = save_archive(tmp_path / "pole.zip", {"w": np.arange(3)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["00000.npy", "manifest.json"]
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["00000"].tolist() == [0, 1, 2]


def test_another_network_is_refused_with_a_table(tmp_path):
    path = save_archive(tmp_path / "pole.zip", TREE, {"observation": [4]})
    with pytest.raises(
        IncompatibleError, match=r"observation\s+\[4\]\s+\[6\]\n\s+\['w'\]\s+float32\[6\]\s+float32\[8\]"
    ):
        load_archive(path, TREE | {"w": jnp.zeros(8)}, {"observation": (6,)})


def test_a_missing_file_is_named(tmp_path):
    for read in (lambda path: load_archive(path, TREE), read_archive_manifest):
        with pytest.raises(UsageError, match=r"there is no file .*pole\.zip"):
            read(tmp_path / "pole.zip")
