"""The scripts of `examples/` run as they are; that of the highway is run with the clients it needs."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "explain_a_decision.py",
        "highway_sb3.py",  # by tests/envs/test_clients.py
        "risk_on_arrays.py",
        "rl_zoo.py",  # by tests/clients/test_rl_zoo.py
    }


def test_risk_measures_on_arrays(monkeypatch, capsys):
    run("risk_on_arrays.py", monkeypatch)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["bonds", "shares", "novelty"]
    assert len(rows) == 7
    assert "best: novelty" in rows[4]  # who fears bad years only
    assert "best: bonds" in rows[6]  # who fears wrong forecasters too


@pytest.mark.slow
def test_a_decision_is_explained(monkeypatch, capsys, tmp_path):
    run("explain_a_decision.py", monkeypatch, "--steps", 400, "--members", 2, "--out", tmp_path / "why.png")
    printed = capsys.readouterr().out
    assert printed.count("maximising cvar:0.25 o cvar:0.25") == 3
    assert "without regard to risk it would take action" in printed
    assert (tmp_path / "why.png").stat().st_size > 1_000
