"""Run folders: what may be begun, resumed or overwritten where, and that nothing else is ever touched."""

import contextlib
import json

import numpy as np
import pytest

from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.storage import run_folder
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.storage.checkpoint import latest, save
from sentinel_rl.storage.run_folder import CONFIG, FINISHED, LOCK, open_run, status

CONFIGURATION = {"env": "CartPole-v1", "agent": {"k": 4, "lam": float("inf")}, "seeds": (0, 1, 2)}
TREE = {"n": np.zeros(2)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "pole"


def begin(path, steps=(), finish=False, **options):
    """Work for a while, and save."""
    with open_run(path, CONFIGURATION, **options) as folder:
        for step in steps:
            save(folder.checkpoints, step, TREE)
        if finish:
            folder.finish({"falls": 12})
    return folder


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def refused(path, message, configuration=CONFIGURATION, **options):
    before = names(path)
    with pytest.raises(UsageError, match=message) as refusal, open_run(path, configuration, **options):
        pass
    assert refusal.value.exit_code == 2
    assert names(path) == before
    return str(refusal.value)


class TestRules:
    @pytest.mark.parametrize("there", [False, True])
    def test_a_new_or_empty_folder_starts(self, path, there):
        if there:
            path.mkdir(parents=True)
        assert status(path).state == "empty"
        folder = begin(path)
        assert not folder.resumed
        assert names(path) == [CONFIG]

    def test_an_unfinished_run_resumes(self, path):
        begin(path, steps=[10, 20])
        before = (path / CONFIG).read_bytes()
        folder = begin(path)
        assert folder.resumed
        assert latest(folder.checkpoints, TREE)[1].step == 20
        assert (path / CONFIG).read_bytes() == before

    def test_the_order_of_keys_and_the_kind_of_sequence_do_not_matter(self, path):
        begin(path)
        with open_run(
            path, {"seeds": range(3), "agent": {"lam": np.inf, "k": np.int64(4)}, "env": "CartPole-v1"}
        ) as it:
            assert it.resumed

    def test_another_configuration_is_refused_with_what_differs(self, path):
        begin(path)
        other = CONFIGURATION | {"seeds": [0, 1], "agent": {"k": 8, "lam": float("inf"), "gama": 0.9}}
        message = refused(path, "another configuration", other)
        assert "agent.gama  absent   0.9\n" in message
        assert "agent.k     4        8\n" in message
        assert "seeds       [0,1,2]  [0,1]\n" in message
        assert "CartPole" not in message
        assert "lam" not in message

    def test_a_finished_run_is_refused(self, path):
        begin(path, finish=True)
        refused(path, "holds a finished run of this configuration")

    def test_who_was_faster_is_noticed_with_the_lock_in_hand(self, path, monkeypatch):
        @contextlib.contextmanager
        def after_another(lock):
            monkeypatch.undo()
            begin(path, finish=True)
            with run_folder.hold(lock):
                yield

        monkeypatch.setattr(run_folder, "hold", after_another)
        with pytest.raises(UsageError, match="finished run"):
            begin(path)

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "file").write_text("here")
        with pytest.raises(UsageError, match="is a file"), open_run(tmp_path / "file", CONFIGURATION):
            pass

    def test_what_cannot_be_saved_is_named(self, path):
        with (
            pytest.raises(UsageError, match=r"configuration\.agent\.net\[1\] is of type function"),
            open_run(path, {"agent": {"net": [1, names]}}),
        ):
            pass
        assert not path.exists()

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize(
        "content", ["my diary", "{}", '{"model_type": "bert"}', '{"format": "sentinel-rl run"}', "[]", "\udcff"]
    )
    def test_foreign_folders_are_left_alone(self, path, overwrite, content):
        path.mkdir(parents=True)
        (path / CONFIG).write_bytes(content.encode(errors="surrogateescape"))
        assert status(path).state == "foreign"
        refused(path, "no run of sentinel-rl", overwrite=overwrite)

    def test_an_edited_configuration_is_not_believed(self, path):
        begin(path)
        text = (path / CONFIG).read_text()
        (path / CONFIG).write_text(text.replace('"k": 4', '"k": 5'))
        refused(path, "no readable config.json")
        content = json.loads(text.replace('"k": 4', '"k": 5'))
        del content["checksum"]  # as version 0.1 wrote it, with its hash alone
        (path / CONFIG).write_text(json.dumps(content))
        refused(path, "no readable config.json")


