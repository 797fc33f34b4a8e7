"""The extras of the package: `all` has all of them, and whoever misses one is told the line that installs it."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import sentinel_rl as srl
from sentinel_rl.cli import sweep
from sentinel_rl.cli.request import TrainingRequest, training_request
from sentinel_rl.errors import UsageError
from sentinel_rl.export import check_onnx, to_onnx, to_stablehlo
from sentinel_rl.study.ray_engine import RayEngine
from sentinel_rl.training import TensorBoardSink, WandbSink
from sentinel_rl.viewer import write_film
from sentinel_rl.viewer.drive import Drive
from sentinel_rl.viewer.live import serve
from tests.tiny import tiny
from tests.viewer.made import made

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def _asked() -> TrainingRequest:
    return training_request({}, "CartPole-v1", None, None, {}, None, None, False)


def _none() -> Drive:
    raise AssertionError("nothing is driven where the server is missing")


# What a user asks for that needs a package of an extra: every package of every extra, by the name it is imported as.
NEEDS: dict[tuple[str, str], Callable[[Path], object]] = {
    ("export", "flatbuffers"): lambda folder: to_stablehlo(tiny(), folder / "policy.bin"),
    ("export", "onnx"): lambda folder: to_onnx(tiny(), folder / "policy.onnx"),
    ("export", "onnxruntime"): lambda folder: check_onnx(tiny(), folder / "policy.onnx", np.zeros((1, 4))),
    ("film", "imageio_ffmpeg"): lambda folder: write_film(made(), folder / "film.mp4"),
    ("highway", "highway_env"): lambda folder: srl.make_env("highway-v0"),
    ("optuna", "optuna"): lambda folder: sweep.run(folder / "study", _asked(), ["k=2..4"], 1, "return", 1, 0),
    ("ray", "ray"): lambda folder: RayEngine(),
    ("tensorboard", "tensorboardX"): lambda folder: TensorBoardSink(folder),
    ("wandb", "wandb"): lambda folder: WandbSink("project", folder),
    ("watch", "starlette"): lambda folder: serve(_none),
    ("watch", "uvicorn"): lambda folder: serve(_none),
    ("watch", "websockets"): lambda folder: serve(_none),
}


def test_all_has_all_of_them_but_what_the_machine_decides():
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(EXTRAS) - {"all", "gpu"}


def test_extras_that_are_named_exist():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {extra for path in files for extra in re.findall(r"sentinel-rl\[(\w+)\]", path.read_text())}
    assert {"gpu", "highway", "ray", "tensorboard"} <= named <= set(EXTRAS)


def test_no_error_names_a_bare_package():
    """Whoever misses an extra is told the line that installs it with the versions that fit."""
    told = [
        (path.name, line)
        for path in (ROOT / "src").rglob("*.py")
        for line in re.findall(r"pip install [^\n]*", path.read_text())
        # gymnax is no extra: it asks for an older Gymnasium than ours.
        if not re.match(r"pip install (['\"\\]*sentinel-rl\[|gymnax)", line)
    ]
    assert told == []


@pytest.mark.parametrize(("extra", "package"), NEEDS, ids=lambda name: name)
def test_what_is_missing_is_told_with_the_line_that_installs_it(extra, package, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as told:
        NEEDS[extra, package](tmp_path)
    assert f"pip install 'sentinel-rl[{extra}]'" in str(told.value).replace('"', "'")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_gpu_is_told_with_the_line_that_installs_it():
    with pytest.raises(UsageError, match=r"pip install 'sentinel-rl\[gpu\]'"):
        tiny(device="cuda")


def test_every_package_of_every_extra_is_hidden_once():
    """The packages as pip knows them, imported with underscores for hyphens."""
    named = {
        extra: {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines} for extra, lines in EXTRAS.items()
    }
    wanted = {(extra, package) for extra in set(EXTRAS) - {"all", "gpu"} for package in named[extra]}
    assert set(NEEDS) == wanted
