"""The sweep on the page on studies has the size that it claims, and its shards meet in one folder."""

import re
import subprocess
import sys

import pytest

from sentinel_rl.study import Store
from tests.docs.pages import ROOT, blocks_of

(CODE,) = (block.code for block in blocks_of(ROOT / "docs" / "studies.md") if block.code.startswith("# sweep.py"))
SMALL = {
    r"(?<=RISKS = ).*": "(1.0,)",
    r"(?<=LAMBDAS = ).*": "(0.1, 1.0)",
    r"(?<=STEPS = ).*": "2, 1, 120",
    r'"k": 4': '"k": 2, "hidden": (8,)',
}


def test_the_sweep_has_10_000_runs(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("sentinel_rl.study.run_grid", lambda grid, *_, **__: asked.extend(grid))
    monkeypatch.setattr(sys, "argv", ["sweep.py", "HEAD:6379"])
    monkeypatch.chdir(tmp_path)
    exec(CODE, {})
    assert len(asked) == len({cell.id for cell in asked}) == 100
    assert sum(len(cell.seeds) for cell in asked) == 10_000


@pytest.mark.slow
def test_its_shards_meet_in_one_folder(tmp_path):
    small = CODE
    for old, new in SMALL.items():
        small, changes = re.subn(old, new, small)
        assert changes == 1, old
    for shard in ("1/2", "2/2"):
        subprocess.run([sys.executable, "-c", small, shard], cwd=tmp_path, check=True, capture_output=True)
    records = Store(tmp_path / "sweep").records()
    assert sorted((record.cell.label, record.cell.seeds) for record in records) == [
        (f"alpha 1.0, lambda {lam}", (seed,)) for lam in (0.1, 1.0) for seed in range(2)
    ]
