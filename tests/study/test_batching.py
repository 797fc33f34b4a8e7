"""Batches of cells: on an accelerator one program trains them all, and every one is what it is alone."""

import dataclasses

import numpy as np
import pytest

from sentinel_rl.study import Cell, Evaluation, Record, Store, batching, grid, run, run_grid
from sentinel_rl.study.batching import Precompiler, batches, grouped
from sentinel_rl.study.run import run_cells
from sentinel_rl.training.compiled import Training, chunks_together
from sentinel_rl.training.population import Fleet
from sentinel_rl.training.population_evaluation import evaluate_population, lower_evaluation
from tests.learners import OPTIONS
from tests.study.grids import CELL, PLAN, computed, same_arrays, with_options

UADQN = dataclasses.replace(CELL, agent="uadqn", options={**OPTIONS["uadqn"], **PLAN})
RANDOM = dataclasses.replace(CELL, agent="random", options={}, seeds=(5, 3, 1))
LAM = with_options(dataclasses.replace(CELL, seeds=(8,)), lam=3.0)
BATCH = [CELL, UADQN, LAM, RANDOM]


@pytest.fixture
def as_on_an_accelerator(monkeypatch):
    """All runs of a cell in one group, all groups in one call."""
    monkeypatch.setattr(Fleet, "group_size", lambda self, runs: runs)
    monkeypatch.setattr(Fleet, "calls", lambda self, groups: [list(groups)])


def alone(cell: Cell) -> Record:
    return run_cells([cell])[0] if cell != CELL else computed()


def near(one: Record, other: Record) -> None:
    """The same numbers up to what the order of additions changes in a few updates."""
    assert one.arrays.keys() == other.arrays.keys()
    for name, values in one.arrays.items():
        np.testing.assert_allclose(values, other.arrays[name], rtol=2e-3, atol=2e-3, err_msg=name)


def test_every_cell_is_what_it_is_alone(as_on_an_accelerator, monkeypatch):
    calls = []
    at_once = Fleet.advance_at_once
    monkeypatch.setattr(Fleet, "advance_at_once", lambda self, *args: calls.append(1) or at_once(self, *args))
    heard = []
    records = run_cells(BATCH, heard.append)
    assert [record.cell for record in records] == BATCH
    assert len(calls) == len(heard) == 6, "one call a chunk"
    assert all(record.about["batch"] == [cell.name for cell in BATCH] for record in records)
    monkeypatch.undo()
    for record in records:
        near(record, alone(record.cell))


def test_a_batch_shares_environment_plan_and_evaluations():
    other_plan = with_options(learn_every=40)
    other_world = dataclasses.replace(CELL, env_settings={"max_steps": 30})
    longer = dataclasses.replace(CELL, steps=140)
    coarser = dataclasses.replace(CELL, points=3)
    unseen = dataclasses.replace(CELL, evaluations=())
    impossible = with_options(mask_rate=7.0)
    cells = [RANDOM, CELL, other_plan, other_world, longer, coarser, unseen, impossible, UADQN, LAM]
    single = (other_plan, other_world, longer, coarser, unseen, impossible)
    found = {frozenset(cell.id for cell in batch) for batch in grouped(cells)}
    assert found == {
        frozenset(cell.id for cell in batch) for batch in ([RANDOM, CELL, UADQN, LAM], *([cell] for cell in single))
    }
    assert batches(cells) == [[cell] for cell in cells], "a run fills a core of a CPU"


def test_those_who_learn_nothing_are_a_batch_too():
    again = dataclasses.replace(RANDOM, options={"action": 1})
    assert grouped([RANDOM, again]) == [[RANDOM, again]]


def test_a_grid_stores_the_cells_of_a_batch(as_on_an_accelerator, monkeypatch, tmp_path):
    monkeypatch.setattr(grid, "batches", grouped)
    told = []
    records = run_grid(BATCH, Store(tmp_path), report=told.append)
    assert [record.cell for record in records] == BATCH
    assert str(told[0]).startswith("0 of 4 cells done (")
    assert "and 3 more at once): step 20 of 120" in str(told[0])
    assert (told[0].seconds_left, told[-1].seconds_left) == (None, 0)
    assert told[-1].finished == 4


