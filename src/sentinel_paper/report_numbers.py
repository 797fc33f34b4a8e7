"""The CSV files of a results folder as the report reads them: small, inside of the folder, every cell checked."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from sentinel_rl.errors import CorruptError
from sentinel_rl.storage.validation import LONGEST_NAME, from_file, require, text

# Bytes and rows of a file; the largest of the experiments have a tenth of it.
_LARGEST_FILE, _MOST_ROWS = 2**24, 200_000
# Crashes, falls, returns and steps do not come near.
_LARGEST_NUMBER = 1e12


def read_numbers(
    folder: Path, name: str, texts: Sequence[str], numbers: Sequence[str], optional: Sequence[str] = ()
) -> list[dict[str, str]]:
    """The rows of a file, or none where there is no such file.

    Args:
        folder: that the file must lie in, links followed.
        name: of the file, relative to the folder.
        texts: columns that hold short texts.
        numbers: columns that hold finite numbers.
        optional: columns of short texts that earlier versions did not write.

    Raises:
        CorruptError: for a file that cannot be read, lacks a column or has another value in it.
    """
    path = folder / name
    if not path.is_file():
        return []
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CorruptError(f"{path} is a link to a file elsewhere: put the file there")
    try:
        with from_file(str(path), "table"):
            return list(_checked(path, texts, numbers, optional))
    except (OSError, csv.Error) as error:
        raise CorruptError(f"{path} cannot be read ({error}): run its experiment again") from error


def _checked(
    path: Path, texts: Sequence[str], numbers: Sequence[str], optional: Sequence[str]
) -> Iterator[dict[str, str]]:
    size = path.stat().st_size
    require(size <= _LARGEST_FILE, "its size", size, f"at most {_LARGEST_FILE} bytes")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = {*texts, *numbers} - set(reader.fieldnames or ())
        require(not missing, "its columns", reader.fieldnames, f"with {', '.join(sorted(missing))}")
        for place, row in enumerate(reader):
            require(place < _MOST_ROWS, "its rows", place, f"at most {_MOST_ROWS}")
            for column in (*texts, *(one for one in optional if one in row)):
                text(column, row[column], LONGEST_NAME)
            for column in numbers:
                value = float(row[column])
                fine = math.isfinite(value) and abs(value) <= _LARGEST_NUMBER
                require(fine, column, row[column], "a finite number")
            yield row
