"""``sentinel reproduce --engine ray`` against a real cluster of two nodes, from the command line."""

import os
import subprocess
import sys

import pytest

from tests.clients.test_ray import QUIET, ROOT, Cluster

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("ray"),
]
NAME = "fig-ftrl-lambda"


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    made.join(2)
    yield made
    made.end()


def reproduce(folder, *arguments):
    """Run the command in a process of its own, as a user does."""
    command = [sys.executable, "-m", "sentinel_paper", "reproduce", NAME, "--quick", "--out", folder, *arguments]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.run(
        list(map(str, command)), env=os.environ | QUIET | paths, cwd=folder.parent, text=True, capture_output=True
    )


def test_a_quick_experiment_on_the_cluster_is_the_local_one(cluster, tmp_path):
    here, there = tmp_path / "a" / "local", tmp_path / "b" / "ray"
    for folder, how in ((here, ()), (there, ("--engine", "ray", "--address", cluster.address))):
        folder.parent.mkdir()
        done = reproduce(folder, *how)
        assert done.returncode == 0, done.stderr
        assert "CVaR o CVaR" in done.stdout
    for name in (f"{NAME}.csv", f"{NAME}-runs.csv"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    cells = [{path.name for path in folder.parent.glob("records/*.cell")} for folder in (here, there)]
    assert cells[0] == cells[1]
    assert len(cells[0]) == 8


def test_no_cluster_is_told_with_exit_2(tmp_path):
    done = reproduce(tmp_path / "out", "--engine", "ray", "--address", "127.0.0.1:9")
    assert done.returncode == 2
    assert "no Ray cluster answers" in done.stderr
