"""What is in the source distribution: all that building and testing need, and no results."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    out = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = out.glob("*.tar.gz")
    return found


def test_it_is_small(archive):
    assert archive.stat().st_size < 7 * MEGABYTE, "3 of them are trained policies"


def test_it_has_what_building_and_testing_need_and_no_results(archive):
    with tarfile.open(archive) as file:
        names = {name.split("/", 1)[1] for name in file.getnames()}
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert {"src", "tests", "docs", "examples", "benchmarks", "requirements"} <= folders
    assert "results" not in folders
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "src/sentinel_paper/registry.py"} <= names
    assert {"src/sentinel_rl/py.typed", "tests/paper/browser/look.mjs", "tests/reference/risk_cases.json"} <= names
