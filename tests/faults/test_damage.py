"""Damaged and foreign files: refused by name or passed over, never believed and never a stack of other errors."""

import pickle
import shutil
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_rl.errors import CorruptError, IncompatibleError, SentinelWarning
from sentinel_rl.storage import manifest
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.checkpoint import MANIFEST, STATE, latest, load, save
from tests.storage.trees import assert_same

FILES = (STATE, MANIFEST)
ABOUT = {"configuration": {"k": 4}, "seeds": [0, 1]}


@pytest.fixture(scope="module")
def tree():
    return {"w": jnp.arange(6.0).reshape(2, 3), "n": np.int64(2**40), "key": jax.random.key(1), "none": np.zeros(0)}


@pytest.fixture(scope="module")
def good(tmp_path_factory, tree):
    """A checkpoint to be copied, and the same tree as an archive."""
    folder = save(tmp_path_factory.mktemp("good"), 5, tree, ABOUT)
    save_archive(folder.parent / "policy.zip", tree, ABOUT)
    return folder


@pytest.fixture(scope="module")
def victim(tmp_path_factory, good):
    """A copy whose files each example overwrites; the undamaged ones are put back."""
    folder = tmp_path_factory.mktemp("victim") / good.name
    shutil.copytree(good, folder)
    return folder


def assert_refused_or_whole(read, tree):
    """Nothing but a refusal with exit code 3, or exactly what was saved: some bytes (a date, a blank) mean nothing."""
    try:
        loaded, manifest = read()
    except IncompatibleError:
        return
    assert_same(loaded, tree)
    assert manifest.about == ABOUT
    assert manifest.step in (5, None)


def damage_and_load(good, victim, tree, name, data):
    for file in FILES:
        shutil.copyfile(good / file, victim / file)
    (victim / name).write_bytes(data)
    assert_refused_or_whole(lambda: load(victim, tree, ABOUT), tree)


def flipped(data, place, mask):
    """The data with some bits of one byte turned over."""
    changed = bytearray(data)
    changed[place % len(data)] ^= mask
    return bytes(changed)


class TestDamage:
    @given(name=st.sampled_from(FILES), place=st.integers(0, 2**16), mask=st.integers(1, 255))
    def test_a_changed_byte(self, good, victim, tree, name, place, mask):
        damage_and_load(good, victim, tree, name, flipped((good / name).read_bytes(), place, mask))

    @given(name=st.sampled_from(FILES), share=st.floats(0, 1, exclude_max=True))
    @example(name=STATE, share=0.0)
    def test_a_missing_end(self, good, victim, tree, name, share):
        data = (good / name).read_bytes()
        damage_and_load(good, victim, tree, name, data[: int(share * len(data))])

    @given(name=st.sampled_from(FILES), data=st.binary(max_size=100), front=st.booleans())
    def test_more_than_was_there(self, good, victim, tree, name, data, front):
        whole = (good / name).read_bytes()
        damage_and_load(good, victim, tree, name, data + whole if front else whole + data)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", FILES)
    def test_every_byte_and_every_length(self, good, victim, tree, name):
        data = (good / name).read_bytes()
        for place in range(len(data)):
            damage_and_load(good, victim, tree, name, data[:place])
            for mask in (1, 2, 0x20, 0x80, 0xFF):
                damage_and_load(good, victim, tree, name, flipped(data, place, mask))

    @given(place=st.integers(0, 2**16), mask=st.integers(1, 255), cut=st.booleans())
    def test_a_damaged_archive(self, good, victim, tree, place, mask, cut):
        data = (good.parent / "policy.zip").read_bytes()
        path = victim.parent / "policy.zip"
        path.write_bytes(data[: place % len(data)] if cut else flipped(data, place, mask))
        assert_refused_or_whole(lambda: load_archive(path, tree, ABOUT), tree)

    def test_numbers_are_guarded_to_the_last_bit(self, good, victim, tree):
        """A changed number is refused for certain."""
        shutil.copyfile(good / MANIFEST, victim / MANIFEST)
        data = (good / STATE).read_bytes()
        place = data.index(np.arange(6.0, dtype=np.float32).tobytes())
        for offset in range(24):
            (victim / STATE).write_bytes(flipped(data, place + offset, 1))
            with pytest.raises(CorruptError, match=r"array \['w'\]: damaged"):
                load(victim, tree)


