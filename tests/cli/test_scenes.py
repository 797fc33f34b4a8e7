"""``sentinel scenes`` and ``sentinel watch --capture``: checkpoints of a run, drivers, and what cannot be tried."""

import json

import numpy as np
import pytest
from PIL import Image

from sentinel_rl.viewer import load_recording, load_scene

SMALL = ("--set", "hidden=4", "--set", "capacity=64", "--set", "samples=8", "--set", "batch=8", "--set", "atoms=5")


def test_every_checkpoint_of_a_run_is_tried(run, tmp_path):
    """The last column is that of the policies, and a moment that was captured is a scene with its observation."""
    pole = tmp_path / "pole"
    plan = ("--set", "learn_every=20", "--set", "warmup=10", "--save-every", 20, "--keep", 9, "--steps", 80)
    options = ("--k", 2, *SMALL, *plan, "--seeds", 2, "--quiet", "--out", pole)
    code, _, complaint = run("train", "--env", "CartPole-v0", *options)
    assert code == 0, complaint
    kept = tmp_path / "kept.zip"
    scene = ("--capture", tmp_path / "Tilted pole.scene.json", "--decisions", 3, "--do", "[0]")
    code, out, complaint = run("watch", pole, "--episodes", 1, "--save", kept, *scene)
    assert code == 0, complaint
    assert "a good driver: [0]" in out
    found = load_scene(tmp_path / "Tilted pole.scene.json")
    np.testing.assert_array_equal(found.obs, load_recording(kept).arrays["obs"][2])
    assert found.name == "tilted-pole"
    code, out, complaint = run("scenes", pole, tmp_path, "--json")
    assert code == 0, complaint
    told = json.loads(out)
    steps = [trial["steps"] for trial in told["trials"]]
    assert steps == sorted(set(steps))
    assert steps[-1] == 80
    assert len(steps) >= 4
    assert np.shape(told["trials"][0]["passed"]) == (2, 1)
    code, out, complaint = run("scenes", pole, tmp_path, "--plot", tmp_path / "over.png")
    assert code == 0, complaint
    assert "tilted-pole" in out
    with Image.open(tmp_path / "over.png") as picture:
        assert picture.width > 500


def test_drivers_that_need_no_training(run):
    code, out, complaint = run("scenes", "highway-search", "--json")
    assert code == 0, complaint
    told = json.loads(out)
    names = [scene["name"] for scene in told["scenes"]]
    failed = [name for name, fine in zip(names, told["trials"][0]["passed"][0], strict=True) if not fine]
    assert failed == ["overtake-early"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("scenes", "highway-rule", "--plot", "scenes.txt"), "ends in .png"),
        (("scenes", "highway-rule", "nowhere"), "holds no scenes"),
        (("scenes", "nowhere"), "holds no training run"),
        (("watch", "highway-composite", "--do", "IDLE", "--html", "a.html"), "give --capture"),
        (("watch", "highway-composite", "--capture", "one.json"), "ends in .scene.json"),
    ],
)
def test_what_cannot_be_tried_is_told(run, arguments, words):
    code, _, complaint = run(*arguments)
    assert code == 2
    assert words in complaint