class TestBeside:
    def test_what_is_noted_beside_the_configuration_is_not_compared(self, path):
        begin(path, about={"typed": ("k", 4)})
        assert status(path).about == {"typed": ["k", 4]}
        with open_run(path, CONFIGURATION, about={"typed": "otherwise"}) as folder:
            assert folder.resumed
            assert folder.about == {"typed": "otherwise"}
        assert status(path).about == {"typed": ["k", 4]}, "what was noted first stays"

    def test_a_folder_may_have_nothing_noted(self, path):
        begin(path)
        assert status(path).about == {}
        content = json.loads((path / CONFIG).read_text())
        del content["about"], content["checksum"]  # version 0.1
        (path / CONFIG).write_text(json.dumps(content))
        found = status(path)
        assert (found.state, found.about) == ("unfinished", None)
        assert begin(path).resumed

    def test_an_earlier_configuration_is_compared_as_this_version_understands_it(self, path):
        before = {"env": "CartPole-v1", "k": 4}
        with open_run(path, before):
            pass

        def upgrade(configuration):
            return {"env": configuration["env"], "agent": {"k": configuration["k"]}}

        with open_run(path, {"env": "CartPole-v1", "agent": {"k": 4}}, upgrade=upgrade) as folder:
            assert folder.resumed
        assert status(path).configuration == before, "it stays as it was written"
        refused(path, r"agent\.k +4 +8", {"env": "CartPole-v1", "agent": {"k": 8}}, upgrade=upgrade)


class TestOverwrite:
    @pytest.mark.parametrize("finish", [False, True])
    def test_it_begins_anew(self, path, finish):
        begin(path, steps=[10, 20], finish=finish)
        with open_run(path, {"k": 8}, overwrite=True) as folder:
            assert not folder.resumed
            assert latest(folder.checkpoints, TREE) is None
        assert status(path).state == "unfinished"
        assert status(path).configuration == {"k": 8}

    def test_it_removes_what_runs_write_and_nothing_else(self, path):
        begin(path, steps=[10], finish=True)
        (path / "monitor.0.csv").write_text("ours")
        (path / "logs").mkdir()
        (path / "logs" / "events").write_text("ours")
        (path / "notes.txt").write_text("theirs")
        (path / "checkpoints" / "mine.txt").write_text("theirs")
        begin(path, overwrite=True, artifacts=["monitor*.csv", "logs"])
        assert names(path) == ["checkpoints", CONFIG, "notes.txt"]
        assert names(path / "checkpoints") == ["mine.txt"]

    def test_a_kill_while_it_clears_leaves_a_run(self, path, monkeypatch):
        begin(path, steps=[10], finish=True)

        def killed(folder):
            raise SystemExit

        with monkeypatch.context() as patch:
            patch.setattr("sentinel_rl.storage.run_folder.remove_folder", killed)
            with pytest.raises(SystemExit):
                begin(path, overwrite=True)
        assert status(path).state == "unfinished"
        assert not begin(path, overwrite=True).resumed


class TestStatus:
    def test_it_tells_what_is_there(self, path):
        assert status(path).state == "empty"
        assert status(path).hash is None
        begin(path, steps=[10, 20])
        found = status(path)
        assert (found.state, found.step, found.holder, found.result) == ("unfinished", 20, None, None)
        assert found.configuration["agent"] == {"k": 4, "lam": "inf"}
        assert found.hash == json.loads((path / CONFIG).read_text())["hash"]
        begin(path, finish=True)
        assert status(path).state == "finished"
        assert status(path).result == {"falls": 12}

    def test_what_a_killed_process_left_is_swept(self, path):
        begin(path, steps=[10])
        for folder in (path, path / "checkpoints"):
            (folder / f".config.json.0{ENDING}").write_text("half")
            (folder / f".step_000000020.0{ENDING}").mkdir()
        begin(path)
        assert names(path) == ["checkpoints", CONFIG]
        assert names(path / "checkpoints") == ["step_000000010"]

    def test_a_run_that_was_killed_at_its_birth_is_empty(self, path):
        path.mkdir(parents=True)
        (path / LOCK).write_text("")
        (path / f".config.json.0{ENDING}").write_text("half")
        assert status(path).state == "empty"
        assert not begin(path).resumed
        assert names(path) == [CONFIG]

    def test_a_damaged_end_is_no_end(self, path):
        begin(path, finish=True)
        (path / FINISHED).write_text("")
        with pytest.warns(SentinelWarning, match=r"finished.json is damaged, and the run counts as unfinished"):
            assert status(path).state == "unfinished"

    def test_the_lock_goes_with_an_error(self, path):
        with contextlib.suppress(ZeroDivisionError), open_run(path, CONFIGURATION):
            assert status(path).holder.alive
            raise ZeroDivisionError
        assert names(path) == [CONFIG]
