"""Films and pictures: smooth, of the right length, and with the numbers of the recording in their pixels."""

import io
import itertools
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from sentinel_rl.belief import Belief
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.explanation import Explanation
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import CVaR, assess
from sentinel_rl.viewer import Recording, film, write_film, write_picture
from sentinel_rl.viewer.paint import CHANCE, EGO, IGNORANCE, Paint, action_colour
from sentinel_rl.viewer.reasons import Reasons, reasons_of
from sentinel_rl.viewer.stage import Stage
from sentinel_rl.viewer.strip import draw_strip, shown_actions
from tests.viewer.made import ACTIONS, LENGTHS, SUBSTEPS, made

ROAD = made()


def mask(picture, colour):
    """Where a picture has exactly a colour."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return (np.asarray(picture) == wanted).all(-1)


@pytest.mark.parametrize("own_atoms", [False, True])
def test_the_sentence_is_that_of_the_terminal(own_atoms):
    recording = made(own_atoms=own_atoms)
    for decision in range(recording.decisions):
        arrays = recording.arrays
        atoms = arrays["atoms"][decision] if own_atoms else arrays["atoms"]
        belief = Belief(CategoricalReturn(atoms, arrays["probs"][decision]), arrays["weights"][decision])
        told = Explanation(belief, assess(belief, CVaR(0.5), CVaR(0.25)), "", action_names=ACTIONS)
        found = reasons_of(recording, decision)
        assert found.sentence == told.sentence
        assert found.best == told.action


def test_a_sentence_without_laws_and_with_one_action():
    assert reasons_of(made("chart", laws=False), 0).sentence.count("over") == 1
    assert Reasons(("STAY",), 0, np.zeros(1)).sentence == "STAY, the only action there is"


def test_cars_are_where_the_recording_says_between_its_steps():
    """The ego keeps its place in the picture; another car 12 m ahead is 12 m ahead, and nearer when it is slower."""
    stage = Stage(ROAD, 1, 800)
    scale = 800 / 100
    ego = np.argwhere(mask(stage.draw(2, 0.0), EGO)[34:])
    assert ego[:, 1].mean() == pytest.approx(0.2 * 800 + 0.2 * scale, abs=8)
    slower = dict(ROAD.arrays)
    cars = np.array(slower["cars"])
    start = LENGTHS[0] * SUBSTEPS + 1
    cars[start:, 1, 0] -= np.arange(len(cars) - start)  # one metre per simulation step
    recording = Recording(ROAD.about, {**slower, "cars": cars, "crashed": np.zeros_like(slower["crashed"])})
    stage = Stage(recording, 1, 800)
    places = []
    for phase in np.linspace(0, 1, 7):
        grey = mask(stage.draw(0, float(phase)), "#8d97a6")[34 + 33 : 34 + 63]  # the second lane
        places.append(np.argwhere(grey)[:, 1].mean())
    np.testing.assert_allclose(np.diff(places), -SUBSTEPS / 6 * scale, atol=0.8)


def test_bars_are_as_long_as_the_penalties():
    """Of all actions together: pixels of chance to pixels of ignorance as in the numbers."""
    told = Reasons(
        ("A", "B"), 0, np.array([1.0, 3.0]), np.array([5.0, 6.0]), np.array([3.0, 1.0]), np.array([1.0, 2.0])
    )
    picture = draw_strip(told, 800)
    rows = (slice(44, 71), slice(71, 98))
    lengths = [[mask(picture, colour)[row].sum(1).max() for colour in (CHANCE, IGNORANCE)] for row in rows]
    (chance_a, ignorance_a), (chance_b, ignorance_b) = lengths
    assert chance_a / chance_b == pytest.approx(3, rel=0.08)
    assert chance_a / ignorance_b == pytest.approx(1.5, rel=0.08)
    assert 0 < ignorance_a < chance_b
    assert mask(picture, action_colour(1))[10:36, :5].any(), "the sentence is marked with the best action"


def test_many_actions_are_shown_by_the_best_and_the_one_taken():
    told = Reasons(tuple(map(str, range(30))), 4, np.arange(30.0))
    assert shown_actions(told) == [4, 23, 24, 25, 26, 27, 28, 29]
    assert draw_strip(told, 400).width == 400


def test_a_film_lasts_as_long_as_the_world(tmp_path):
    """A second per decision: 15 pictures a second, and the last one stays."""
    path = write_film(ROAD, tmp_path / "new" / "road.GIF", 0, range(1, 4), 400)
    with Image.open(path) as found:
        assert found.size[0] == 400
        assert found.size[1] % 2 == 0
        durations = []
        for i in range(found.n_frames):
            found.seek(i)
            durations.append(found.info["duration"])
    assert sum(durations) == pytest.approx(1000 * (3 + 13 / 15), abs=50)
    assert len(durations) >= 3 * SUBSTEPS
    assert found.info["loop"] == 0


def test_every_picture_of_a_drive_differs():
    pictures = [np.asarray(picture) for picture in film.frames(ROAD, 1, range(2), 400)]
    assert len(pictures) == 31 + 12
    assert all((one != other).any() for one, other in itertools.pairwise(pictures[:31]))


@pytest.mark.parametrize(("view", "laws"), [("frames", True), ("chart", False)])
def test_other_worlds(view, laws):
    """One picture per decision where there are 30 of them in a second."""
    recording = made(view, laws, per_second=30.0)
    pictures = list(film.frames(recording, 0, None, 480))
    assert len(pictures) == LENGTHS[0] + 1 + 12
    assert len({picture.size for picture in pictures}) == 1
    slow = list(film.frames(recording, 0, None, 480, speed=0.25))
    assert len(slow) == round(LENGTHS[0] / 7.5 * 15) + 1 + 12


def test_a_picture_of_one_decision(tmp_path):
    path = write_picture(ROAD, tmp_path / "one.png", 1, 3, 640)
    with Image.open(path) as found:
        stage = Stage(ROAD, 1, 640)
        top = np.asarray(found)[: stage.height]
    np.testing.assert_array_equal(top, np.asarray(stage.draw(3, 0.0))[: len(top)])


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("film.avi", {}, "ends in .gif or .mp4"),
        ("film.gif", {"episode": 2}, "the recording has 2"),
        ("film.gif", {"decisions": range(3, 9)}, "decisions 4 to 9 are not there: the episode has 6"),
        ("film.gif", {"decisions": range(0)}, "not there"),
        ("film.gif", {"width": 20}, "320 to 3840 pixels wide"),
        ("film.gif", {"speed": 0.0}, "from 0.01 to 100"),
    ],
)
def test_what_cannot_be_filmed_is_told(name, arguments, words, tmp_path):
    with pytest.raises(UsageError, match=words):
        write_film(ROAD, tmp_path / name, **arguments)


def test_a_film_that_would_never_end_and_another_ending(tmp_path):
    with pytest.raises(UsageError, match="too long"):
        write_film(made(per_second=0.001), tmp_path / "film.gif")
    with pytest.raises(UsageError, match=r"ends in \.png"):
        write_picture(ROAD, tmp_path / "one.jpg")


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UsageError, match=r"pip install \"sentinel-rl\[film\]\""):
        write_film(ROAD, tmp_path / "film.mp4")


def test_a_huge_image_in_a_recording_is_not_unpacked():
    recording = made("frames")
    content = io.BytesIO()
    Image.new("RGB", (3000, 3000)).save(content, "WEBP")
    arrays = {
        **recording.arrays,
        "image_at": np.zeros(1, np.int32),
        "image_ends": np.array([len(content.getvalue())], np.int32),
        "images": np.frombuffer(content.getvalue(), np.uint8),
    }
    with pytest.raises(CorruptError, match="3000 x 3000"):
        list(film.frames(Recording(recording.about, arrays)))


def test_text_that_does_not_fit_ends_in_an_ellipsis():
    made_of = [Paint(200, 30) for _ in range(2)]
    made_of[0].text(0, 15, "a long text that does not fit into its room", 12, room=80)
    made_of[1].text(0, 15, "a", 12, room=80)
    widths = [np.argwhere((np.asarray(one.picture()) < 100).all(-1))[:, 1].max() for one in made_of]
    assert widths[1] < 20 < widths[0] <= 80


@pytest.mark.clients
def test_an_mp4_is_read_back(tmp_path):
    """By ffmpeg itself: 15 frames a second, all of them, with the colours that were drawn."""
    import imageio_ffmpeg

    path = write_film(ROAD, tmp_path / "road.mp4", 0, range(2), 402)
    read = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(read, capture_output=True, check=True)
    wanted = [np.asarray(picture) for picture in film.frames(ROAD, 0, range(2), 402)]
    found = np.frombuffer(done.stdout, np.uint8).reshape(-1, *wanted[0].shape)
    assert b"15 fps" in done.stderr
    assert len(found) == len(wanted)
    for one, other in zip(found[::9], wanted[::9], strict=True):
        assert np.abs(one.astype(float) - other).mean() < 6
