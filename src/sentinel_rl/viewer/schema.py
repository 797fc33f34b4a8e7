"""What a recording may hold: names, types, shapes that fit each other, and ranges. Nothing else is read.

A picture of the world is one of three views.

- ``road``: ``cars [F, V, 4]`` (x, y, heading, speed of every vehicle, the agent's first) and ``crashed [F, V]`` after
  every simulation step, the start of an episode included: ``F = T substeps + E``; ``seen [T, R]``, the vehicles in the
  rows of the observation, -1 for none; ``paths [T, A, S, 2]``, where each action would lead the agent's vehicle, and
  ``wrecked [T, A]``, whether that is into a crash.
- ``frames``: WebP images, one after the other in ``images [B]``, image ``i`` ending at ``image_ends [G]``, shown from
  moment ``image_at [G]`` on.
- ``chart``: nothing; the observation is drawn.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from sentinel_rl.errors import CorruptError, IncompatibleError
from sentinel_rl.storage.manifest import Leaf
from sentinel_rl.storage.validation import LONGEST_NAME, LONGEST_TEXT, is_text, names, number, require, text, whole

VERSION = 1

View = Literal["road", "frames", "chart"]
TimeLimit = Literal["terminal", "bootstrap"]
Aggregate = Literal["belief", "scale"]

_ALWAYS = {
    "lengths": ("int32", "E"),
    "obs": ("float32", "T O"),
    "action": ("int32", "T"),
    "reward": ("float32", "T"),
    "terminated": ("bool", "T"),
    "truncated": ("bool", "T"),
    "realised": ("float32", "T"),
    "value": ("float32", "T A"),
    "parts": ("float32", "T P A"),
}
LAWS = {"atoms": ("float32", "n | T K A n"), "probs": ("float32", "T K A n"), "weights": ("float32", "T K A")}
VIEWS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "road": {
        "cars": ("float32", "F V 4"),
        "crashed": ("bool", "F V"),
        "seen": ("int32", "T R"),
        "paths": ("float32", "T A S 2"),
        "wrecked": ("bool", "T A"),
    },
    "frames": {"image_at": ("int32", "G"), "image_ends": ("int32", "G"), "images": ("uint8", "B")},
    "chart": {},
}
# What no list of numbers here has: a forged file cannot ask for more.
_LARGEST_AXIS = 10_000_000
_TOLERANCE = 1e-3


@dataclasses.dataclass(frozen=True)
class About:
    """What a recording says in words and single numbers.

    Args:
        env: the name of the environment.
        agent: the name of the agent.
        objective: what it maximises, as text.
        note: what it cannot tell.
        actions: the names of the actions.
        seed: of the episodes.
        gamma: discount of the agent's returns.
        time_limit: whether the agent's returns end at a time limit or go on behind it.
        per_second: decisions per second of the world's time.
        view: how the world is drawn.
        aleatory: risk measure of each law, as text; None without laws.
        epistemic: risk measure across the members, likewise.
        aggregate: what the weights of the members do, see `sentinel_rl.risk.Composite`.
        parts: the names of the parts of the value.
        lanes: of a road.
        substeps: simulation steps per decision of a road.
    """

    env: str
    agent: str
    objective: str
    note: str
    actions: tuple[str, ...]
    seed: int
    gamma: float
    time_limit: TimeLimit
    per_second: float
    view: View
    aleatory: str | None = None
    epistemic: str | None = None
    aggregate: Aggregate = "belief"
    parts: tuple[str, ...] = ()
    lanes: int | None = None
    substeps: int | None = None


def read_about(about: Mapping[str, Any], where: str) -> About:
    """The words of a recording out of a manifest.

    Raises:
        CorruptError: for what is not a recording.
        IncompatibleError: for one of another version.
    """
    given = dict(about)
    version = given.pop("recording", None)
    if version is None:
        raise CorruptError(f"{where} holds no recording: give a file that save_recording wrote")
    if version != VERSION or isinstance(version, bool):
        raise IncompatibleError(f"{where} is a recording of version {version!r}, and this library reads {VERSION}")
    wanted = {field.name for field in dataclasses.fields(About)}
    if set(given) != wanted:
        raise CorruptError(f"{where} has other entries than a recording: {sorted(set(given) ^ wanted)[:5]}")
    lists = {name: tuple(given[name]) for name in ("actions", "parts") if isinstance(given[name], list)}
    found = About(**given | lists)
    try:
        check_about(found, where)
    except ValueError as error:
        raise CorruptError(f"{where} is no recording of sentinel-rl: {error}. Record it again") from error
    return found


def check_about(about: About, where: str) -> None:
    """Raise `ValueError` unless every entry has its type and range."""
    for name in ("env", "agent", "objective", "note"):
        text(name, getattr(about, name), LONGEST_TEXT)
    for name in ("aleatory", "epistemic"):
        value = getattr(about, name)
        require(value is None or is_text(value, LONGEST_NAME), name, value, "a short text or None")
    require((about.aleatory is None) == (about.epistemic is None), "epistemic", about.epistemic, "given with aleatory")
    names("actions", about.actions, at_least=1)
    names("parts", about.parts, at_least=0)
    whole("seed", about.seed, 0, 2**63 - 1)
    number("gamma", about.gamma, 0.0, 1.0)
    number("per_second", about.per_second, 1e-3, 1e4)
    for name, kind in (("time_limit", TimeLimit), ("view", View), ("aggregate", Aggregate)):
        value = getattr(about, name)
        require(isinstance(value, str) and value in get_args(kind), name, value, f"one of {get_args(kind)}")
    if about.view == "road":
        whole("lanes", about.lanes, 1, 50)
        whole("substeps", about.substeps, 1, 1000)
    else:
        require((about.lanes, about.substeps) == (None, None), "lanes", about.lanes, f"None in the view {about.view}")


def read_form(leaves: Sequence[Leaf], about: About, where: str) -> dict[str, np.ndarray]:
    """Arrays of the described types and shapes, without memory of their own, to load a file into.

    Raises:
        CorruptError: for names, types or shapes that a recording does not have.
    """
    form: dict[str, np.ndarray] = {}
    try:
        for leaf in leaves:
            name = re.fullmatch(r"\['([a-z_]+)'\]", leaf.path)
            require(name is not None and leaf.prng is None, "array", leaf.path, "one of a recording")
            for size in leaf.shape:
                whole(f"the shape of {leaf.path}", size, 0, _LARGEST_AXIS)
            require(leaf.dtype in ("float32", "int32", "bool", "uint8"), leaf.path, leaf.dtype, "of a known type")
            form[name[1] if name else ""] = np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
        _sizes(about, form)
    except (ValueError, TypeError) as error:
        raise CorruptError(f"{where} is no recording of sentinel-rl: {error}. Record it again") from error
    return form


def check_arrays(about: About, arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Raise `ValueError` unless the arrays fit each other, the words and their ranges."""
    sizes = _sizes(about, arrays)
    for name, array in arrays.items():
        if array.dtype == np.float32 and name != "realised":
            require(bool(np.isfinite(array).all()), name, "a number that is not finite", "finite")
    require(not np.isinf(arrays["realised"]).any(), "realised", "infinity", "finite, or NaN where it is not known")
    lengths = arrays["lengths"]
    require(bool((lengths >= 1).all()) and int(lengths.sum(dtype=np.int64)) == sizes["T"], "lengths", lengths, "a sum")
    _within("action", arrays["action"], 0, sizes["A"] - 1)
    ends = np.cumsum(lengths) - 1
    inside = np.delete(arrays["terminated"] | arrays["truncated"], ends)
    require(not inside.any(), "terminated", "an end inside an episode", "false but at ends")
    if "probs" in arrays:
        atoms = arrays["atoms"]
        steps = np.diff(atoms, axis=-1)
        # Quantiles may be equal, a grid that all laws share has no use for that.
        fine = bool((steps > 0).all() if atoms.ndim == 1 else (steps >= 0).all())
        require(fine, "atoms", atoms.reshape(-1)[:3], "ascending")
        for name, axis in (("probs", -1), ("weights", 1)):
            masses = arrays[name]
            sums = masses.sum(axis, dtype=np.float64)
            fine = bool((masses >= 0).all()) and bool((np.abs(sums - 1) < _TOLERANCE).all())
            require(fine, name, "other numbers", "probabilities that sum to 1")
    if about.view == "road":
        _within("seen", arrays["seen"], -1, sizes["V"] - 1)
    if about.view == "frames":
        _check_images(arrays, sizes)


