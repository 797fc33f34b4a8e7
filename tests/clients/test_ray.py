"""Grids on a real Ray cluster of two nodes on this machine, whose parts are killed while they work."""

import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from sentinel_rl.errors import PartialFailure, UsageError
from sentinel_rl.study import Store, run_grid
from tests.study.grids import CELL, same_arrays, with_options

pytestmark = [
    pytest.mark.clients,
    # Ray's own, and those of what it leaves to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("ray"),
]
ROOT = Path(__file__).parents[2]
GRID = [CELL, with_options(lam=3.0)]
ONE = [dataclasses.replace(CELL, seeds=(3,))]
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "JAX_PLATFORMS": "cpu"}
DRIVER = """
import sys
from sentinel_rl.study import Store, run_grid
from tests.clients import test_ray
run_grid(getattr(test_ray, sys.argv[3]), Store(sys.argv[1]), "ray", sys.argv[2])
"""

IMPATIENT = """
from sentinel_rl.study import ray_engine
ray_engine.PATIENCE = 3.0
"""


class Node:
    """A node of a cluster, as a session of processes."""

    def __init__(self, log, *arguments, settings=None):
        command = [Path(sys.executable).with_name("ray"), "start", "--block", "--num-cpus=1", *arguments]
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                [*map(str, command), "--object-store-memory=100000000", "--disable-usage-stats"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | QUIET | (settings or {}),
                cwd=ROOT,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while "Ray runtime started" not in (told := Path(log).read_text()):
            assert self.process.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.2)

    def processes(self, title=b""):
        """Those of the node's session with a title: Ray gives every worker a group of its own."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if os.getsid(int(entry.name)) == self.process.pid and title in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found

    def raylet(self):
        """The process that manages the node's workers."""
        (found,) = [
            process
            for process in self.processes(b"raylet")
            if Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].endswith(b"raylet/raylet")
        ]
        return found

    def kill(self):
        """Kill all of the node at once, as a power cut does."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return port if not 10_002 <= port <= 19_999 else free_port()


class Cluster:
    """A head, and other nodes that come and go."""

    def __init__(self, settings=None):
        # The sockets in it may have 107 letters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="ray"))
        self.port, self.nodes = free_port(), []
        arguments = "--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={self.folder / 'ray'}"
        self.head = Node(self.folder / "head.log", *arguments, settings=settings)
        self.address = f"127.0.0.1:{self.port}"

    def join(self, number):
        arguments = f"--address={self.address}", f"--node-ip-address=127.0.0.{number}"
        self.nodes.append(Node(self.folder / f"node{number}.log", *arguments))
        return self.nodes[-1]

    def end(self):
        for node in (*self.nodes, self.head):
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    yield made
    made.end()


@pytest.fixture(scope="module")
def second(cluster):
    return cluster.join(2)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return run_grid(GRID, Store(tmp_path_factory.mktemp("local")))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def require_equal(records, expected):
    assert [record.cell for record in records] == [record.cell for record in expected]
    for one, other in zip(records, expected, strict=True):
        assert same_arrays(one, other)


def strike(node, act):
    """Do something as soon as a node computes; the list that is returned says to which processes."""
    struck = []

    def watch():
        deadline = time.monotonic() + 60
        while not struck and time.monotonic() < deadline:
            if found := node.processes(b"ray::compute"):
                struck.append(found[0])
                act(found[0])
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    return struck


def written(path):
    """Which file it is, and when it was written."""
    return path.stat().st_ino, path.stat().st_mtime_ns


@pytest.mark.attack("ray")
def test_a_worker_that_is_killed_changes_nothing(cluster, second, expected, store):
    struck = strike(second, lambda process: os.kill(process, signal.SIGKILL))
    records = run_grid(GRID, store, "ray", cluster.address)
    assert struck
    require_equal(records, expected)
    assert not list((store.folder / "parts").glob("*.cell"))
    assert records[0].about["parts"] == 2
    assert records[0].about["devices"] == 1, "a task has one core, whatever its node has"


@pytest.mark.attack("ray")
def test_a_driver_that_is_killed_is_taken_over(cluster, second, expected, store):
    command = [sys.executable, "-c", DRIVER, store.folder, cluster.address, "GRID"]
    driver = subprocess.Popen(list(map(str, command)), env=os.environ | QUIET, cwd=ROOT, start_new_session=True)
    deadline = time.monotonic() + 90
    while not (done := list(store.folder.rglob("*.cell"))):
        assert driver.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert len(store.status(GRID).finished) < len(GRID)
    before = written(done[0])
    kept = []

    def look(progress):
        kept.append(not done[0].exists() or written(done[0]) == before)

    require_equal(run_grid(GRID, store, "ray", cluster.address, report=look), expected)
    assert kept
    assert all(kept)


def test_a_cell_that_fails_is_told_and_not_tried_again(cluster, second, expected, store):
    wrong = with_options(mask_rate=7.0)
    with pytest.raises(PartialFailure, match="mask_rate must be in"):
        run_grid([wrong, GRID[0]], store, "ray", cluster.address)
    require_equal([store.get(GRID[0])], expected[:1])
    assert "mask_rate" in store.status([wrong]).failed[wrong.id]


@pytest.mark.attack("ray")
def test_a_node_that_is_killed_changes_nothing(cluster, second, expected, store):
    """The last one with the second node."""
    struck = strike(second, lambda process: second.kill())
    records = run_grid(GRID, store, "ray", cluster.address)
    assert struck
    require_equal(records, expected)


@pytest.mark.attack("ray")
def test_a_raylet_that_is_killed_changes_nothing(cluster, expected, store):
    """The manager of a node alone: its workers notice, and their tasks are started elsewhere."""
    node = cluster.join(3)
    struck = strike(node, lambda process: os.kill(node.raylet(), signal.SIGKILL))
    records = run_grid(GRID, store, "ray", cluster.address)
    assert struck
    require_equal(records, expected)


LARGE = 1.2e9


def largest_first(cluster, killed):
    """Do what the kernel does where memory ends: kill a worker that has grown too large, again and again."""
    for node in (*cluster.nodes, cluster.head):
        for process in node.processes(b"ray::compute"):
            with contextlib.suppress(OSError):
                pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                if pages * os.sysconf("SC_PAGE_SIZE") > LARGE:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)


@pytest.mark.attack("ray")
def test_a_cell_that_needs_more_memory_than_there_is_fails_alone(cluster, expected, store):
    """Its worker is killed every time; the other cells are whole, and the grid says which one is not."""
    large, killed, over = with_options(capacity=30_000_000), [], threading.Event()

    def watch():
        while not over.wait(0.02):
            largest_first(cluster, killed)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        with pytest.raises(PartialFailure, match="1 of 2 cells"):
            run_grid([large, GRID[0]], store, "ray", cluster.address)
    finally:
        over.set()
        watching.join()
    assert len(killed) >= 4, "at first, and three times again"
    require_equal([store.get(GRID[0])], expected[:1])
    assert "WorkerCrashed" in store.status([large]).failed[large.id]


@pytest.mark.attack("ray")
def test_a_node_without_memory_does_not_keep_the_grid_for_ever(store):
    """Ray itself kills tasks on a node whose memory is used up, and by default starts them again without end."""
    full = Cluster({"RAY_memory_usage_threshold": "0.01", "RAY_memory_monitor_refresh_ms": "100"})
    try:
        command = [sys.executable, "-c", DRIVER, store.folder, full.address, "ONE"]
        told = subprocess.run(
            list(map(str, command)), env=os.environ | QUIET, cwd=ROOT, timeout=240, capture_output=True, text=True
        )
    finally:
        full.end()
    assert told.returncode != 0
    assert "PartialFailure" in told.stderr
    assert "OutOfMemory" in store.status(ONE).failed[ONE[0].id]


def test_no_cluster_is_told_at_once(store):
    began = time.monotonic()
    with pytest.raises(UsageError, match="no Ray cluster answers") as caught:
        run_grid(GRID, store, "ray", f"127.0.0.1:{free_port()}")
    assert caught.value.exit_code == 2
    assert time.monotonic() - began < 5


def test_a_cluster_that_does_not_answer_is_given_up(store):
    """In a process of its own: Ray's attempt is not ended, only left alone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = [
            sys.executable,
            "-c",
            IMPATIENT + DRIVER,
            store.folder,
            f"127.0.0.1:{silent.getsockname()[1]}",
            "GRID",
        ]
        told = subprocess.run(
            list(map(str, command)), env=os.environ | QUIET, cwd=ROOT, timeout=60, capture_output=True, text=True
        )
    assert told.returncode != 0
    assert "UsageError: no Ray cluster answers" in told.stderr
    assert "nothing within 3 s" in told.stderr
