import dataclasses
import sys

import numpy as np
import pytest

from sentinel_rl.errors import UsageError
from sentinel_rl.study import Store, run_cell, run_grid
from sentinel_rl.study.record import join, split
from tests.study.grids import CELL, computed, same_arrays


def test_parts_joined_are_the_whole():
    parts = split(CELL, 1)
    assert [part.seeds for part in parts] == [(3,), (5,)]
    records = {part.id: run_cell(part) for part in reversed(parts)}
    whole = join(CELL, parts, records, {})
    assert whole.cell == CELL
    assert same_arrays(whole, computed())
    seconds = [record.about["seconds"]["training"] for record in records.values()]
    assert whole.about["seconds"]["training"] == pytest.approx(sum(seconds))
    assert whole.about["parts"] == 2


def test_a_part_that_fails_is_nan_in_the_whole():
    parts = split(CELL, 1)
    alone = dataclasses.replace(computed(), cell=parts[0])
    alone = dataclasses.replace(
        alone, arrays={name: values if name == "steps" else values[:1] for name, values in alone.arrays.items()}
    )
    whole = join(CELL, parts, {parts[0].id: alone}, {parts[1].id: "loss nan at step 40"})
    assert whole.failures == {5: "loss nan at step 40"}
    for name, values in whole.arrays.items():
        if name != "steps":
            assert values.shape == computed().arrays[name].shape
            assert np.isnan(values[1]).all()
            assert values[0].tobytes() == computed().arrays[name][0].tobytes()


def test_without_ray_the_install_line_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r'pip install "sentinel-rl\[ray\]"'):
        run_grid([CELL], Store(tmp_path), "ray")
