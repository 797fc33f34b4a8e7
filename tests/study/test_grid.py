import dataclasses
import signal
import threading

import pytest

from sentinel_rl.errors import PartialFailure, SentinelWarning, Stopped, StorageError, UsageError
from sentinel_rl.study import Store, grid, run_grid
from sentinel_rl.study.grid import parse_shard, part_of
from tests.study.grids import CELL, computed, same_arrays, with_options

OTHER = with_options(lam=3.0)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


@pytest.fixture
def counted(monkeypatch):
    """Which cells are computed."""
    begun = []

    def counting(cells, report, stopper, checkpoints):
        begun.extend(cells)
        report(20)
        return [dataclasses.replace(computed(), cell=cell) for cell in cells]

    monkeypatch.setattr(grid, "run_cells", counting)
    return begun


def test_a_grid_computes_its_cells_and_no_more(store):
    told = []
    records = run_grid([CELL, OTHER, dataclasses.replace(CELL, label="again")], store, report=told.append)
    assert [record.cell.id for record in records] == [CELL.id, OTHER.id]
    assert same_arrays(records[0], computed())
    assert same_arrays(store.get(CELL), computed())
    assert [(progress.finished, progress.t) for progress in told] == [
        *[(0, t) for t in range(20, 121, 20)],
        (1, 120),
        *[(1, t) for t in range(20, 121, 20)],
        (2, 120),
    ]
    assert told[-1].seconds_left == 0
    assert str(told[2]).startswith("cell 1 of 2 (")


def test_what_is_finished_is_not_computed_again(store, counted):
    store.put(computed())
    run_grid([CELL, OTHER], store)
    assert counted == [OTHER]
    run_grid([CELL, OTHER], store)
    assert counted == [OTHER]


def test_what_is_damaged_is_computed_again(store, counted):
    path = store.put(computed())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(SentinelWarning, match="counts as missing"):
        records = run_grid([CELL], store)
    assert counted == [CELL]
    assert same_arrays(records[0], computed())


def test_a_cell_that_fails_does_not_stop_the_others(store):
    wrong = with_options(mask_rate=7.0)
    with pytest.raises(PartialFailure, match="1 of 2 cells have failed") as caught:
        run_grid([wrong, CELL], store)
    assert "mask_rate must be in" in str(caught.value)
    assert caught.value.exit_code == 5
    status = store.status([wrong, CELL])
    assert status.finished == [CELL]
    assert "mask_rate" in status.failed[wrong.id]


def test_a_signal_stops_and_the_same_call_goes_on(store, monkeypatch):
    def interrupt(progress):
        if progress.cell == OTHER and progress.t == 60:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped) as caught:
        run_grid([CELL, OTHER], store, report=interrupt)
    assert caught.value.exit_code == 75
    assert store.status([CELL, OTHER]).missing == [OTHER]
    begun = []
    run_grid([CELL, OTHER], store, report=lambda progress: begun.append(progress.cell))
    assert CELL not in begun
    straight = Store(store.folder.parent / "straight")
    assert same_arrays(run_grid([OTHER], straight)[0], store.get(OTHER))


def test_a_stop_between_cells_is_honoured(store, counted):
    def interrupt(progress):
        if progress.finished == 1:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped, match="after 1 of 2 cells"):
        run_grid([CELL, OTHER], store, report=interrupt)
    assert counted == [CELL]


def test_a_full_disk_stops_the_grid(store, counted, monkeypatch):
    def full(record):
        raise StorageError("no room")

    monkeypatch.setattr(store, "put", full)
    with pytest.raises(StorageError):
        run_grid([CELL, OTHER], store)
    assert counted == [CELL]


def test_two_drivers_share_a_folder(store, counted):
    def meanwhile(progress):
        if OTHER not in store:
            store.put(dataclasses.replace(computed(), cell=OTHER))

    assert len(run_grid([CELL, OTHER], store, report=meanwhile)) == 2
    assert counted == [CELL]


def test_a_grid_runs_in_a_thread(store, counted):
    thread = threading.Thread(target=run_grid, args=([CELL], store))
    thread.start()
    thread.join()
    assert CELL in store


def test_shards_are_a_partition():
    cells = [dataclasses.replace(CELL, steps=steps) for steps in range(1, 12)]
    parts = [part_of(cells, (number, 4)) for number in range(1, 5)]
    assert sorted(cell.steps for part in parts for cell in part) == list(range(1, 12))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shards_fill_a_grid_together(store, counted):
    first = run_grid([CELL, OTHER], store, shard=(1, 2))
    assert [record.cell for record in first] == [CELL]
    run_grid([CELL, OTHER], store, shard=(2, 2))
    run_grid([CELL, OTHER], store)
    assert counted == [CELL, OTHER]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "-1/2"])
def test_shards_that_cannot_be_are_refused(text):
    with pytest.raises(UsageError, match="shard"):
        parse_shard(text)


@pytest.mark.parametrize(("engine", "address", "told"), [("slurm", None, "local or ray"), ("local", "auto", "ray")])
def test_engines_that_cannot_be_are_refused(store, engine, address, told):
    with pytest.raises(UsageError, match=told):
        run_grid([CELL], store, engine, address)