def test_cells_are_computed_apart_where_their_seconds_count(monkeypatch, tmp_path):
    monkeypatch.setattr(grid, "batches", grouped)
    begun = []

    def computing(cells, report, stopper, checkpoints):
        begun.append(cells)
        return [dataclasses.replace(computed(), cell=cell) for cell in cells]

    monkeypatch.setattr(grid, "run_cells", computing)
    run_grid([CELL, LAM], Store(tmp_path / "apart"), apart=True)
    run_grid([CELL, LAM], Store(tmp_path / "together"))
    assert begun == [[CELL], [LAM], [CELL, LAM]]
    assert computed().about["batch"] == [CELL.name]


def test_who_fails_does_not_take_its_batch_along(as_on_an_accelerator, monkeypatch, tmp_path):
    monkeypatch.setattr(grid, "batches", grouped)
    begun = []

    def failing(cells, report, stopper, checkpoints):
        begun.append(cells)
        if LAM in cells:
            raise RuntimeError("no memory left")
        return [dataclasses.replace(computed(), cell=cell) for cell in cells]

    monkeypatch.setattr(grid, "run_cells", failing)
    store = Store(tmp_path)
    with pytest.raises(Exception, match="1 of 3 cells have failed") as caught:
        run_grid([CELL, LAM, UADQN], store)
    assert "no memory left" in str(caught.value)
    assert begun == [[CELL, LAM, UADQN], [CELL], [LAM], [UADQN]]
    assert store.get(CELL) is not None
    assert store.get(UADQN) is not None


def test_trainings_that_differ_do_not_go_together():
    env = CELL.make_env()
    one, other = (
        Training([cell.make_agent(env)], env, cell.make_plan(cell.make_agent(env)), [0])
        for cell in (CELL, with_options(learn_every=40))
    )
    with pytest.raises(ValueError, match="same environment, plan"):
        next(chunks_together([one, other]))


def test_what_is_compiled_in_advance_is_what_is_called(as_on_an_accelerator, monkeypatch):
    """The programs are the same to the letter, so that the cache finds them; and the results are the same bits."""
    foreseen, called = {}, {"training": [], "evaluating": []}
    begin, at_once = Precompiler.begin, Fleet.advance_at_once

    def foreseeing(self, purpose, programs):
        programs = list(programs)
        foreseen.setdefault(purpose, []).extend(program.as_text() for program in programs)
        begin(self, purpose, programs)

    def advancing(self, *args):
        called["training"] += [program.as_text() for program in self.lower(*args)]
        return at_once(self, *args)

    def evaluating(trainings, *args):
        trained = [(each.groups, each.seeds) for each in trainings]
        called["evaluating"] += [program.as_text() for program in lower_evaluation(trainings[0].fleet, trained, *args)]
        return evaluate_population(trainings, *args)

    monkeypatch.setattr(Precompiler, "begin", foreseeing)
    monkeypatch.setattr(Fleet, "advance_at_once", advancing)
    monkeypatch.setattr(run, "evaluate_population", evaluating)
    without = run_cells(BATCH)
    assert not foreseen, "a CPU compiles nothing in advance"
    monkeypatch.setattr(batching, "_worthwhile", lambda fleet: True)
    records = run_cells(BATCH)
    for purpose, texts in called.items():
        assert set(texts) == set(foreseen[purpose]), purpose
    assert len(foreseen["reporting"]) == 3, "those of a policy that learns nothing are not compiled"
    assert all(same_arrays(*pair) for pair in zip(records, without, strict=True))


def test_evaluations_that_differ_in_numbers_are_one_program(as_on_an_accelerator, monkeypatch):
    """Acting with other measures, or in a world with other numbers: what is compiled in advance serves them all."""
    begun = []
    monkeypatch.setattr(batching, "_worthwhile", lambda fleet: True)
    monkeypatch.setattr(Precompiler, "begin", lambda self, purpose, programs: begun.append((purpose, len(programs))))
    several = tuple(
        Evaluation(f"level {alpha}", 3, acting={"aleatory": f"cvar:{alpha}", "epistemic": f"cvar:{alpha}"})
        for alpha in (1, 0.5, 0.1)
    )
    cell = with_options(dataclasses.replace(CELL, evaluations=several), aleatory="cvar:0.3", epistemic="cvar:0.3")
    env = cell.make_env()
    agents = [cell.make_agent(env)]
    batching.precompile([cell], agents, env, batching.plan_of([cell], agents), 20).close()
    assert begun == [("training", 1), ("evaluating", 1), ("reporting", 1)]
