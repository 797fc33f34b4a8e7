"""Films and pictures of a recording for slides and pages: GIF, MP4 and PNG."""

import contextlib
import io
import itertools
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from sentinel_rl.errors import StorageError, UsageError
from sentinel_rl.storage.atomic import make_folder, write_file
from sentinel_rl.viewer.reasons import reasons_of
from sentinel_rl.viewer.recording import Recording
from sentinel_rl.viewer.stage import Stage
from sentinel_rl.viewer.strip import draw_strip

# Of a film, as the highway's simulation has them; a GIF counts in hundredths of a second, so that its pictures last
# 70, 60 and 70 ms in turn.
FRAMES_PER_SECOND = 15
_LASTING = (70, 60, 70)
# The last picture stays for so many frames.
_STAY = 12
# A film of more pictures is asked for by mistake: 10 minutes.
MOST_FRAMES = 9000
NARROWEST, WIDEST = 320, 3840
_COLOURS = 96
INSTALL = 'pip install "sentinel-rl[film]"'


def write_film(
    recording: Recording,
    path: str | Path,
    episode: int = 0,
    decisions: range | None = None,
    width: int = 800,
    speed: float | None = None,
) -> Path:
    """Write a film of an episode, the decision under the world: a GIF, or an MP4 with the extra `film`.

    A highway is drawn at 15 frames a second, between its decisions as well; other worlds have an image per decision.

    Args:
        recording: of what.
        path: ends in ``.gif`` or ``.mp4``.
        episode: counted from 0.
        decisions: only these of the episode, counted from 0; all when None.
        width: in pixels.
        speed: 1 is as fast as in the world. When None, 1, or slower where more than 15 decisions are made in a second.

    Raises:
        UsageError: for another ending, an episode or a decision that is not there, or where the extra is missing.
        StorageError: when it could not be written.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".gif", ".mp4"):
        raise UsageError(f"{target}: a film ends in .gif or .mp4")
    if kind == ".mp4":
        _ffmpeg()  # before anything is drawn
    pictures = frames(recording, episode, decisions, width, speed)
    make_folder(target.parent)
    return write_file(target, _gif(list(pictures)) if kind == ".gif" else _mp4(pictures))


def write_picture(
    recording: Recording, path: str | Path, episode: int = 0, decision: int = 0, width: int = 800
) -> Path:
    """Write one decision of an episode, counted from 0, as a PNG.

    Raises:
        UsageError: for another ending, or an episode or a decision that is not there.
        StorageError: when it could not be written.
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise UsageError(f"{target}: a picture ends in .png")
    _require(recording, episode, range(decision, decision + 1), width)
    stage = Stage(recording, episode, width)
    content = io.BytesIO()
    _joined(stage.draw(decision, 0.0), draw_strip(reasons_of(recording, stage.start + decision), width)).save(
        content, "PNG", optimize=True
    )
    make_folder(target.parent)
    return write_file(target, content.getvalue())


def frames(
    recording: Recording,
    episode: int = 0,
    decisions: range | None = None,
    width: int = 800,
    speed: float | None = None,
) -> Iterator[Image.Image]:
    """The pictures of a film, all of one size, 15 a second; see `write_film`."""
    length = int(recording.arrays["lengths"][episode]) if 0 <= episode < recording.episodes else 0
    asked = range(length) if decisions is None else decisions
    _require(recording, episode, asked, width)
    per_second = recording.about.per_second
    pace = min(1.0, FRAMES_PER_SECOND / per_second) if speed is None else speed
    if not 0.01 <= pace <= 100:
        raise UsageError(f"a film's speed is from 0.01 to 100, got {speed}")
    count = round(len(asked) / (per_second * pace) * FRAMES_PER_SECOND)
    if count > MOST_FRAMES:
        raise UsageError(f"a film of {count} pictures is too long, at most {MOST_FRAMES}: choose fewer decisions")
    return _drawn(recording, episode, asked, width, max(count, 1))


def _drawn(recording: Recording, episode: int, asked: range, width: int, count: int) -> Iterator[Image.Image]:
    stage = Stage(recording, episode, width)
    drawn: tuple[int, Image.Image] | None = None
    picture = Image.new("RGB", (1, 1))
    for place in np.linspace(asked.start, asked.stop, count + 1):
        t = min(int(place + 1e-9), asked.stop - 1)
        if drawn is None or drawn[0] != t:
            drawn = t, draw_strip(reasons_of(recording, stage.start + t), width)
        picture = _joined(stage.draw(t, float(place) - t), drawn[1])
        yield picture
    for _ in range(_STAY):
        yield picture


def _require(recording: Recording, episode: int, decisions: range, width: int) -> None:
    if not 0 <= episode < recording.episodes:
        raise UsageError(f"episode {episode} is not there: the recording has {recording.episodes}, counted from 0")
    length = int(recording.arrays["lengths"][episode])
    if len(decisions) == 0 or decisions.start < 0 or decisions.stop > length or decisions.step != 1:
        raise UsageError(
            f"decisions {decisions.start + 1} to {decisions.stop} are not there: the episode has {length}, from 1"
        )
    if not NARROWEST <= width <= WIDEST:
        raise UsageError(f"a film is {NARROWEST} to {WIDEST} pixels wide, got {width}")


def _joined(world: Image.Image, strip: Image.Image) -> Image.Image:
    """The world above the decision, with even numbers of pixels, which films need."""
    width, height = world.width // 2 * 2, (world.height + strip.height) // 2 * 2
    made = Image.new("RGB", (width, height))
    made.paste(world, (0, 0))
    made.paste(strip, (0, world.height))
    return made


def _gif(pictures: list[Image.Image]) -> bytes:
    """One palette for all pictures, so that what stays the same is not written again."""
    some = pictures[:: max(1, len(pictures) // 6)]
    joined = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for i, picture in enumerate(some):
        joined.paste(picture, (0, i * picture.height))
    palette = joined.quantize(_COLOURS, dither=Image.Dither.NONE)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    lasting = [_LASTING[i % len(_LASTING)] for i in range(len(pictures))]
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=lasting, loop=0, optimize=False)
    return content.getvalue()


def _mp4(pictures: Iterator[Image.Image]) -> bytes:
    """Let ffmpeg encode the pictures as H.264, which browsers and slides play."""
    first = next(pictures)
    given = f"-f rawvideo -pix_fmt rgb24 -s {first.width}x{first.height} -r {FRAMES_PER_SECOND} -i -"
    made = "-an -c:v libx264 -pix_fmt yuv420p -crf 18 -movflags +faststart"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        command = [_ffmpeg(), "-v", "error", "-y", *given.split(), *made.split(), str(path)]
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints)
            with contextlib.suppress(BrokenPipeError), process:
                for picture in itertools.chain([first], pictures):
                    process.stdin.write(picture.tobytes())  # type: ignore[union-attr]
            if process.returncode != 0:
                complaints.seek(0)
                words = complaints.read().decode(errors="replace").strip()
                raise StorageError(f"ffmpeg could not write the film: {words}")
        return path.read_bytes()


def _ffmpeg() -> str:
    """The program of the extra."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise UsageError(f"an MP4 needs the extra film: {INSTALL}, or write a GIF") from None
    return str(imageio_ffmpeg.get_ffmpeg_exe())
