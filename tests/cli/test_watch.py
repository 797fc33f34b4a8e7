"""``sentinel watch``: one page from a run or a policy, and what it says when it cannot make one."""

import pytest
from PIL import Image

from sentinel_rl.cli import watch
from sentinel_rl.viewer import load_recording
from tests.tiny import tiny


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A saved policy; it need not be trained to be watched."""
    return tiny("CartPole-v0").save(tmp_path_factory.mktemp("policy") / "pole.zip")


def test_a_policy_is_watched(run, policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ("--html", "pole.html", "--save", tmp_path / "kept.zip", "--gif", "pole.gif", "--png", "pole.png")
    part = ("--decisions", "2-4", "--width", 400)
    code, out, complaint = run("watch", policy, "--episodes", 2, "--seed", 3, *files, *part)
    assert code == 0, complaint
    assert "page: pole.html" in out
    assert (tmp_path / "pole.html").read_text().startswith("<!doctype html>")
    with Image.open("pole.gif") as film, Image.open("pole.png") as picture:
        assert film.size == picture.size
        assert film.n_frames >= 3
    kept = load_recording(tmp_path / "kept.zip")
    assert (kept.episodes, kept.about.env, kept.about.seed) == (2, "CartPole-v0", 3)
    assert f"2 episodes of {kept.arrays['lengths'].min()} to {kept.arrays['lengths'].max()} decisions" in out


def test_a_run_is_watched_from_its_own_episodes_on(run, tmp_path):
    """The second episode alone is the second of both."""
    small = ("--set", "hidden=4", "--set", "capacity=64", "--set", "samples=8", "--set", "batch=8", "--set", "atoms=5")
    small += ("--set", "learn_every=20", "--set", "warmup=10")
    options = ("--k", 2, *small, "--steps", 60, "--quiet", "--out", tmp_path / "road")
    code, _, complaint = run("train", "--env", "CartPole-v0", *options)
    assert code == 0, complaint
    for name, more in {"both": ("--episodes", 2), "second": ("--episodes", 1, "--first", 1)}.items():
        where = ("--html", tmp_path / f"{name}.html", "--save", tmp_path / f"{name}.zip")
        assert run("watch", tmp_path / "road", *where, *more)[0] == 0
    both, second = (load_recording(tmp_path / f"{name}.zip") for name in ("both", "second"))
    start = both.starts()[1]
    assert (both.arrays["action"][start:] == second.arrays["action"]).all()
    assert (tmp_path / "both.html").stat().st_size > (tmp_path / "second.html").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--html", "page.txt"), "ends in .html"),
        (("--gif", "film.mp4"), "ends in .gif"),
        (("--gif", "film.gif", "--decisions", "9-4"), "for example 4-18"),
        (("--png", "one.png", "--decisions", "5000"), "decisions 5000 to 5000 are not there"),
        (("--episodes", 0), "--episodes"),
        ((), "only a highway in JAX: write a page, --html FILE"),
        (("--html", "page.html", "--with", "highway-rule"), "are of the live view"),
        (("--on", "sentinel/highway-v1"), "was trained on CartPole-v0"),
        (("--on", "Nowhere-v7"), "unknown environment"),
    ],
)
def test_what_cannot_be_watched_is_told(run, policy, arguments, words):
    code, _, complaint = run("watch", policy, *arguments)
    assert code in (2, 3)
    assert words in complaint


def test_the_live_view_is_served_with_others_beside(run, monkeypatch):
    """Who drives, where, and what is printed; the view itself has tests of its own."""
    served = {}

    def serve(make, port, open_browser, tell):
        served.update(drive=make(), port=port, opens=open_browser)
        tell("http://127.0.0.1:9/?token=x")

    monkeypatch.setattr(watch, "serve", serve)
    monkeypatch.setattr(watch, "Drive", lambda *arguments: arguments)
    options = ("--with", "highway-rule", "--with", "highway-neutral", "--seed", 3, "--first", 4, "--no-open")
    code, out, complaint = run("watch", "highway-composite", *options, "--port", 9)
    assert code == 0, complaint
    drivers, handle, seed, first = served["drive"]
    assert [driver.name for driver in drivers] == ["highway-composite", "highway-rule", "highway-neutral"]
    assert (handle.spec.name, seed, first) == ("sentinel/highway-v1", 3, 4)
    assert (served["port"], served["opens"]) == (9, False)
    assert "watch it decide: http://127.0.0.1:9/?token=x" in out
    code, _, complaint = run("watch", "highway-composite", "--with", "nobody")
    assert code == 2
    assert "holds no training run" in complaint


def test_a_folder_without_a_run(run, tmp_path):
    code, _, complaint = run("watch", tmp_path)
    assert code == 2
    assert "holds no training run" in complaint
