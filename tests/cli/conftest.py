"""The command line as it is when the project is installed, whether or not it is."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sentinel_rl.cli import main

ROOT = Path(__file__).parents[2]


def distribution(folder, name, commands):
    """Write the metadata of a distribution that adds commands."""
    info = folder / f"{name}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    lines = [f"{command} = {target}" for command, target in commands.items()]
    (info / "entry_points.txt").write_text("\n".join(["[sentinel_rl.commands]", *lines, ""]))
    return folder


@pytest.fixture
def sentinel(tmp_path):
    """Run ``sentinel`` in a process of its own, with the commands that pyproject.toml declares and those added."""

    def call(*arguments, commands=None, code="", **options):
        folder = tmp_path / "metadata"
        if not folder.exists():
            folder.mkdir()
            declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
            distribution(folder, "declared", declared["sentinel_rl.commands"] | (commands or {}))
        program = (
            f"import sys; from sentinel_rl.cli import main\ntry: main({list(arguments)!r})\nfinally:\n pass\n {code}"
        )
        path = os.pathsep.join([str(ROOT / "src"), str(folder), str(tmp_path)])
        environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "100", "JAX_PLATFORMS": "cpu"}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    return call


@pytest.fixture
def run(capsys, monkeypatch):
    """Call ``sentinel`` here, returning exit code, output and complaints."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call
