"""``sentinel plot``: curves of runs, finished or not, as picture and page."""

import numpy as np
import pytest

from sentinel_rl.study.learning_curves import band, read_curves

SMALL = ("--k", 2, "--set", "hidden=4", "--set", "capacity=64", "--set", "samples=8", "--set", "batch=8")
SMALL += ("--set", "atoms=5", "--set", "learn_every=20", "--set", "warmup=10", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two finished runs, and one whose end is not written yet."""
    from sentinel_rl.cli import main

    folder = tmp_path_factory.mktemp("runs")
    for name, seeds in {"a": 2, "b": 1}.items():
        options = ("train", "--env", "CartPole-v0", *SMALL, "--steps", 200, "--seeds", seeds, "--out", folder / name)
        with pytest.raises(SystemExit) as ended:
            main([str(option) for option in options])
        assert ended.value.code == 0
    return folder


def test_runs_are_drawn_together(run, runs, tmp_path):
    for kind, start in {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>"}.items():
        code, out, complaint = run("plot", runs / "a", runs / "b", "--out", tmp_path / f"c.{kind}")
        assert code == 0, complaint
        assert (tmp_path / f"c.{kind}").read_bytes().startswith(start)
        assert "one seed" in out
    page = (tmp_path / "c.html").read_text()
    assert page.count("<tr>") == 3
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "data:image/svg+xml;base64," in page
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_an_unfinished_run_shows_its_episodes(run, runs, tmp_path):
    """The returns of the episodes are those of the finished run's own curves."""
    whole = read_curves(runs / "a")
    (runs / "a" / "curves.csv").rename(tmp_path / "kept.csv")
    try:
        part = read_curves(runs / "a")
        code, out, _ = run("plot", runs / "a", "--out", tmp_path / "c.png", "--metric", "terminations")
    finally:
        (tmp_path / "kept.csv").rename(runs / "a" / "curves.csv")
    assert code == 0
    assert "not finished: a" in out
    size = len(part.steps)
    np.testing.assert_allclose(part.values["return"], whole.values["return"][:, :size], rtol=1e-6)
    np.testing.assert_allclose(part.values["terminations"], whole.values["terminations"][:, :size])


def test_an_interval_covers_the_mean_of_known_values():
    mean, low, high = band(np.random.default_rng(0).normal(5, 1, (30, 4)))
    assert (low < mean).all()
    assert (mean < high).all()
    np.testing.assert_allclose(high - low, 4 / np.sqrt(30), rtol=0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--out", "c.txt"), "ends in .png"), (("--metric", "fun"), "has aleatory, clip_high")],
)
def test_what_cannot_be_drawn_is_told(run, runs, arguments, words):
    code, _, complaint = run("plot", runs / "a", *arguments)
    assert code == 2
    assert words in complaint


def test_damaged_and_missing_curves(run, runs, tmp_path):
    assert run("plot", tmp_path)[0] == 2
    kept = (runs / "b" / "curves.csv").read_text()
    (runs / "b" / "curves.csv").write_text(kept.replace("\n0,", "\nzero,", 1))
    code, _, complaint = run("plot", runs / "b", "--out", tmp_path / "c.png")
    (runs / "b" / "curves.csv").write_text(kept)
    assert code == 3
    assert "no file of learning curves" in complaint
