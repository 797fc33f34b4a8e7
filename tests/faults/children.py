"""What the processes do that get killed. They fork from a server that has imported everything: a test can kill many."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import sentinel_rl.api
import sentinel_rl.training.trainer  # noqa: F401 (for `sentinel train`, which imports when it runs)
from sentinel_rl.cli import main
from sentinel_rl.errors import SentinelError, Stopped
from sentinel_rl.storage.checkpoint import latest, save
from sentinel_rl.storage.run_folder import open_run
from sentinel_rl.training.signals import catch_signals

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])
NOBODY = 65534


def tree_of(step):
    """A state that shows at every place which step it belongs to."""
    return {"small": np.int64(step), "large": np.full((400, 500), step, np.float32), "many": [np.full(3, step)] * 3}


def start(target, *args):
    """Run a function of this module in a process of its own."""
    process = CONTEXT.Process(target=target, args=args)
    process.start()
    return process


def run(target, *args):
    """Run a function of this module in a process of its own until it ends, and return its exit code."""
    process = start(target, *args)
    process.join()
    return process.exitcode


def save_forever(parent, begin, done):
    """Save step after step; `done` is the last one of which `save` has returned."""
    for step in range(begin, sys.maxsize):
        save(Path(parent), step, tree_of(step))
        done.value = step


def save_and_die(parent, step, operation):
    """Save, but be killed just before one of the file operations in the folder; ends with 0 when there are fewer."""
    count = 0

    def watch(event, args):
        nonlocal count
        if event.startswith(("open", "os.", "shutil.")) and any(str(parent) in str(arg) for arg in args):
            count += 1
            if count > operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    save(Path(parent), step, tree_of(step))


def save_with_limit(parent, step, bytes_per_file):
    """Save where no file may grow beyond a limit, as on a disk that is full at that point."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_per_file, bytes_per_file))
    _exit_with_code(lambda: save(Path(parent), step, tree_of(step)))


def save_as_nobody(parent, step):
    """Save as a user who may not write there, even if the tests are run by one who may write everywhere."""
    if os.getuid() == 0:
        os.setuid(NOBODY)
    _exit_with_code(lambda: save(Path(parent), step, tree_of(step)))


def train(path, steps, pause, progress):
    """A run as the documentation shows it: it resumes, saves, stops on request, and finishes."""
    state, step = {"x": np.arange(4, dtype=np.uint64)}, 0
    about = {"configuration": {"steps": steps}}
    with open_run(path, about["configuration"]) as folder, catch_signals() as stopper:
        if found := latest(folder.checkpoints, state, about):
            state, step = found[0], found[1].step
        while step < steps:
            state, step = {"x": state["x"] * np.uint64(6364136223846793005) + np.uint64(step)}, step + 1
            progress.value = step
            time.sleep(pause)
            if stopper.requested:
                save(folder.checkpoints, step, state, about)
                sys.exit(Stopped.exit_code)
            if step % 5 == 0:
                save(folder.checkpoints, step, state, about)
        folder.finish({"x": state["x"]})


def sentinel(arguments, told):
    """The command ``sentinel`` on one core, as in the process of the tests, so that both share what is compiled."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with open(told, "w", buffering=1) as sys.stderr:
        main(arguments)


def sentinel_until_rename(arguments, told, folder, number):
    """The command ``sentinel``, killed when the so-many-th file or folder of a run is written and not yet renamed."""
    left = number

    def watch(event, args):
        nonlocal left
        if event == "os.rename" and str(folder) in str(args[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    sentinel(arguments, told)


def hold_run(path, ready):
    """Work in a run folder until killed."""
    with open_run(path, {"k": 4}):
        ready.set()
        signal.pause()


def open_once(path):
    """Open a run folder and close it again."""
    with open_run(path, {"k": 4}):
        pass


def race_for_run(path, barrier, winners):
    """Try to get a run folder at the same moment as others; the winner keeps it for as long as they try."""
    barrier.wait()
    try:
        with open_run(path, {"k": 4}):
            with winners.get_lock():
                winners.value += 1
            barrier.wait()
    except SentinelError as error:
        barrier.wait()
        sys.exit(error.exit_code)


def _exit_with_code(work):
    try:
        work()
    except SentinelError as error:
        sys.exit(error.exit_code)
