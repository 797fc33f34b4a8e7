"""Two processes and one folder."""

import os
import signal
import socket
import sys

import pytest

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.run_folder import LOCK, open_run, status
from tests.faults.children import CONTEXT, hold_run, open_once, race_for_run, run, start

CONFIGURATION = {"k": 4}


@pytest.fixture
def working(tmp_path):
    """A process that works in a run folder."""
    ready = CONTEXT.Event()
    process = start(hold_run, tmp_path / "run", ready)
    assert ready.wait(30)
    yield process
    process.kill()
    process.join()


def test_the_second_live_process_is_refused(tmp_path, working):
    path = tmp_path / "run"
    for overwrite in (False, True):
        with (
            pytest.raises(UsageError, match=f"in use by process {working.pid} on .*: wait for it, stop it") as refusal,
            open_run(path, CONFIGURATION, overwrite),
        ):
            pass
        assert refusal.value.exit_code == 2
    assert status(path).holder.pid == working.pid
    assert status(path).holder.alive


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, working):
    path = tmp_path / "run"
    os.kill(working.pid, signal.SIGKILL)
    working.join()
    assert status(path).holder.alive is False
    with open_run(path, CONFIGURATION) as folder:
        assert folder.resumed
        assert status(path).holder.pid == os.getpid()
    assert not (path / LOCK).exists()


@pytest.mark.parametrize("content", ["", "{}", "nonsense", '{"pid": 1, "host": "HERE"}', '{"pid": 0, "host": "HERE"}'])
def test_a_lock_that_nobody_holds_is_taken_over(tmp_path, content):
    """Also when another process has its holder's number by now, as after a restart of the machine."""
    (tmp_path / LOCK).write_text(content.replace("HERE", socket.gethostname()))
    with open_run(tmp_path, CONFIGURATION) as folder:
        assert not folder.resumed


def test_the_lock_of_another_machine_is_respected(tmp_path):
    (tmp_path / LOCK).write_text('{"pid": 1, "host": "far.example"}')
    with (
        pytest.raises(UsageError, match=r"process 1 on far.example.*If you know that it is gone, delete .*lock"),
        open_run(tmp_path, CONFIGURATION),
    ):
        pass
    assert status(tmp_path).holder.alive is None
    assert (tmp_path / LOCK).exists()


def test_the_same_process_is_refused_too(tmp_path):
    with open_run(tmp_path, CONFIGURATION):
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"), open_run(tmp_path, CONFIGURATION):
            pass
        assert run(open_once, tmp_path) == 1
    assert run(open_once, tmp_path) == 0


def test_of_many_at_once_one_gets_it(tmp_path):
    for attempt in range(2):
        racers, winners = 4, CONTEXT.Value("i", 0)
        barrier = CONTEXT.Barrier(racers)
        processes = [start(race_for_run, tmp_path / str(attempt), barrier, winners) for _ in range(racers)]
        for process in processes:
            process.join()
        assert winners.value == 1
        assert sorted(process.exitcode for process in processes) == [0] + [2] * (racers - 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock to be without")
def test_without_locks_of_the_system_the_number_decides(tmp_path, monkeypatch, working):
    import fcntl

    def none(*args):
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(UsageError, match="in use by process"), open_run(tmp_path / "run", CONFIGURATION):
        pass
    working.kill()
    working.join()
    with open_run(tmp_path / "run", CONFIGURATION):
        pass
