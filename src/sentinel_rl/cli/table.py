"""``sentinel risk``: the risk of the columns of a CSV file."""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from sentinel_rl.cli.console import results
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
        table.add_row(escape(name), f"{mean:.6g}", f"{value:.6g}")
    return table


def _of_models(measure: BeliefMeasure, names: list[str], samples: np.ndarray) -> Table:
    title = f"{len(names)} equally likely models, {len(samples)} samples of each"
    table = _table(title, "models", "mean", str(measure))
    table.add_row(escape(", ".join(names)), f"{samples.mean():.6g}", f"{measure.of(samples.T):.6g}")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for place, column in enumerate(columns):
        table.add_column(escape(column), justify="right" if place else "left")
    return table


def _read(file: Path) -> tuple[list[str], np.ndarray]:
    """Read the header and the numbers ``[samples, columns]``."""
    if str(file) == "-":
        return _parse("standard input", sys.stdin)
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return _parse(str(file), lines)


def _parse(where: str, lines: Iterable[str]) -> tuple[list[str], np.ndarray]:
    header, *rows = [row for row in csv.reader(lines) if row] or [[]]
    if not header or not rows:
        raise ValueError(f"{where} holds no samples: give a header line, then one line of numbers per sample")
    numbers = [_numbers(where, header, line, row) for line, row in enumerate(rows, start=2)]
    return [name.strip() for name in header], np.array(numbers)


def _numbers(where: str, header: list[str], line: int, row: list[str]) -> list[float]:
    if len(row) != len(header):
        raise ValueError(f"{where}, line {line}: {len(row)} cells under {len(header)} column names")
    try:
        return [float(cell) for cell in row]
    except ValueError as error:
        raise ValueError(f"{where}, line {line}: {error}. Every cell below the header must be a number") from None
