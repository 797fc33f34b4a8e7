"""``sentinel watch``: record what a trained agent does and why, and write a page, a film or a picture of it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.cli.runs import read_run
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.console import results
from sentinel_rl.envs.handle import EnvHandle, require_sizes, resolve_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.errors import UsageError
from sentinel_rl.viewer import (
    Recording,
    Scene,
    capture,
    record,
    save_recording,
    save_scene,
    write_film,
    write_page,
    write_picture,
)
from sentinel_rl.viewer.drive import Drive, Driver
from sentinel_rl.viewer.live import require_server, serve
from sentinel_rl.viewer.scene import ENDING, ROADS
from sentinel_rl.viewer.trial import state_at


class Files(NamedTuple):
    """What is to be written."""

    html: Path | None
    gif: Path | None
    mp4: Path | None
    png: Path | None
    save: Path | None
    capture: Path | None = None
    do: str | None = None
    avoid: str | None = None

    @property
    def need_episodes(self) -> bool:
        """Whether more than the first episode is of use."""
        return self.html is not None or self.save is not None


_ENDINGS = {"capture": (ENDING,), "html": (".html", ".htm"), "gif": (".gif",), "mp4": (".mp4",), "png": (".png",)}


def run(
    path: Path,
    files: Files,
    decisions: str | None,
    width: int,
    speed: float | None,
    episodes: int,
    seed: int,
    first: int,
    seed_index: int,
    on: str | None,
    trust: bool = False,
) -> None:
    """Play episodes and write what is asked for; print where it is."""
    for name, endings in _ENDINGS.items():
        file: Path | None = getattr(files, name)
        if file is not None and not file.name.lower().endswith(endings):
            raise UsageError(f"--{name} {file}: give a file that ends in {endings[0]}")
    if files.capture is None and (files.do or files.avoid):
        raise UsageError("--do and --avoid are of a scene: give --capture FILE as well")
    part = None if decisions is None else parse_decisions(decisions)
    run = read_run(path, trust)
    agent = run.policy(seed_index, on)
    # By its name an environment is made again so that it can be drawn; its settings and wrappers have no name.
    named = on or (None if agent.handle.settings or agent.handle.wrappers else run.env)
    count = episodes if files.need_episodes else 1
    recording = record(agent, named or agent.handle, count, seed, first=first)
    console = results()
    console.print(_summary(recording), markup=False, soft_wrap=True)
    for name, written in _write(recording, files, part, width, speed).items():
        console.print(f"{name}: {written}", markup=False, soft_wrap=True)
    if files.capture is not None:
        scene = _captured(recording, files, part, first)
        written = save_scene(scene, files.capture)
        console.print(f"scene: {written}\na good driver: {scene.wanted}", markup=False, soft_wrap=True)


def run_live(
    path: Path,
    beside: Sequence[str],
    seed: int,
    first: int,
    seed_index: int,
    on: str | None,
    port: int,
    open_browser: bool,
    trust: bool = False,
) -> None:
    """Serve the live view of an agent, with others beside it, until Ctrl-C."""
    require_server()
    use_compilation_cache()
    run = read_run(path, trust)
    agent = run.policy(seed_index, on)
    handle = resolve_env(on or run.env)
    if not isinstance(handle.env, Highway):
        raise UsageError(f"{handle.spec.name} cannot be driven live, only a highway in JAX: write a page, --html FILE")
    drivers = [Driver(_short(path), agent.agent, agent.state), *(_driver(name, handle) for name in beside)]
    console = results()
    console.print("compiling, once: a minute at most", markup=False)
    serve(
        lambda: Drive(drivers, handle, seed, first),
        port,
        open_browser,
        lambda address: console.print(f"watch it decide: {address}\nCtrl-C ends it", markup=False, soft_wrap=True),
    )


def _driver(name: str, handle: EnvHandle) -> Driver:
    """Another driver: one that needs no training, a run or a policy."""
    if name in fixed_names() and not Path(name).exists():
        agent = make_agent(name, handle)
        return Driver(name, agent, agent.init(handle.spec, jax.random.key(0)))
    learner = read_run(Path(name)).policies()[0]
    require_sizes(handle.spec, learner.spec, name)
    return Driver(_short(Path(name)), learner.agent, learner.state)


def _short(path: Path) -> str:
    return path.stem or str(path)


def _write(recording: Recording, files: Files, part: range | None, width: int, speed: float | None) -> dict[str, Path]:
    """Write the files, and tell where they are."""
    written = {}
    if files.save is not None:
        written["recording"] = save_recording(recording, files.save)
    if files.html is not None:
        written["page"] = write_page(recording, files.html)
    for film in (files.gif, files.mp4):
        if film is not None:
            written[f"film ({film.suffix[1:].lower()})"] = write_film(recording, film, 0, part, width, speed)
    if files.png is not None:
        decision = part.start if part is not None else 0
        written["picture"] = write_picture(recording, files.png, 0, decision, width)
    return written


def _captured(recording: Recording, files: Files, part: range | None, first: int) -> Scene:
    """The moment before a decision of the first episode, as a scene."""
    if part is None or len(part) != 1 or part.start >= int(recording.arrays["lengths"][0]):
        length = int(recording.arrays["lengths"][0])
        raise UsageError(f"--capture needs one decision of the episode: --decisions 1 to {length}")
    t, name = part.start, scene_name(str(files.capture))
    env = resolve_env(recording.about.env).env
    about = f"Decision {t + 1} of episode {first}, seed {recording.about.seed}."
    do, avoid = (None if given is None else tuple(given.split(",")) for given in (files.do, files.avoid))
    if isinstance(env, Highway) and env.spec.name in ROADS:
        state = state_at(env, recording, first, t)
        return capture(state, env, name, about, do, avoid)
    if do is None and avoid is None:
        raise UsageError(f"{recording.about.env} has no search that tells what is good: give --do or --avoid")
    seen = recording.arrays["obs"][t]
    return Scene(name, about, recording.about.env, recording.about.actions, do or (), avoid or (), obs=seen)


def scene_name(path: str) -> str:
    """The name of a scene out of that of its file.

    Example:
        >>> scene_name("scenes/Gap on the left.scene.json")
        'gap-on-the-left'
    """
    stem = Path(path).name.lower().removesuffix(ENDING)
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:60] or "scene"


def parse_decisions(text: str) -> range:
    """Read decisions, counted from 1: one, or the first and the last.

    Example:
        >>> parse_decisions("4-18"), parse_decisions("7")
        (range(3, 18), range(6, 7))
    """
    found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2] or found[1]):
        raise UsageError(f"--decisions {text}: give the first and the last one, counted from 1, for example 4-18")
    return range(int(found[1]) - 1, int(found[2] or found[1]))


def _summary(recording: Recording) -> str:
    """How many episodes, and how they ended."""
    ended = int(recording.arrays["terminated"].sum())
    lengths = recording.arrays["lengths"]
    return (
        f"{recording.about.agent} in {recording.about.env}: {recording.episodes} "
        f"{'episode' if recording.episodes == 1 else 'episodes'} of {lengths.min()} to "
        f"{lengths.max()} decisions, {ended} of which ended before their time limit"
    )
