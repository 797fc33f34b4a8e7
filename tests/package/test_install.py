"""The built wheel in a clean environment: what a user gets with `pip install`, run by `make test-package`.

Every extra is resolved by pip against the index that it is set up with; what a small one brings is installed and used.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# What needs an extra, as a user meets it.
MISSING = {
    "tensorboard": "from sentinel_rl.training.sinks import TensorBoardSink; TensorBoardSink('logs')",
    "highway": "import sentinel_rl; sentinel_rl.make_env('highway-v0')",
    "ray": "from sentinel_rl.study.ray_engine import RayEngine; RayEngine()",
    "gpu": "import sentinel_rl; sentinel_rl.Sentinel('MlpPolicy', 'CartPole-v1', device='cuda')",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def clean(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel and its dependencies, for every interpreter that there is."""
    name = f"python{request.param}"
    try:
        subprocess.run([name, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"there is no {name} here")
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([name, "-m", "venv", folder], check=True)
    programs = folder / "bin"
    run(programs, "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(wheel))
    return programs


def run(programs: Path, name: str, *arguments: str, cwd: Path | None = None, expect: int = 0) -> str:
    """Run a program of an environment, as a user would who knows nothing of this checkout; returns what it said."""
    hidden = ("JAX_", "PYTHONPATH", "SENTINEL_", "VIRTUAL_ENV", "XLA_FLAGS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    command = [str(programs / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd or programs, env=environment, timeout=1800)
    said = done.stdout + done.stderr
    assert done.returncode == expect, said[-4000:]
    return said


def test_the_doctor_looks_at_it(clean: Path):
    said = run(clean, "sentinel", "doctor")
    assert "sentinel-rl" in said
    assert str(ROOT) not in said, "nothing comes from the checkout"


def test_the_demo_trains_and_explains(clean: Path, tmp_path: Path):
    said = run(clean, "sentinel", "demo", "--out", "pictures", cwd=tmp_path)
    assert "cvar:0.25 o cvar:0.25" in said
    assert any((tmp_path / "pictures").glob("*.png"))


def test_shipped_policies_are_in_the_wheel(clean: Path):
    code = "from sentinel_rl.training.policy import shipped_policies as s; print(all(p.exists() for p in s().values()))"
    assert run(clean, "python", "-c", code).strip() == "True"


@pytest.mark.parametrize("extra", MISSING)
def test_what_is_missing_is_named_with_the_install_line(clean: Path, extra: str, tmp_path: Path):
    said = run(clean, "python", "-c", MISSING[extra], cwd=tmp_path, expect=1)
    assert "UsageError" in said
    assert f"pip install 'sentinel-rl[{extra}]'" in said.replace('"', "'")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_can_be_resolved(clean: Path, wheel: Path, extra: str):
    said = run(clean, "python", "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", f"{wheel}[{extra}]")
    assert "does not provide the extra" not in said
    assert "Would install" in said


def test_an_extra_works_once_it_is_installed(clean: Path, wheel: Path, tmp_path: Path):
    run(clean, "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", f"{wheel}[tensorboard]")
    train = ["--env", "CartPole-v1", "--steps", "300", "--out", "run", "--tensorboard", "logs", "--quiet"]
    run(clean, "sentinel", "train", *train, "--k", "2", "--set", "hidden=8", cwd=tmp_path)
    assert list((tmp_path / "logs").rglob("events.out.tfevents.*"))
