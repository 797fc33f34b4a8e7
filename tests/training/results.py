"""When two results, and the folders of two runs, are the same."""

import csv
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sentinel_rl.training.result import Result
from tests.training.pole import bit_equal


def assert_same_result(one: Result, other: Result) -> None:
    """Two results hold the same numbers, but for the times."""
    assert (one.seeds, one.steps, one.failures) == (other.seeds, other.steps, other.failures)
    for name in ("curves", "totals", "diagnostics"):
        found, expected = getattr(one, name), getattr(other, name)
        assert list(found) == list(expected)
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key], values, err_msg=f"{name} {key}")
    for column in one.table._fields:
        if column != "time":
            np.testing.assert_array_equal(getattr(one.table, column), getattr(other.table, column), err_msg=column)
    for found, expected in ((one.episodes, other.episodes), (one.evaluations, other.evaluations)):
        assert jax.tree.all(jax.tree.map(np.array_equal, found, expected))
    assert [(best.step, best.score) for best in one.best] == [(best.step, best.score) for best in other.best]
    assert bit_equal([best.policy for best in one.best], [best.policy for best in other.best])
    assert bit_equal(one.agent_states, other.agent_states)


def assert_same_folder(one: Path, other: Path) -> None:
    """Two folders hold the same files, but for the times in those of the episodes and for the checkpoints."""
    names = [sorted(path.name for path in folder.iterdir() if path.is_file()) for folder in (one, other)]
    assert names[0] == names[1]
    for name in names[0]:
        if name.endswith("monitor.csv"):
            assert _episodes(one / name) == _episodes(other / name)
        else:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


def _episodes(path: Path) -> list[dict[str, Any]]:
    rows = list(csv.DictReader(path.read_text().splitlines()[1:]))
    return [{name: value for name, value in row.items() if name != "t"} for row in rows]
