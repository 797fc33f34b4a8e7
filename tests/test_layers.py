"""The house has floors: imports go down only, and the library is light to import."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sentinel_rl

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "sentinel_rl"

# From the ground up, as far as the risk library reaches; a room may import those before it.
FLOORS = ["_numerics", "_checks", "_precision", "returns", "belief", "risk"]


def imported(folder_or_file):
    """First parts below `sentinel_rl` of everything that the files of a room import from it."""
    files = folder_or_file.rglob("*.py") if folder_or_file.is_dir() else [folder_or_file.with_suffix(".py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "sentinel_rl":
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from in_library(node.module or "")
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield from in_library(alias.name)


def in_library(module):
    parts = module.split(".")
    return parts[1:2] if parts[0] == "sentinel_rl" else []


@pytest.mark.parametrize("floor", FLOORS)
def test_nothing_is_imported_from_above(floor):
    below = FLOORS[: FLOORS.index(floor) + 1]
    found = set(imported(LIBRARY / floor))
    assert found <= set(below)


def test_the_contracts_of_import_linter_hold():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_library_is_light():
    """Neither plotting nor statistics, environments or the command line come with the risk measures."""
    heavy = ["matplotlib", "scipy.stats", "gymnasium", "typer"]
    script = (
        "import sys, sentinel_rl, sentinel_rl.risk, sentinel_rl.belief, sentinel_rl.returns\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    path = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names():
    """Others import exactly these."""
    names = {
        "sentinel_rl.returns": ["Support", "CategoricalReturn"],
        "sentinel_rl.belief": ["Belief", "ftrl_weights", "marginal"],
        "sentinel_rl.risk": [
            *(
                "RiskMeasure",
                "Distortion",
                "Expectation",
                "CVaR",
                "Wang",
                "ProportionalHazard",
                "DualPower",
                "MinMaxVar",
            ),
            *(
                "CPW",
                "VaR",
                "EVaR",
                "Entropic",
                "MeanStd",
                "MeanVariance",
                "MeanSemideviation",
                "WorstCase",
                "BestCase",
            ),
            *("Composite", "Additive", "assess", "parse_risk", "check_coherence"),
        ],
    }
    for module, wanted in names.items():
        missing = [name for name in wanted if not hasattr(importlib.import_module(module), name)]
        assert not missing, module


def test_the_public_names_of_the_library_are_there_when_they_are_asked_for():
    wanted = {"train", "evaluate", "make_agent", "make_env", "register_agent", "register_env", "register_metric"}
    classes = {"Sentinel", "CDQN", "VDQN", "VDQNCVaR", "UADQN", "Random", "load_agent"}
    assert wanted | classes < set(sentinel_rl.__all__)
    assert all(getattr(sentinel_rl, name) is not None for name in sentinel_rl.__all__)
    with pytest.raises(AttributeError, match="module 'sentinel_rl' has no attribute 'trian'"):
        _ = sentinel_rl.trian
