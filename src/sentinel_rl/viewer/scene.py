"""A scene: one moment of an environment in a small file, with what a good driver would do or avoid there.

A scene of the highway holds the whole state, so that it can be driven on from; one of another environment holds the
observation. Nothing in a file is believed: it is measured before it is read, and every entry is checked.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sentinel_rl.envs.highway import Highway, HighwayState
from sentinel_rl.envs.highway.env import PRESETS
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.storage.arrays import reading
from sentinel_rl.storage.atomic import make_folder, write_file
from sentinel_rl.storage.validation import LONGEST_NAME, entries, from_file, names, number, require, text, whole

VERSION = 1
ENDING = ".scene.json"
LARGEST_FILE = 256 * 1024
MOST_NUMBERS = 5000
ROADS = tuple(f"sentinel/{preset}" for preset in PRESETS)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
# What the numbers of a vehicle may be: type, and range.
_FIELDS: Mapping[str, tuple[str, float, float]] = {
    "x": ("float32", -1e6, 1e6),
    "y": ("float32", -1e3, 1e3),
    "heading": ("float32", -10.0, 10.0),
    "speed": ("float32", -100.0, 100.0),
    "target_lane": ("int32", 0, 49),
    "target_speed": ("float32", -100.0, 100.0),
    "delta": ("float32", 0.0, 100.0),
    "wait": ("int32", -(10**6), 10**6),
    "crashed": ("bool", 0, 1),
    "hit": ("bool", 0, 1),
    "push_x": ("float32", -100.0, 100.0),
    "push_y": ("float32", -100.0, 100.0),
}


@dataclasses.dataclass(frozen=True)
class Scene:
    """A moment, and what is good and bad there.

    Args:
        name: small letters, digits and hyphens; also the name of its file.
        about: what there is to see, in a sentence.
        env: the name of the environment.
        actions: the names of its actions.
        do: the actions that a good driver would choose; any that is not to be avoided, when empty.
        avoid: the actions that he would not choose.
        state: of a highway; None in another environment.
        obs: the observation, flat, where there is no state.
    """

    name: str
    about: str
    env: str
    actions: tuple[str, ...]
    do: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    state: HighwayState | None = None
    obs: Float[np.ndarray, " obs"] | None = None

    def __post_init__(self) -> None:
        _check(self)

    def passes(self, action: int) -> bool:
        """Whether an action, counted from 0, is what a good driver would do."""
        chosen = self.actions[action]
        return chosen not in self.avoid and (not self.do or chosen in self.do)

    @property
    def wanted(self) -> str:
        """What passes, in words.

        Example:
            >>> Scene("a", "", "E", ("L", "R", "S"), avoid=("L", "R"), obs=np.zeros(1, np.float32)).wanted
            'S'
        """
        allowed = [name for name in self.do or self.actions if name not in self.avoid]
        if self.do or len(allowed) < len(self.avoid):
            return " or ".join(allowed)
        return f"not {', '.join(self.avoid)}"


def save_scene(scene: Scene, path: str | Path) -> Path:
    """Write a scene as JSON; into a folder under its name.

    Raises:
        StorageError: when it could not be written.
    """
    target = Path(path)
    if target.is_dir() or not target.suffix:
        target = target / f"{scene.name}{ENDING}"
    make_folder(target.parent)
    return write_file(target, scene_text(scene))


def scene_text(scene: Scene) -> str:
    """The content of the file of a scene."""
    content = {"scene": VERSION, **dataclasses.asdict(scene)}
    content["state"] = None if scene.state is None else _plain(scene.state)
    content["obs"] = None if scene.obs is None else scene.obs.tolist()
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def load_scene(path: str | Path) -> Scene:
    """Read what `save_scene` wrote.

    Raises:
        UsageError: when there is no such file.
        CorruptError: for a damaged, forged or foreign file.
        IncompatibleError: for a scene of another version.
    """
    where = str(path)
    if not Path(path).is_file():
        raise UsageError(f"there is no scene {path}: give a file that save_scene wrote")
    with reading(Path(path)) as file:
        content = file.read(LARGEST_FILE + 1)
    with from_file(where, "scene"):
        require(len(content) <= LARGEST_FILE, "its size", len(content), f"at most {LARGEST_FILE} bytes")
        given = _parsed(content)
        fields = {field.name for field in dataclasses.fields(Scene)}
        entries("a scene", given, {"scene", *fields})
        missing = fields - set(given)
        require(not missing and "scene" in given, "entries", sorted(missing), "those of a scene")
        version = given.pop("scene")
        whole("scene", version, 1, 10**6)
        if version == VERSION:
            return _read(given)
    raise IncompatibleError(f"{where} is a scene of version {version}, and this library reads {VERSION}")


def load_scenes(path: str | Path | None = None) -> list[Scene]:
    """The scenes of a folder, or of one file; the ten highway scenes that come with the library when None.

    Raises:
        UsageError: when there are none, or two of one name.
    """
    if path is None:
        folder = files("sentinel_rl.viewer") / "scenes"
        return [load_scene(str(file)) for file in sorted(map(str, folder.iterdir())) if file.endswith(ENDING)]
    where = Path(path)
    found = [where] if where.is_file() else sorted(where.glob(f"*{ENDING}"))
    if not found:
        raise UsageError(f"{path} holds no scenes: give a folder of files that end in {ENDING}")
    scenes = [load_scene(file) for file in found]
    twice = {scene.name for scene in scenes if [other.name for other in scenes].count(scene.name) > 1}
    if twice:
        raise UsageError(f"{path} has two scenes of the name {sorted(twice)[0]}: rename one of them")
    return scenes


def road_of(name: str) -> Highway:
    """The highway of a name. A name out of a file chooses one of the library's own roads and nothing else.

    Raises:
        UsageError: for another environment.
    """
    if name not in ROADS:
        raise UsageError(f"{name} is not one of the highways with a name: {', '.join(ROADS)}")
    return Highway.preset(name.removeprefix("sentinel/"))


def _plain(state: HighwayState) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in state._asdict().items()}


def _read(given: dict[str, Any]) -> Scene:
    for name in ("actions", "do", "avoid"):
        names(name, given[name])
        given[name] = tuple(given[name])
    if given["state"] is not None:
        given["state"] = _read_state(given["state"])
    if given["obs"] is not None:
        given["obs"] = _numbers("obs", given["obs"], "float32", -1e30, 1e30)
    return Scene(**given)


def _read_state(given: Any) -> HighwayState:
    entries("state", given, {*_FIELDS, "time"})
    require(set(given) == {*_FIELDS, "time"}, "state", sorted(given), "all fields of a highway")
    whole("time", given["time"], 0, 10**6)
    arrays: dict[str, Any] = {name: _numbers(name, given[name], *bounds) for name, bounds in _FIELDS.items()}
    return HighwayState(**arrays, time=cast(Any, np.int32(given["time"])))


def _numbers(name: str, values: Any, dtype: str, low: float, high: float) -> np.ndarray:
    require(isinstance(values, list) and 1 <= len(values) <= MOST_NUMBERS, name, values, "a list of numbers")
    for value in values:
        if dtype == "bool":
            require(isinstance(value, bool), name, value, "true or false")
        elif dtype == "int32":
            whole(name, value, int(low), int(high))
        else:
            number(name, value, low, high)
    return np.array(values, dtype)


def _check(scene: Scene) -> None:
    """Raise `ValueError` unless all entries have their types, and fit each other."""
    text("name", scene.name, LONGEST_NAME)
    require(_NAME.fullmatch(scene.name) is not None, "name", scene.name, "small letters, digits and hyphens")
    text("about", scene.about)
    text("env", scene.env, LONGEST_NAME)
    names("actions", scene.actions, at_least=1)
    for role in ("do", "avoid"):
        chosen = getattr(scene, role)
        names(role, chosen)
        require(set(chosen) <= set(scene.actions), role, chosen, f"some of {', '.join(scene.actions)}")
    require(bool(scene.do or scene.avoid), "do and avoid", "nothing", "given, at least one of them")
    good = set(scene.do or scene.actions) - set(scene.avoid)
    require(bool(good), "avoid", scene.avoid, "such that something is left to do")
    require((scene.state is None) != (scene.obs is None), "state", scene.state, "given, or else obs")
    if scene.state is not None:
        sizes = {len(getattr(scene.state, name)) for name in _FIELDS}
        require(len(sizes) == 1, "state", sizes, "of one number of vehicles")


def state_of(scene: Scene) -> HighwayState:
    """The state of a scene, ready to be driven on from.

    Raises:
        UsageError: for a scene without one, or with other vehicles or lanes than its road has.
    """
    if scene.state is None:
        raise UsageError(f"the scene {scene.name} has no state: it is not one of a highway")
    env = road_of(scene.env)
    vehicles = len(scene.state.x)
    lanes = int(np.max(scene.state.target_lane)) + 1
    if vehicles != env.vehicles_count + 1 or lanes > env.lanes_count:
        raise UsageError(f"the scene {scene.name} has {vehicles} vehicles on {lanes} lanes, and {scene.env} has others")
    state: HighwayState = jax.tree.map(jnp.asarray, scene.state)
    return state


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested deeper than any scene") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    require(len(found) == len(pairs), "entries", [name for name, _ in pairs][:5], "given once")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
