"""A cell that was stopped or killed goes on from its own checkpoint, to the same record."""

import dataclasses
import shutil
import signal

import pytest

from sentinel_rl.errors import Stopped
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.study import Store, run_cell, run_grid
from sentinel_rl.study.run import run_cells
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.signals import Stopper
from tests.study.grids import CELL, computed, same_arrays, with_options

OTHER = with_options(lam=3.0)


class Killed(BaseException):
    """Nobody catches it: what is not on the disk by then is lost."""


def killed_at(step, heard=None):
    def report(t):
        if heard is not None:
            heard.append(t)
        if t == step:
            raise Killed

    return report


def steps_of(folder):
    return [place.step for place in saved(folder)]


@pytest.fixture
def after_every_chunk(monkeypatch):
    """A checkpoint, however long it takes."""
    monkeypatch.setattr(Keeper, "due", lambda self, t: t > self.saved_at)


@pytest.mark.usefixtures("after_every_chunk")
def test_a_killed_cell_goes_on_from_its_newest_checkpoint(tmp_path):
    with pytest.raises(Killed):
        run_cell(CELL, killed_at(60), checkpoints=tmp_path)
    assert steps_of(tmp_path / CELL.id) == [20, 40], "the two newest; the process died before that of step 60"
    heard = []
    record = run_cell(CELL, heard.append, checkpoints=tmp_path)
    assert heard == [40, 60, 80, 100, 120], "nothing is computed twice"
    assert same_arrays(record, computed())


def test_checkpoints_are_taken_when_their_time_has_come(tmp_path):
    for seconds, wanted in ((0, 20), (60, None)):
        folder, heard = tmp_path / str(seconds), []
        with pytest.raises(Killed):
            run_cell(CELL, killed_at(60), checkpoints=folder, save_seconds=seconds)
        steps = steps_of(folder / CELL.id)
        assert next(iter(steps), None) == wanted
        record = run_cell(CELL, heard.append, checkpoints=folder, save_seconds=seconds)
        assert heard[0] == (steps or [20])[-1]
        assert same_arrays(record, computed())


@pytest.mark.usefixtures("after_every_chunk")
def test_a_cell_is_killed_again_and_again(tmp_path):
    for step in (40, 60, 100):
        with pytest.raises(Killed):
            run_cell(CELL, killed_at(step), checkpoints=tmp_path)
    assert same_arrays(run_cell(CELL, checkpoints=tmp_path), computed())


def test_a_stop_saves_whatever_the_time(tmp_path):
    stopper = Stopper(active=True)

    def report(t):
        stopper.requested = t == 60

    with pytest.raises(Stopped, match="stopped after 60 of 120 steps, and saved"):
        run_cell(CELL, report, stopper, tmp_path)
    assert steps_of(tmp_path / CELL.id) == [60]
    assert same_arrays(run_cell(CELL, checkpoints=tmp_path), computed())


def test_a_stop_before_an_evaluation_costs_no_training(tmp_path):
    stopper = Stopper(active=True)

    def report(t):
        stopper.requested = t == 120

    with pytest.raises(Stopped, match="stopped before the evaluation 'frozen'"):
        run_cell(CELL, report, stopper, tmp_path)
    heard = []
    assert same_arrays(run_cell(CELL, heard.append, checkpoints=tmp_path), computed())
    assert heard == [120]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Killed):
        run_cell(CELL, killed_at(60), save_seconds=0)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.usefixtures("after_every_chunk")
def test_cells_of_a_batch_go_on_from_a_step_that_all_have(tmp_path):
    """A kill may come between the checkpoints of two cells."""
    with pytest.raises(Killed):
        run_cells([CELL, OTHER], killed_at(80), checkpoints=tmp_path)
    assert steps_of(tmp_path / CELL.id) == steps_of(tmp_path / OTHER.id) == [40, 60]
    shutil.rmtree(saved(tmp_path / OTHER.id)[-1].folder)
    heard = []
    records = run_cells([CELL, OTHER], heard.append, checkpoints=tmp_path)
    assert heard[0] == 40
    assert [record.cell for record in records] == [CELL, OTHER]
    assert same_arrays(records[0], computed())
    assert same_arrays(records[1], run_cell(OTHER))


def test_a_grid_that_is_stopped_goes_on_in_the_middle_of_a_cell(tmp_path):
    store = Store(tmp_path)

    def interrupt(progress):
        if progress.t == 60:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        run_grid([CELL], store, report=interrupt)
    assert steps_of(store.checkpoints / CELL.id) == [60]
    assert store.status([CELL]).missing == [CELL]
    heard = []
    (record,) = run_grid([CELL], store, report=lambda progress: heard.append(progress.t))
    assert heard[0] == 60
    assert same_arrays(record, computed())
    assert list(store.checkpoints.iterdir()) == [], "the record has all that is needed"


@pytest.mark.usefixtures("after_every_chunk")
def test_a_grid_that_is_killed_goes_on_in_the_middle_of_a_cell(tmp_path):
    store = Store(tmp_path)

    def interrupt(progress):
        if progress.cell == OTHER and progress.t == 60:
            raise Killed

    with pytest.raises(Killed):
        run_grid([CELL, OTHER], store, report=interrupt)
    assert [entry.name for entry in store.checkpoints.iterdir()] == [OTHER.id]
    heard = []
    records = run_grid([CELL, OTHER], store, report=lambda progress: heard.append((progress.cell, progress.t)))
    assert heard[0] == (OTHER, 40)
    assert same_arrays(records[0], computed())
    assert same_arrays(records[1], run_cell(OTHER))
    assert list(store.checkpoints.iterdir()) == []


@pytest.mark.usefixtures("after_every_chunk")
def test_a_checkpoint_of_other_options_is_not_taken(tmp_path):
    """Folders are named after the cell's id: another cell has another one."""
    with pytest.raises(Killed):
        run_cell(CELL, killed_at(60), checkpoints=tmp_path)
    heard = []
    run_cell(dataclasses.replace(CELL, points=3), heard.append, checkpoints=tmp_path)
    assert heard[0] == 20
