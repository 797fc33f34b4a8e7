"""A saved recalibration map: part of the JSON file that `sentinel calibrate` writes."""

import json
from pathlib import Path
from typing import Any

from sentinel_rl.agents.recalibration import Recalibration
from sentinel_rl.calibration.calibrate import Calibration
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.storage.validation import from_file, number, require

# Bytes and levels at most: a forged file cannot ask for more.
_LARGEST_FILE, _MOST_LEVELS = 10_000_000, 10_000


def save_calibration(calibration: Calibration, path: str | Path) -> Path:
    """Write all numbers and the map as one JSON file.

    Raises:
        StorageError: when it could not be written.
    """
    return write_file(Path(path), calibration.to_json())


def load_recalibration(path: str | Path) -> Recalibration:
    """Read the map out of a file that `save_calibration` or ``sentinel calibrate`` wrote.

    Raises:
        UsageError: when there is no such file.
        CorruptError: for a file that holds no map.
    """
    where = Path(path)
    if not where.is_file():
        raise UsageError(f"{where} does not exist: make it with `sentinel calibrate RUN`")
    if where.stat().st_size > _LARGEST_FILE:
        raise CorruptError(f"{where} has more than {_LARGEST_FILE} bytes: it was not written by sentinel calibrate")
    with from_file(str(where), "calibration"):
        content = json.loads(where.read_text(encoding="utf-8"))
        require(isinstance(content, dict) and "recalibration" in content, "the file", "another", "a calibration")
        given = content["recalibration"]
        predicted, seen = (_levels(name, given[name]) for name in ("predicted", "seen"))
        for name in ("shift", "widen"):
            number(name, given[name])
    try:
        return Recalibration(predicted, seen, float(given["shift"]), float(given["widen"]))
    except UsageError as error:
        raise CorruptError(f"{where} is no calibration of sentinel-rl, or was edited: {error}") from error


def _levels(name: str, given: Any) -> list[float]:
    require(isinstance(given, list) and len(given) <= _MOST_LEVELS, name, given, "a list of levels")
    for level in given:
        number(name, level, 0.0, 1.0)
    return [float(level) for level in given]
