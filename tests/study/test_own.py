"""Cells of an agent and an environment of the user's own, by name and as instances."""

import dataclasses
import json

import numpy as np
import pytest

from sentinel_rl.agents import registry
from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.study import Cell, Evaluation, Store, run_cell, run_grid
from sentinel_rl.training.schedule import PLAN_OPTIONS
from tests.own import AGENT, ENV, Bandit, Coins, registered
from tests.study.grids import PLAN, same_arrays

NAMED = {"agent": AGENT, "env": ENV, "steps": 60, "seeds": (0, 1), "evaluations": (Evaluation("frozen", 2),)}
INSTANCE = Cell(**{**NAMED, "agent": Bandit(), "env": Coins()}, options=PLAN)


@pytest.fixture
def named():
    with registered():
        yield Cell(**NAMED, options=PLAN)


@pytest.fixture(scope="module")
def computed():
    return run_cell(INSTANCE)


def test_an_instance_is_computed(computed):
    np.testing.assert_array_equal(computed.arrays["episodes"], [15, 15])
    np.testing.assert_array_equal(computed.arrays["eval/frozen/reward"], np.full((2, 2), 4.0))
    assert np.isfinite(computed.arrays["metric/loss"][:, -1]).all()
    assert INSTANCE.name == f"Bandit on {ENV}, 2 runs of 60 steps"


def test_a_name_stands_for_the_same_cell(named, computed):
    assert named.id == INSTANCE.id
    assert same_arrays(run_cell(named), computed)
    assert Cell.from_json(json.loads(json.dumps(named.to_json()))) == named


def test_fields_of_an_instance_are_its_identity():
    others = [Bandit(optimism=0.4), Bandit(optimism=0.6)]
    ids = {dataclasses.replace(INSTANCE, agent=agent).id for agent in others}
    ids |= {dataclasses.replace(INSTANCE, env=Coins(prize=2.0)).id, INSTANCE.id}
    assert len(ids) == 4


def test_an_instance_is_described_and_not_made_again():
    content = json.loads(json.dumps(INSTANCE.to_json()))
    assert content["agent"] == {"class": "tests.own.Bandit", "optimism": 0.5}
    assert content["env"]["class"] == "tests.own.Coins"
    with pytest.raises(UsageError, match=r"the agent of this cell is tests\.own\.Bandit, which has no name: register"):
        Cell.from_json(content)


def test_an_instance_goes_through_a_grid(computed, tmp_path):
    store = Store(tmp_path)
    (record,) = run_grid([INSTANCE], store)
    assert same_arrays(record, computed)
    told = []
    assert same_arrays(run_grid([INSTANCE], store, report=told.append)[0], computed)
    assert told == [], "it is computed once"
    assert list(store.checkpoints.glob("*")) == []


@pytest.mark.parametrize("which", ["instance", "unregistered name"])
def test_what_cannot_be_made_here_is_left_out_and_not_damaged(named, computed, tmp_path, which):
    store, cell = Store(tmp_path), INSTANCE if which == "instance" else named
    path = store.put(dataclasses.replace(computed, cell=cell))
    if which == "instance":
        with pytest.warns(SentinelWarning, match=r"is left out: the agent of this cell is tests\.own\.Bandit"):
            assert store.records() == []
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(registry._KINDS, AGENT)
            with pytest.warns(SentinelWarning, match=f"is left out: unknown agent '{AGENT}'"):
                assert store.status().finished == []
    assert path.exists()
    assert same_arrays(store.get(cell), computed)


def test_options_of_an_instance_are_its_fields():
    with pytest.raises(UsageError, match="unknown option optimism"):
        dataclasses.replace(INSTANCE, options={"optimism": 1.0})
    assert set(INSTANCE.options) <= set(PLAN_OPTIONS)
    with pytest.raises(UsageError, match=r"settings \['prize'\] need an environment by name"):
        dataclasses.replace(INSTANCE, env_settings={"prize": 2.0}).make_env()


def test_what_has_no_name_of_its_own_is_computed_without_a_store(tmp_path):
    class Local(Bandit):
        pass

    cell = dataclasses.replace(INSTANCE, agent=Local())
    np.testing.assert_array_equal(run_cell(cell).arrays["episodes"], [15, 15])
    with pytest.raises(UsageError, match="cannot be named in a file: define it at the top of a module"):
        run_grid([cell], Store(tmp_path))
