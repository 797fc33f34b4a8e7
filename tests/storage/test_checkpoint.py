"""Saving and loading: the same bits, compared before they are read, and the newest good one found."""

import json
import os
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.errors import CorruptError, IncompatibleError, SentinelWarning, StorageError, UsageError
from sentinel_rl.storage import checkpoint, manifest
from sentinel_rl.storage.checkpoint import MANIFEST, STATE, Saver, latest, load, read_manifest, save, saved
from tests.storage.trees import assert_same, shapes_of, trees

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


ABOUT = {"configuration": {"k": 4, "env": {"id": "Toy"}}, "seeds": [0, 1, 2]}


class Run(eqx.Module):
    weights: jax.Array
    key: jax.Array
    name: str = eqx.field(static=True, default="run")


def a_run(seeds=3):
    return Run(jnp.arange(4.0 * seeds).reshape(seeds, 4), jax.random.split(jax.random.key(0), seeds))


@pytest.fixture(scope="module", autouse=True)
def nobody_pulls_the_plug():
    """Here: the tests of tests/faults wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def parent(tmp_path):
    return tmp_path / "checkpoints"


class TestRoundTrip:
    @given(tree=trees(), about=st.dictionaries(st.text(max_size=5), JSON, max_size=3), step=st.integers(0, 10**12))
    def test_what_is_loaded_is_what_was_saved(self, tmp_path_factory, tree, about, step):
        folder = save(tmp_path_factory.mktemp("run"), step, tree, about)
        loaded, found = load(folder, tree, expect=about)
        assert_same(loaded, tree)
        assert (found.about, found.step) == (about, step)
        for leaf, wanted in zip(jax.tree.leaves(loaded), jax.tree.leaves(tree), strict=True):
            assert isinstance(leaf, jax.Array) == isinstance(wanted, jax.Array)

    @given(tree=trees())
    def test_shapes_are_enough_to_load(self, tmp_path_factory, tree):
        folder = save(tmp_path_factory.mktemp("run"), 0, tree)
        loaded, _ = load(folder, shapes_of(tree))
        assert_same(loaded, tree)
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(loaded))

    def test_wide_integers_stay_wide(self, parent):
        tree = {"count": np.int64(2**40 + 1), "mask": np.array([2**64 - 1], np.uint64)}
        loaded, _ = load(save(parent, 1, tree), tree)
        assert int(loaded["count"]) == 2**40 + 1
        assert int(loaded["mask"][0]) == 2**64 - 1

    def test_a_loaded_run_goes_on_as_the_saved_one(self, parent):
        run = a_run()
        advance = jax.jit(jax.vmap(lambda run: run.weights + jax.random.normal(run.key, (4,))))
        loaded, _ = load(save(parent, 1, run), jax.eval_shape(a_run))
        assert loaded.name == "run"
        assert_same(advance(loaded), advance(run))

    def test_what_was_loaded_may_be_donated_and_written_to(self, parent):
        tree = {"jax": jnp.arange(1000.0), "numpy": np.arange(5)}
        loaded, _ = load(save(parent, 1, tree), tree)
        loaded["numpy"] += 1
        jax.jit(lambda x: x + 1, donate_argnums=0)(loaded["jax"])
        assert loaded["jax"].is_deleted()

    def test_arrays_go_back_to_their_devices(self, parent):
        mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("runs",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("runs"))
        run = jax.device_put(a_run(len(jax.devices())), sharding)
        loaded, _ = load(save(parent, 1, run), run)
        assert all(leaf.sharding == sharding for leaf in jax.tree.leaves(loaded))

    def test_the_arrays_are_a_plain_npz(self, parent):
        folder = save(parent, 1, {"a": np.arange(3), "b": np.float32(2)})
        with np.load(folder / STATE, allow_pickle=False) as arrays:
            assert [arrays[name].tolist() for name in arrays.files] == [[0, 1, 2], 2.0]
        assert [leaf["path"] for leaf in json.loads((folder / MANIFEST).read_text())["leaves"]] == ["['a']", "['b']"]

    def test_the_same_tree_makes_the_same_files(self, parent):
        one, other = (save(parent / name, 1, a_run(), {"seeds": [0]}) for name in "ab")
        assert (one / STATE).read_bytes() == (other / STATE).read_bytes()
        assert (one / MANIFEST).read_bytes() == (other / MANIFEST).read_bytes()

    @pytest.mark.parametrize("leaf", [3, "text", np.array([None]), np.array(["a"]), jnp.zeros(2, jnp.bfloat16)])
    def test_what_is_no_plain_array_is_refused(self, parent, leaf):
        with pytest.raises(UsageError, match=r"\['here'\] is of type"):
            save(parent, 1, {"here": leaf})
        assert not parent.exists()

    def test_what_cannot_be_told_is_refused(self, parent):
        with pytest.raises(UsageError, match=r"about\.f is of type function"):
            save(parent, 1, a_run(), {"f": a_run})
        assert not list(parent.iterdir())

    def test_only_the_filled_part_need_be_saved(self, parent):
        def filled(run, manifest):
            return {"rows": run["rows"][: manifest.step], "key": run["key"]}

        run = {"rows": jnp.arange(10).reshape(5, 2), "key": jax.random.key(3)}
        part = {"rows": run["rows"][:3], "key": run["key"]}
        folder = save(parent, 3, part)
        loaded, _ = latest(parent, run, fit=filled)
        assert_same(loaded, part)
        with pytest.raises(IncompatibleError, match=r"rows.*int32\[3,2\] +int32\[5,2\]"):
            load(folder, run)


class TestComparison:
    def refusal(self, folder, like, expect=None):
        with pytest.raises(IncompatibleError) as refusal:
            load(folder, like, expect)
        assert refusal.value.exit_code == 3
        assert not isinstance(refusal.value, CorruptError)
        return str(refusal.value)

    def test_other_configuration(self, parent):
        folder = save(parent, 1, a_run(), ABOUT)
        message = self.refusal(folder, a_run(), {"configuration": {"k": 8, "env": {"id": "Toy"}}})
        assert "saved  asked" in message
        assert "configuration.k  4      8" in message
        assert "env" not in message

    def test_other_seed_list(self, parent):
        folder = save(parent, 1, a_run(), ABOUT)
        assert "seeds  [0,1,2]  [0,1]" in self.refusal(folder, a_run(), {"seeds": range(2)})
        load(folder, a_run(), {"seeds": range(3)})

    def test_what_was_never_told(self, parent):
        assert "gamma  absent  0.9" in self.refusal(save(parent, 1, a_run()), a_run(), {"gamma": 0.9})

    @pytest.mark.parametrize(
        ("like", "row"),
        [
            (lambda: a_run(4), ".weights  float32[3,4]                  float32[4,4]"),
            (lambda: {"weights": a_run().weights, "key": a_run().key}, ".weights     float32[3,4]"),
            (lambda: Run(a_run().weights.astype(jnp.int32), a_run().key), ".weights  float32[3,4]  int32[3,4]"),
            (
                lambda: Run(a_run().weights, jax.random.key_data(a_run().key)),
                ".key  threefry2x32 key uint32[3,2]  uint32",
            ),
            (lambda: Run(a_run().weights, jax.random.split(jax.random.key(0, impl="rbg"), 3)), "rbg key uint32[3,4]"),
        ],
    )
    def test_other_arrays(self, parent, like, row):
        folder = save(parent, 1, a_run())
        assert row in self.refusal(folder, like())
        assert row in self.refusal(folder, shapes_of(like()))

    def test_nothing_is_read_before_it_fits(self, parent, monkeypatch):
        folder = save(parent, 1, a_run())
        (folder / STATE).unlink()
        assert "does not fit" in self.refusal(folder, a_run(4))

    def test_long_tables_are_cut(self, parent):
        folder = save(parent, 1, [np.zeros(1)] * 100)
        message = self.refusal(folder, [np.zeros(2)] * 100)
        assert "and 88 more" in message
        assert len(message.splitlines()) < 20

    def test_a_newer_schema_is_refused_by_name_and_not_passed_over(self, parent, monkeypatch):
        save(parent, 1, a_run())
        with monkeypatch.context() as newer:
            newer.setattr(manifest, "SCHEMA", 2)
            newer.setattr(
                checkpoint, "make_manifest", lambda *args: manifest.Manifest(**vars(made(*args)) | {"schema": 2})
            )
            save(parent, 2, a_run())
        with pytest.raises(IncompatibleError, match=r"has schema 2, and sentinel-rl .* reads schema 1"):
            latest(parent, a_run())

    def test_other_makers_are_warned_about(self, parent, monkeypatch):
        folder = save(parent, 1, a_run())
        monkeypatch.setattr(manifest, "current_device", lambda: "quantum")
        with pytest.warns(SentinelWarning, match='device  "cpu"  "quantum"'):
            load(folder, a_run())


made = manifest.make_manifest


class TestLatest:
    def test_nothing_saved_is_nothing_found(self, parent):
        assert latest(parent, a_run()) is None
        parent.mkdir()
        (parent / "notes.txt").write_text("not a checkpoint")
        (parent / "step_000000001").write_text("not a folder")
        assert latest(parent, a_run()) is None

    def test_two_are_kept(self, parent):
        for step in (5, 10, 100):
            save(parent, step, {"step": np.int64(step)})
        assert [place.step for place in saved(parent)] == [10, 100]
        tree, found = latest(parent, {"step": np.int64(0)})
        assert (int(tree["step"]), found.step) == (100, 100)

    def test_more_or_fewer_can_be_kept(self, parent):
        for step in range(5):
            save(parent, step, {}, keep=3)
        assert [place.step for place in saved(parent)] == [2, 3, 4]
        save(parent, 5, {}, keep=1)
        assert [place.step for place in saved(parent)] == [5]
        with pytest.raises(UsageError, match="at least 1"):
            save(parent, 6, {}, keep=0)

    def test_what_a_killed_process_did_not_remove_goes_when_its_run_is_resumed(self, parent):
        for step in (10, 20, 30):
            save(parent, step, a_run(), keep=5)
        saver = Saver(parent)
        saver.tidy(20)
        assert [place.step for place in saved(parent)] == [10, 20, 30], "the newest was not good enough: all are kept"
        saver.tidy(30)
        assert [place.step for place in saved(parent)] == [20, 30]

    def test_the_same_step_again_is_a_new_folder(self, parent):
        folders = [save(parent, 7, {"n": np.int64(n)}) for n in range(3)]
        assert [folder.name for folder in folders] == ["step_000000007", "step_000000007_1", "step_000000007_2"]
        assert int(latest(parent, {"n": np.int64(0)})[0]["n"]) == 2
        assert len(saved(parent)) == 1

    def test_a_damaged_one_is_passed_over_aloud_and_later_replaced(self, parent):
        for step in (1, 2):
            save(parent, step, a_run())
        (parent / "step_000000002" / STATE).unlink()
        with pytest.warns(SentinelWarning, match="FALLING BACK to the checkpoint of step 1"):
            assert latest(parent, a_run())[1].step == 1
        save(parent, 2, a_run())
        assert latest(parent, a_run())[1].step == 2
        assert [place.folder.name for place in saved(parent)] == ["step_000000001", "step_000000002_1"]

    def test_what_lies_beyond_a_fallback_goes(self, parent):
        for step in (10, 20):
            save(parent, step, {})
        save(parent, 15, {})
        assert [place.step for place in saved(parent)] == [10, 15]

    def test_none_readable(self, parent):
        for step in (1, 2):
            (save(parent, step, a_run()) / MANIFEST).write_text("{}")
        with pytest.raises(CorruptError, match=r"none of the 2 checkpoints .* is readable") as refusal:
            latest(parent, a_run())
        assert refusal.value.exit_code == 3

    def test_a_run_that_goes_on_meanwhile(self, parent, monkeypatch):
        """A reader whose checkpoints are pruned under its hands looks again."""
        for step in (1, 2):
            save(parent, step, a_run())
        read, calls = checkpoint.read_manifest, []

        def slow(folder):
            calls.append(folder)
            if len(calls) == 1:
                for step in (3, 4):
                    save(parent, step, a_run())
            return read(folder)

        monkeypatch.setattr(checkpoint, "read_manifest", slow)
        with pytest.warns(SentinelWarning, match="step 4"):
            assert latest(parent, a_run())[1].step == 4

    def test_a_renamed_checkpoint_is_not_believed(self, parent):
        save(parent, 1, a_run()).rename(parent / "step_000000009")
        with pytest.raises(CorruptError, match="holds the checkpoint of step 1"):
            read_manifest(parent / "step_000000009")


class TestSaver:
    def test_it_bears_two_failures_in_a_row_but_not_three(self, parent, monkeypatch):
        saver, full = Saver(parent), [False]
        usage = checkpoint.require_space

        def space(folder, size):
            if full[0]:
                raise StorageError("no room")
            usage(folder, size)

        monkeypatch.setattr(checkpoint, "require_space", space)
        for broken in (True, True, False, True, True):
            full[0] = broken
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert (saver.save(1, a_run()) is None) == broken
            assert len(caught) == broken
        with pytest.raises(StorageError, match="no room") as refusal:
            saver.save(1, a_run())
        assert refusal.value.exit_code == 74
        assert latest(parent, a_run())[1].step == 1

    def test_a_negative_step_is_refused(self, parent):
        with pytest.raises(UsageError, match="at least 0, got -1"):
            save(parent, -1, a_run())
