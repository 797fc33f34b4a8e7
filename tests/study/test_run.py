import dataclasses

import jax
import numpy as np
import pytest

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped
from sentinel_rl.study import Cell, Evaluation, run_cell
from sentinel_rl.study.provenance import revision
from sentinel_rl.training.evaluation import evaluate
from sentinel_rl.training.loop import Training, train
from sentinel_rl.training.signals import Stopper
from tests.study.grids import CELL, computed, same_arrays, with_options


def trained():
    """The same cell by the runners alone."""
    env = CELL.make_env()
    agent = CELL.make_agent(env)
    training = Training([agent] * 2, env, CELL.make_plan(agent), CELL.seeds)
    train(training)
    return agent, env, training


def test_a_record_tells_what_happened_in_training():
    record, (agent, _, training) = computed(), trained()
    for run, log in enumerate(training.logs):
        assert record.arrays["episodes"][run] == len(log.episodes) > 0
        assert record.arrays["terminations"][run] == log.terminations
        assert record.arrays["terminations_curve"][run, -1] == log.terminations
        assert record.arrays["train_return_mean"][run] == pytest.approx(np.mean([e.reward for e in log.episodes]))
        # Every step pays 1: the discounted return of n steps is known.
        sums = [(1 - 0.99**e.length) / (1 - 0.99) for e in log.episodes]
        assert record.arrays["train_discounted_mean"][run] == pytest.approx(np.mean(sums))
    assert list(record.arrays["steps"]) == [20, 40, 60, 80, 100, 120]
    loss = record.arrays["metric/loss"]
    assert np.isnan(loss[:, 0]).all()  # the warm-up
    assert np.isfinite(loss[:, 1:]).all()
    assert isinstance(agent, SentinelAgent)


def test_a_record_tells_what_the_frozen_policies_do():
    record, (agent, env, training) = computed(), trained()
    for run, (seed, state) in enumerate(zip(CELL.seeds, training.agent_states(), strict=True)):
        key = jax.random.fold_in(jax.random.key(9), seed)
        alone = evaluate_with_key(agent, state, env, 3, key)
        for name in ("reward", "discounted", "length", "terminated"):
            told = record.arrays[f"eval/frozen/{name}"][run]
            np.testing.assert_allclose(told, getattr(alone, name), rtol=1e-5, err_msg=name)
    shares = record.arrays["eval/frozen/actions"]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for name in ("additive", "neutral"):
        assert ((record.arrays[f"choices/{name}"] >= 0) & (record.arrays[f"choices/{name}"] <= 1)).all()


def evaluate_with_key(agent, state, env, episodes, key):
    """`evaluate`, with a key instead of its seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "key", lambda seed: key)
        return evaluate(agent, state, env, episodes)


def test_a_cell_is_a_function_of_its_values():
    assert same_arrays(run_cell(CELL), computed())
    assert not same_arrays(run_cell(with_options(lam=3.0)), computed())


def test_a_run_does_not_depend_on_its_neighbours():
    alone = run_cell(dataclasses.replace(CELL, seeds=(5,)))
    for name, values in alone.arrays.items():
        if name != "steps":
            np.testing.assert_array_equal(values[0], computed().arrays[name][1], err_msg=name)


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


def test_a_stop_is_honoured_between_chunks():
    stopper, seen = Stopper(active=True), []

    def report(t):
        seen.append(t)
        stopper.requested = True

    with pytest.raises(Stopped, match="begun anew"):
        run_cell(CELL, report, stopper)
    assert seen == [20]


def test_a_run_that_fails_alone_is_nan(monkeypatch):
    def fail_one(self, *args):
        self.failures[1] = "loss nan at step 40"

    monkeypatch.setattr(Training, "_notice_failures", fail_one)
    record = run_cell(CELL)
    assert record.failures == {5: "loss nan at step 40"}
    for name, values in record.arrays.items():
        if name != "steps":
            assert np.isnan(values[1]).all(), name
            assert values[0].tobytes() == computed().arrays[name][0].tobytes()


@pytest.mark.filterwarnings("ignore:.*this run has failed")
def test_a_cell_in_which_all_fail_is_an_error():
    with pytest.raises(NumericalError, match="loss"):
        run_cell(with_options(learning_rate=1e30))


def test_no_update_is_worth_a_warning(monkeypatch):
    monkeypatch.delattr("sentinel_rl.study.run.Training")  # far enough
    with pytest.warns(SentinelWarning, match="0 updates"), pytest.raises(NameError):
        run_cell(with_options(warmup=1_000))
