"""A cell from its first step to its record: against the steps of its runs, and against episodes played one by one."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped, UsageError
from sentinel_rl.study import Cell, Evaluation, run_cell
from sentinel_rl.study import run as study_run
from sentinel_rl.study.provenance import revision
from sentinel_rl.training import population_evaluation
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.evaluation import evaluate_run
from sentinel_rl.training.population import Fleet
from sentinel_rl.training.segments import chunked
from sentinel_rl.training.signals import Stopper
from tests.study.grids import CELL, computed, same_arrays, with_options


@functools.cache
def trained():
    """The same runs by the compiled loop alone: their final states, and the trace of all steps ``[runs, steps]``."""
    env = CELL.make_env()
    plan = CELL.make_plan(CELL.make_agent(env))
    fleet = Fleet(env, plan, jax.local_devices()[:1])
    states, traces = [], []
    for seed in CELL.seeds:
        ((parts, rows),) = chunked(plan, 0, 2_000)
        ((group, trace, _),) = fleet.advance(fleet.start([CELL.make_agent(env)], [seed]), parts, rows)
        states.append(jax.tree.map(lambda leaf: leaf[0], group.runs.agent))
        traces.append([np.asarray(field)[0, : plan.steps] for field in trace])
    return states, [np.stack(field) for field in zip(*traces, strict=True)]


def test_a_record_tells_what_happened_in_training():
    record, (_, (reward, terminated, truncated, _)) = computed(), trained()
    for run in range(2):
        ends = np.flatnonzero(terminated[run] | truncated[run]) + 1
        lengths = np.diff(ends, prepend=0)
        assert record.arrays["episodes"][run] == len(ends) > 0
        assert record.arrays["terminations"][run] == terminated[run].sum()
        fallen = np.cumsum(terminated[run])
        np.testing.assert_array_equal(record.arrays["terminations_curve"][run], fallen[[19, 39, 59, 79, 99, 119]])
        assert reward[run].min() == reward[run].max() == 1
        assert record.arrays["train_return_mean"][run] == pytest.approx(np.mean(lengths))
        # Every step pays 1: the discounted return of n steps is known.
        assert record.arrays["train_discounted_mean"][run] == pytest.approx(np.mean((1 - 0.99**lengths) / 0.01))
    assert list(record.arrays["steps"]) == [20, 40, 60, 80, 100, 120]
    loss = record.arrays["metric/loss"]
    assert np.isnan(loss[:, 0]).all()  # the warm-up
    assert np.isfinite(loss[:, 1:]).all()


def test_a_record_tells_what_the_frozen_policies_do():
    record, (states, _) = computed(), trained()
    env = CELL.make_env()
    for run, (seed, state) in enumerate(zip(CELL.seeds, states, strict=True)):
        alone = evaluate_run(CELL.make_agent(env), state, resolve_env(env), 3, 9, seed, env.spec.gamma)
        for name in ("reward", "discounted", "length", "terminated"):
            told = record.arrays[f"eval/frozen/{name}"][run]
            np.testing.assert_allclose(told, getattr(alone, name), rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(record.arrays["eval/frozen/actions"].sum(axis=1), 1.0)
    for name in ("additive", "neutral"):
        choices = record.arrays[f"choices/{name}"]
        np.testing.assert_array_equal(choices, record.arrays[f"eval/frozen/differs_{name}"])
        assert ((choices >= 0) & (choices <= 1)).all()


def test_an_evaluation_in_slices_is_the_whole(monkeypatch):
    """Of three episodes two go side by side, and the one that fills up the second slice counts nowhere."""
    cell = dataclasses.replace(CELL, agent="random", options={})
    whole = run_cell(cell).arrays
    monkeypatch.setattr(population_evaluation, "_SIDE_BY_SIDE", {"cpu": 2})
    for name, values in run_cell(cell).arrays.items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-6, err_msg=name)


def test_a_cell_is_a_function_of_its_values():
    assert same_arrays(run_cell(CELL), computed())
    assert not same_arrays(run_cell(with_options(lam=3.0)), computed())


def test_a_run_does_not_depend_on_its_neighbours():
    alone = run_cell(dataclasses.replace(CELL, seeds=(5,)))
    for name, values in alone.arrays.items():
        if name != "steps":
            np.testing.assert_array_equal(values[0], computed().arrays[name][1], err_msg=name)
    assert not np.array_equal(*computed().arrays["metric/loss"][:, 1:]), "the runs of a cell are not one and the same"


def test_a_record_says_where_it_comes_from():
    about = computed().about
    assert {"training", "evaluating", "compiling", "wall"} == about["seconds"].keys()
    assert about["seconds"]["wall"] >= about["seconds"]["training"] > 0
    assert about["versions"]["jax"] == jax.__version__
    assert about["failures"] == {}
    assert {"device", "machine", "revision", "finished"} <= about.keys()


def test_the_revision_of_a_copy_can_be_told(monkeypatch, tmp_path):
    assert revision(tmp_path / "nobody_knows.py") is None
    monkeypatch.setenv("SENTINEL_REVISION", "v1.2")
    assert revision(tmp_path / "told.py") == "v1.2"


def test_baselines_tell_what_they_know():
    cell = Cell("random", "CartPole-v0", 60, (0, 1), points=3, evaluations=(Evaluation("frozen", 2),))
    told = run_cell(cell).arrays
    assert not any(name.startswith(("metric/", "choices/")) for name in told)
    assert told["eval/frozen/reward"].shape == (2, 2)
    assert (told["episodes"] > 0).all()
    assert (told["eval/frozen/actions"] > 0).all(), "a random policy takes every action"


def test_a_cell_is_computed_on_all_cores(monkeypatch):
    """Called alone too: before anything touches JAX, which would then have one core for good."""
    order = []

    def far_enough(self):
        order.append("environment")
        raise InterruptedError

    monkeypatch.setattr(study_run, "use_all_cores", lambda: order.append("cores"))
    monkeypatch.setattr(Cell, "make_env", far_enough)
    with pytest.raises(InterruptedError):
        run_cell(CELL)
    assert order == ["cores", "environment"]


def test_a_stop_is_honoured_between_chunks():
    stopper, seen = Stopper(active=True), []

    def report(t):
        seen.append(t)
        stopper.requested = True

    with pytest.raises(Stopped, match=r"stopped after 20 of 120 steps$"):
        run_cell(CELL, report, stopper)
    assert seen == [20]


def test_a_run_that_fails_alone_is_nan(monkeypatch):
    def fail_one(self, *args):
        self.failures[1] = "loss nan at step 40"

    whole = computed()  # before the patch: it is kept for all tests
    monkeypatch.setattr(Training, "_notice_failures", fail_one)
    record = run_cell(CELL)
    assert record.failures == {5: "loss nan at step 40"}
    for name, values in record.arrays.items():
        if name != "steps":
            assert np.isnan(values[1]).all(), name
            assert values[0].tobytes() == whole.arrays[name][0].tobytes(), name


@pytest.mark.filterwarnings("ignore:.*this run has failed")
def test_a_cell_in_which_all_fail_is_an_error():
    with pytest.raises(NumericalError, match="loss"):
        run_cell(with_options(learning_rate=1e15, hidden=(4, 4, 4)))


def test_no_update_is_worth_a_warning():
    with pytest.warns(SentinelWarning, match="0 updates are made in 120 steps with a warm-up of 1000"):
        record = run_cell(with_options(warmup=1_000))
    assert np.isnan(record.arrays["metric/loss"]).all()
    assert np.isfinite(computed().arrays["metric/loss"][:, 1:]).all()


def test_frozen_policies_act_with_other_measures_and_keep_what_is_asked_for():
    """The risk-neutral choice of the same networks is always theirs when they act with the mean."""
    own = {"epistemic": "cvar:0.25", "aleatory": "cvar:0.25"}
    evaluations = (
        Evaluation("usual", 3, seed=9),
        Evaluation("own", 3, seed=9, acting=own),
        Evaluation("neutral", 3, seed=9, acting={"epistemic": "cvar:1", "aleatory": "cvar:1"}),
        Evaluation("short", 3, seed=9, keeps=("reward", "terminated")),
    )
    cell = with_options(dataclasses.replace(CELL, evaluations=evaluations), **own)
    assert cell == Cell.from_json(cell.to_json())
    asked = []

    def examine(cells, trainings):
        asked.append((cells, [training.t for training in trainings]))
        return [{"look/steps": np.full(len(one.seeds), one.steps)} for one in cells]

    arrays = study_run.run_cells([cell], examine=examine)[0].arrays
    for name in ("reward", "actions", "differs_neutral", "epistemic"):
        np.testing.assert_array_equal(arrays[f"eval/usual/{name}"], arrays[f"eval/own/{name}"])
    assert arrays["eval/neutral/differs_neutral"].tolist() == [0.0, 0.0]
    assert arrays["eval/neutral/epistemic"].tolist() == pytest.approx([0.0, 0.0], abs=1e-5)
    assert {name for name in arrays if name.startswith("eval/short/")} == {"eval/short/reward", "eval/short/terminated"}
    np.testing.assert_array_equal(arrays["eval/short/reward"], arrays["eval/usual/reward"])
    assert asked == [([cell], [120])]
    assert arrays["look/steps"].tolist() == [120.0, 120.0]


def test_what_cannot_act_or_be_kept_is_refused():
    changed = dataclasses.replace(CELL, evaluations=(Evaluation("wang", 3, acting={"aleatory": "wang:0.5"}),))
    with pytest.raises(UsageError, match="may change their numbers only"):
        run_cell(changed)
    with pytest.raises(UsageError, match="must keep reward"):
        Evaluation("short", 3, keeps=("length",))
    ids = {dataclasses.replace(CELL, evaluations=(one,)).id for one in _DIFFERENT}
    assert len(ids) == len(_DIFFERENT)


_DIFFERENT = (
    Evaluation("frozen", 3),
    Evaluation("frozen", 3, acting={"aleatory": "cvar:0.5"}),
    Evaluation("frozen", 3, keeps=("reward",)),
)
