"""The built wheel in clean environments: what a user gets with `pip install`, run by `make test-package`.

The wheel is installed with every interpreter that can be found. Every extra gets an environment of its own with the
first of them, where what it is for is done; without the extra the same is answered with the line that installs it.
Only `gpu` is not installed: it brings gigabytes, and nothing can be seen of it without the device.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SMALL = "--set hidden=8 --set k=2"
# What a user does with an extra: a command line, or else a program in Python.
USES = {
    "export": "sentinel export highway-composite --onnx policy.onnx --stablehlo policy.bin",
    "film": "sentinel watch highway-neutral --mp4 film.mp4 --decisions 1-2 --width 320",
    "gpu": "import sentinel_rl; sentinel_rl.Sentinel('MlpPolicy', 'CartPole-v1', device='cuda')",
    "highway": "import sentinel_rl as s; e = s.make_env('highway-v0'); e.reset(seed=0); print(e.step(1)[1])",
    "optuna": f"sentinel sweep s.journal --env CartPole-v1 --steps 80 --trials 1 --vary gamma=0.9..0.99 {SMALL}",
    "ray": "from sentinel_rl.study.ray_engine import RayEngine; RayEngine()",
    "tensorboard": f"sentinel train --env CartPole-v1 --steps 300 --out run --quiet {SMALL} --tensorboard logs",
    "wandb": f"sentinel train --env CartPole-v1 --steps 300 --out run --quiet {SMALL} --wandb project",
    "watch": "sentinel watch highway-neutral --no-open",
}
# What it leaves.
MADE = {
    "export": ("policy.onnx", "policy.bin"),
    "film": ("film.mp4",),
    "optuna": ("s.best.json",),
    "tensorboard": ("logs/*/events.out.tfevents.*",),
    "wandb": ("run/wandb/offline-run-*/*.wandb",),
}
PATIENCE = 1800.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def clean(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel and its dependencies, for every interpreter that there is."""
    return environment(request.param, str(wheel), tmp_path_factory.mktemp("clean"))


def environment(version: str, what: str, folder: Path) -> Path:
    """Make an environment, and return where its programs are."""
    python = next(interpreters(version), None)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    run(programs, "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", what)
    return programs


def interpreters(version: str) -> Iterator[str]:
    """The interpreters of a version that run: on the path, or installed by pyenv, whose shims may not be set to it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for name in (f"python{version}", *map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}"))):
        try:
            subprocess.run([name, "-m", "venv", "--help"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        yield name


def settings() -> dict[str, str]:
    """The variables of a user who knows nothing of this checkout, and keeps the logs of W&B at home."""
    hidden = ("JAX_", "PYTHONPATH", "SENTINEL_", "VIRTUAL_ENV", "XLA_FLAGS")
    return {key: value for key, value in os.environ.items() if not key.startswith(hidden)} | {"WANDB_MODE": "offline"}


def run(programs: Path, name: str, *arguments: str, cwd: Path | None = None, expect: int = 0) -> str:
    """Run a program of an environment; returns what it said."""
    command = [str(programs / name), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd or programs, env=settings(), timeout=PATIENCE
    )
    said = done.stdout + done.stderr
    assert done.returncode == expect, said[-4000:]
    return said


def use(programs: Path, extra: str, cwd: Path, works: bool = True) -> str:
    """Do what an extra is for."""
    if USES[extra].startswith("sentinel "):
        return run(programs, *shlex.split(USES[extra]), cwd=cwd, expect=0 if works else 2)
    return run(programs, "python", "-c", USES[extra], cwd=cwd, expect=0 if works else 1)


def test_the_doctor_looks_at_it(clean: Path):
    said = run(clean, "sentinel", "doctor")
    assert "sentinel-rl" in said
    assert str(ROOT) not in said, "nothing comes from the checkout"


def test_the_demo_trains_and_explains(clean: Path, tmp_path: Path):
    said = run(clean, "sentinel", "demo", "--out", "pictures", cwd=tmp_path)
    assert "cvar:0.25 o cvar:0.25" in said
    assert any((tmp_path / "pictures").glob("*.png"))
    assert (tmp_path / "pictures" / "watch.html").stat().st_size > 100_000


def test_shipped_policies_are_in_the_wheel(clean: Path):
    code = "from sentinel_rl.training.policy import shipped_policies as s; print(all(p.exists() for p in s().values()))"
    assert run(clean, "python", "-c", code).strip() == "True"


@pytest.mark.parametrize("extra", USES)
def test_what_is_missing_is_named_with_the_install_line(clean: Path, extra: str, tmp_path: Path):
    said = " ".join(use(clean, extra, tmp_path, works=False).split())
    assert f"pip install 'sentinel-rl[{extra}]'" in said.replace('"', "'")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_can_be_resolved(clean: Path, wheel: Path, extra: str):
    said = run(clean, "python", "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", f"{wheel}[{extra}]")
    assert "does not provide the extra" not in said
    assert "Would install" in said


@pytest.mark.parametrize("extra", sorted(set(USES) - {"gpu", "watch"}))
def test_an_extra_works_once_it_is_installed(wheel: Path, extra: str, tmp_path: Path):
    programs = environment("3.11", f"{wheel}[{extra}]", tmp_path)
    use(programs, extra, tmp_path)
    for pattern in MADE.get(extra, ()):
        assert list(tmp_path.glob(pattern)), pattern


def test_the_live_view_serves_once_it_is_installed(wheel: Path, tmp_path: Path):
    programs = environment("3.11", f"{wheel}[watch]", tmp_path)
    assert b"<canvas" in served(programs, tmp_path)


def test_all_extras_work_in_one_environment(wheel: Path, tmp_path: Path):
    programs = environment("3.11", f"{wheel}[all]", tmp_path)
    assert "sentinel-rl" in run(programs, "sentinel", "doctor")
    run(programs, "python", "-m", "pip", "check")
    for extra in sorted(set(USES) - {"gpu", "watch"}):
        (tmp_path / extra).mkdir()
        use(programs, extra, tmp_path / extra)
    assert b"<canvas" in served(programs, tmp_path)


def served(programs: Path, cwd: Path) -> bytes:
    """The page of a live view, which Ctrl-C ends."""
    command = [str(programs / "sentinel"), *shlex.split(USES["watch"])[1:]]
    log, deadline = cwd / "watch.log", time.monotonic() + 300
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd, env=settings())
    while "Ctrl-C ends it" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)
    address = next(word for word in log.read_text().split() if word.startswith("http://127.0.0.1"))
    with urllib.request.urlopen(address, timeout=60) as answer:
        page = bytes(answer.read())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    return page