class TestExchange:
    """Good files in the wrong place."""

    @pytest.fixture
    def two(self, tmp_path):
        """Two checkpoints, the first of which is whole whatever happens to the second."""
        return [save(tmp_path, step, {"n": np.full(3, step)}) for step in (1, 2)]

    def falls_back(self, folder):
        with pytest.warns(SentinelWarning, match="FALLING BACK to the checkpoint of step 1"):
            tree, manifest = latest(folder, {"n": np.zeros(3, int)})
        assert (manifest.step, tree["n"].tolist()) == (1, [1, 1, 1])

    @pytest.mark.parametrize("name", FILES)
    def test_a_missing_file(self, two, name):
        (two[1] / name).unlink()
        self.falls_back(two[1].parent)

    @pytest.mark.parametrize("name", FILES)
    def test_the_file_of_another_checkpoint(self, two, name):
        shutil.copyfile(two[0] / name, two[1] / name)
        self.falls_back(two[1].parent)

    @pytest.mark.parametrize("name", FILES)
    def test_a_folder_in_place_of_a_file(self, two, name):
        (two[1] / name).unlink()
        (two[1] / name).mkdir()
        self.falls_back(two[1].parent)

    def test_both_files_of_another_checkpoint(self, two):
        for name in FILES:
            shutil.copyfile(two[0] / name, two[1] / name)
        self.falls_back(two[1].parent)

    def test_an_empty_folder(self, two):
        shutil.rmtree(two[1])
        two[1].mkdir()
        self.falls_back(two[1].parent)


class Bomb:
    """A pickle of it raises when it is loaded."""

    def __reduce__(self):
        return exec, ("raise SystemExit('the pickle was loaded')",)


class TestForeign:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("name", ["policy.zip", "policy.pkl"])
    def test_pickles_are_never_loaded(self, tmp_path, good, tree, protocol, name):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(Bomb(), protocol))
        named = "is a pickle" if protocol >= 2 or name.endswith("pkl") else "no zip file of sentinel-rl"
        for read in (lambda: load_archive(path, tree), lambda: read_archive_manifest(path)):
            with pytest.raises(IncompatibleError, match=named):
                read()

    def test_a_pickle_in_place_of_the_arrays(self, tmp_path, tree):
        folder = save(tmp_path, 1, tree)
        (folder / STATE).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(IncompatibleError, match=r"state\.npz is a pickle"):
            load(folder, tree)

    def test_a_pickled_array_is_never_loaded(self, tmp_path):
        """Everything about it is right: the checksums too."""
        tree = {"n": np.zeros(2)}
        folder = save(tmp_path, 1, tree)
        found = load(folder, tree)[1]
        np.savez(folder / STATE, **{"00000": np.array([Bomb()], dtype=object)}, allow_pickle=True)
        with zipfile.ZipFile(folder / STATE) as archive:
            crc = archive.getinfo("00000.npy").CRC
        leaf = manifest.Leaf("['n']", (2,), "float64", crc32=crc)
        forged = manifest.Manifest(**vars(found) | {"leaves": (leaf,)})
        (folder / MANIFEST).write_text(manifest.to_text(forged))
        with pytest.raises(CorruptError, match="expected float64"):
            load(folder, tree)

    def test_the_zip_of_another_program(self, tmp_path, tree):
        path = tmp_path / "sb3.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name in (
                "data",
                "policy.pth",
                "pytorch_variables.pth",
                "_stable_baselines3_version",
                "system_info.txt",
            ):
                archive.writestr(name, b"\x80\x04.")
        with pytest.raises(IncompatibleError, match=r"of another program \(it holds data, policy.pth, .*, \.\.\.\)"):
            load_archive(path, tree)

    @pytest.mark.parametrize(
        "text", ["{}", "[]", "null", "", "not json", '{"format": "other", "checksum": "0"}', "[" * 9999]
    )
    def test_the_manifest_of_another_program(self, tmp_path, tree, text):
        folder = save(tmp_path, 1, tree)
        (folder / MANIFEST).write_text(text)
        with pytest.raises(CorruptError, match=r"manifest\.json is"):
            load(folder, tree)
        path = tmp_path / "policy.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(MANIFEST, text)
        with pytest.raises(CorruptError, match=r"manifest\.json is"):
            load_archive(path, tree)

    def test_other_kinds_of_file(self, tmp_path, tree):
        path = tmp_path / "file"
        for data, named in ((b"", "is empty"), (b"hello", "no zip file"), (b"PK\x03\x04", "truncated or damaged zip")):
            path.write_bytes(data)
            with pytest.raises(CorruptError, match=named):
                load_archive(path, tree)
        with pytest.raises(CorruptError, match="Is a directory"):
            load_archive(tmp_path, tree)