def _check_images(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
    at, ends, images = arrays["image_at"], arrays["image_ends"], arrays["images"]
    _within("image_at", at, 0, sizes["T"] + sizes["E"] - 1)
    require(at.size > 0 and at[0] == 0 and bool((np.diff(at) > 0).all()), "image_at", at[:3], "ascending from 0")
    sizes_of = np.diff(ends.astype(np.int64), prepend=0)
    require(bool((sizes_of >= 12).all()) and int(ends[-1]) == images.size, "image_ends", ends[:3], "ends of images")
    for end, size in zip(ends.tolist(), sizes_of.tolist(), strict=True):
        head = images[end - size : end - size + 12].tobytes()
        require(head[:4] == b"RIFF" and head[8:] == b"WEBP", "images", head, "WebP images")


def _sizes(about: About, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The sizes of the axes by their letters, which must be the same in all arrays."""
    fields = dict(_ALWAYS) | (LAWS if about.aleatory is not None else {}) | dict(VIEWS[about.view])
    require(set(arrays) == set(fields), "arrays", sorted(set(arrays) ^ set(fields))[:5], "those of its view")
    sizes = {"A": len(about.actions), "P": len(about.parts), "4": 4, "2": 2}
    for name, (dtype, axes) in fields.items():
        array = arrays[name]
        forms = [form.split() for form in axes.split("|")]
        letters = next((form for form in forms if len(form) == array.ndim), forms[0])
        require(array.dtype.name == dtype, name, array.dtype.name, dtype)
        require(array.ndim == len(letters), name, f"shape {array.shape}", f"[{axes}]")
        for letter, size in zip(letters, array.shape, strict=True):
            expected = sizes.setdefault(letter, size)
            require(size == expected, name, f"shape {array.shape}", f"[{axes}] with {letter} = {expected}")
    require(sizes["E"] >= 1 and sizes["T"] >= 1, "lengths", sizes["E"], "at least one decision")
    for letter in ("K", "n", "V", "S", "O"):
        require(sizes.get(letter, 1) >= 1, f"axis {letter}", 0, "at least 1")
    if about.view == "road":
        frames = sizes["T"] * int(about.substeps or 0) + sizes["E"]
        require(sizes["F"] == frames, "cars", sizes["F"], f"{frames} rows: substeps times decisions, and the starts")
    return sizes


def _within(name: str, array: np.ndarray, low: int, high: int) -> None:
    require(bool(((array >= low) & (array <= high)).all()), name, "a number beyond", f"from {low} to {high}")
