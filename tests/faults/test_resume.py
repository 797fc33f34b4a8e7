"""A run that is interrupted again and again ends exactly as one that is not."""

import os
import signal
import time

import pytest

from sentinel_rl.errors import Stopped
from sentinel_rl.storage.run_folder import status
from tests.faults.children import CONTEXT, run, start, train

STEPS = 40


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    assert run(train, path, STEPS, 0, CONTEXT.Value("q", 0)) == 0
    return status(path)


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(signal.SIGTERM, Stopped.exit_code), (signal.SIGINT, Stopped.exit_code), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_interrupted_equals_uninterrupted(tmp_path, undisturbed, number, exit_code):
    path, reached = tmp_path / "run", 0
    for stop in (3, 11, 24):
        progress = CONTEXT.Value("q", reached)
        process = start(train, path, STEPS, 0.02, progress)
        while progress.value < stop:
            time.sleep(0.001)
        os.kill(process.pid, number)
        process.join()
        assert process.exitcode == exit_code
        found = status(path)
        assert found.state == "unfinished"
        lost = 6 if number == signal.SIGKILL else 0  # since the last checkpoint, and the step under way
        assert (found.step or 0) >= progress.value - lost
    assert run(train, path, STEPS, 0, CONTEXT.Value("q", 0)) == 0
    assert status(path) == undisturbed
