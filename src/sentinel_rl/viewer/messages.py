"""What a page may ask of the live view: every message is one of these, with these entries, in these ranges."""

import json
from typing import Any, NamedTuple

from sentinel_rl.storage.validation import entries, number, require, text, whole
from sentinel_rl.viewer.drive import MOST_DECISIONS, MOST_LINES, Edit

LARGEST_MESSAGE = 4096
MOST_AT_ONCE = 10
_MOST_VEHICLES = 1000


class Hello(NamedTuple):
    """Begin, or go on with the session of a name."""

    session: str | None


class Go(NamedTuple):
    """Drive on, by so many decisions."""

    line: int
    decisions: int


class Branch(NamedTuple):
    """Take another action at a decision."""

    line: int
    at: int
    action: int


class Change(NamedTuple):
    """Change the traffic before a decision."""

    line: int
    at: int
    edit: Edit


class Capture(NamedTuple):
    """Make a scene of the moment before a decision."""

    line: int
    at: int
    name: str


Message = Hello | Go | Branch | Change | Capture


def read_message(content: str | bytes) -> Message:
    """Read a message.

    Raises:
        ValueError: for anything else than a message of ours.
    """
    require(len(content) <= LARGEST_MESSAGE, "a message", len(content), f"at most {LARGEST_MESSAGE} letters long")
    try:
        given = json.loads(content, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("a message is nested deeper than any of ours") from None
    require(isinstance(given, dict), "a message", type(given).__name__, "an object")
    kind = given.pop("do", None)
    require(isinstance(kind, str) and kind in _READERS, "do", kind, f"one of {', '.join(_READERS)}")
    message: Message = _READERS[kind](given)
    return message


def _hello(given: dict[str, Any]) -> Hello:
    _exactly(given, "session")
    if given["session"] is not None:
        text("session", given["session"], 64)
    return Hello(given["session"])


def _go(given: dict[str, Any]) -> Go:
    _exactly(given, "line", "count")
    _line(given)
    whole("count", given["count"], 1, MOST_AT_ONCE)
    return Go(given["line"], given["count"])


def _branch(given: dict[str, Any]) -> Branch:
    _exactly(given, "line", "at", "action")
    _moment(given)
    whole("action", given["action"], 0, 1000)
    return Branch(**given)


def _edit(given: dict[str, Any]) -> Change:
    entries("an edit", given, {"line", "at", "vehicle", "x", "y", "speed", "freeze", "wreck"})
    require({"line", "at", "vehicle"} <= set(given), "an edit", sorted(given), "of a line, at a decision, of a vehicle")
    _moment(given)
    whole("vehicle", given["vehicle"], 0, _MOST_VEHICLES)
    for name, low, high in (("x", -1e6, 1e6), ("y", -100.0, 1000.0), ("speed", 0.0, 40.0)):
        if given.get(name) is not None:
            number(name, given[name], low, high)
            given[name] = float(given[name])
    for name in ("freeze", "wreck"):
        require(isinstance(given.get(name, False), bool), name, given.get(name), "true or false")
    line, at = given.pop("line"), given.pop("at")
    return Change(line, at, Edit(**given))


def _capture(given: dict[str, Any]) -> Capture:
    _exactly(given, "line", "at", "name")
    _moment(given)
    text("name", given["name"], 60)
    return Capture(**given)


_READERS: dict[str, Any] = {"hello": _hello, "drive": _go, "branch": _branch, "edit": _edit, "capture": _capture}


def _exactly(given: dict[str, Any], *wanted: str) -> None:
    require(set(given) == set(wanted), "entries", sorted(given)[:8], ", ".join(wanted))


def _line(given: dict[str, Any]) -> None:
    whole("line", given["line"], 0, MOST_LINES - 1)


def _moment(given: dict[str, Any]) -> None:
    _line(given)
    whole("at", given["at"], 0, MOST_DECISIONS - 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    require(len(found) == len(pairs), "entries", [name for name, _ in pairs][:5], "given once")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
