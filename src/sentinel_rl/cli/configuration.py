"""``--config``: what to train, from a file of the user's own or from the folder of a run."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sentinel_rl._checks import shown
from sentinel_rl.agents.options import require_known
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import restored
from sentinel_rl.storage.run_folder import CONFIG, FORMAT, LARGEST_TEXT
from sentinel_rl.storage.validation import from_file, require
from sentinel_rl.training.run_notes import check_request

# What a file may say, with an example of its type.
KEYS: Mapping[str, Any] = {
    "env": "",
    "env_kwargs": {},
    "wrappers": [],
    "agent": "",
    "steps": 0,
    "seeds": [],
    "options": {},
}


class Configuration(NamedTuple):
    """What a file asks for.

    Args:
        content: by the names of `KEYS`.
        foreign: whether it is that of a run folder, which may be somebody else's.
    """

    content: dict[str, Any]
    foreign: bool


def read_configuration(path: Path) -> Configuration:
    """Read a JSON or TOML file, or the configuration of a run by its folder or its file.

    Raises:
        UsageError: for a file that is none, or says what is not known.
        CorruptError: for the file of a run that says what no training has.
    """
    file = path / CONFIG if path.is_dir() else path
    try:
        if file.stat().st_size > LARGEST_TEXT:
            raise ValueError(f"{file.stat().st_size} bytes, at most {LARGEST_TEXT} are read")
        text = file.read_text()
        content = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise UsageError(
            f"--config {path}: {error.strerror}: give a JSON or TOML file, or the folder of a run"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--config {path}: not readable as {file.suffix[1:].upper() or 'JSON'}: {error}") from error
    foreign = isinstance(content, dict) and content.get("format") == FORMAT
    if foreign:
        content = _noted(content.get("about"), file)
    if not isinstance(content, dict):
        raise UsageError(f"--config {path}: expected an object with {', '.join(KEYS)}")
    require_known(content, KEYS)
    for name, value in content.items():
        example = KEYS[name]
        seeds = name == "seeds" and isinstance(value, int)
        if not (isinstance(value, type(example)) or seeds) or isinstance(value, bool):
            raise UsageError(f"--config {path}: {name} must be {_told(example)}, got {shown(value)}")
    for wrapper in content.get("wrappers", []):
        if not isinstance(wrapper, str):
            raise UsageError(f"--config {path}: wrappers must be texts, MODULE:NAME, got {shown(wrapper)}")
    options = {"options": restored(content["options"])} if "options" in content else {}
    return Configuration({**content, **options}, foreign)


def _noted(about: Any, file: Path) -> dict[str, Any] | None:
    """What the folder of a run has noted, checked; None where it has noted nothing.

    Raises:
        CorruptError: for an entry that no training has.
    """
    if about is None:
        return None
    with from_file(str(file), "run"):
        require(isinstance(about, dict), "about", about, "a dictionary")
        check_request(about)
    return {name: about[name] for name in KEYS if about.get(name) is not None}


def _told(example: Any) -> str:
    names = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}
    return names[type(example)]
