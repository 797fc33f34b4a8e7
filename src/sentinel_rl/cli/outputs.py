"""What commands that compare policies share: lists of numbers as typed, where files go, and how they are written."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_rl.cli.runs import Run
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import make_folder, write_file


def parse_numbers(option: str, text: str, above: float, most: float) -> list[float]:
    """Read a list of different numbers above one bound and up to another.

    Example:
        >>> parse_numbers("--alphas", "0.1, 1", 0.0, 1.0)
        [0.1, 1.0]
    """
    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or not all(above < number <= most for number in numbers) or len(set(numbers)) < len(numbers):
        raise UsageError(f"{option} {text}: give different numbers above {above:g}, at most {most:g}, with commas")
    return numbers


def folder_of(runs: Sequence[Run | None], out: Path | None) -> Path | None:
    """Where files go: the folder that was given, or that of the only run; nowhere for a policy without a folder."""
    if out is not None:
        return make_folder(out)
    only = runs[0] if len(runs) == 1 else None
    return None if only is None or only.is_file else only.path


def write_rows(stem: Path, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[Path]:
    """Write the rows of a table as ``stem.json``, with what they are about, and as ``stem.csv``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return [
        write_file(stem.with_suffix(".json"), json.dumps({**about, "rows": list(rows)}, indent=1) + "\n"),
        write_file(stem.with_suffix(".csv"), text.getvalue()),
    ]
