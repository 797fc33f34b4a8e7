"""``sentinel risk``: the risk of the columns of a CSV file."""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.table import Table

from sentinel_rl.console import printable, results
from sentinel_rl.risk import BeliefMeasure, RiskMeasure, parse_risk


def run(text: str, file: Path) -> None:
    """Print the risk of every column, or the composite risk of all columns as models."""
    measure = parse_risk(text)
    names, samples = _read(file)
    if isinstance(measure, RiskMeasure):
        results().print(_per_column(measure, names, samples))
    else:
        results().print(_of_models(measure, names, samples))


def _per_column(measure: RiskMeasure, names: list[str], samples: np.ndarray) -> Table:
    table = _table(f"{measure} of {len(samples)} samples per column", "column", "mean", str(measure))
    for name, mean, value in zip(names, samples.mean(axis=0), measure.of(samples, axis=0), strict=True):
        table.add_row(name, f"{mean:.6g}", f"{value:.6g}")
    return table


def _of_models(measure: BeliefMeasure, names: list[str], samples: np.ndarray) -> Table:
    title = f"{len(names)} equally likely models, {len(samples)} samples of each"
    table = _table(title, "models", "mean", str(measure))
    table.add_row(", ".join(names), f"{samples.mean():.6g}", f"{measure.of(samples.T):.6g}")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _read(file: Path) -> tuple[list[str], np.ndarray]:
    """Read the header and the numbers ``[samples, columns]``."""
    if str(file) == "-":
        return _parse("standard input", sys.stdin)
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return _parse(str(file), lines)


def _parse(where: str, lines: Iterable[str]) -> tuple[list[str], np.ndarray]:
    reader = csv.reader(lines)
    rows = [(f"{where}, line {reader.line_num}", row) for row in reader if row]
    if len(rows) < 2:
        raise ValueError(f"{where} holds no samples: give a header line, then one line of numbers per sample")
    header = rows[0][1]
    numbers = [_numbers(place, header, row) for place, row in rows[1:]]
    return [printable(name.strip()) for name in header], np.array(numbers)


def _numbers(place: str, header: list[str], row: list[str]) -> list[float]:
    if len(row) != len(header):
        raise ValueError(f"{place}: {len(row)} cells under {len(header)} column names")
    try:
        return [float(cell) for cell in row]
    except ValueError as error:
        raise ValueError(f"{place}: {error}. Every cell below the header must be a number") from None
