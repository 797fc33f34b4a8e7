import dataclasses
import functools
import json

import numpy as np
import pytest

from sentinel_rl.agents.options import PRESETS
from sentinel_rl.envs import CartPole, register_env
from sentinel_rl.errors import UsageError
from sentinel_rl.study import Cell, Evaluation
from sentinel_rl.training.schedule import make_plan
from tests.own import ENV, Coins, registered
from tests.study.grids import CELL, with_options


def test_a_cell_survives_json():
    cell = dataclasses.replace(
        with_options(lam=float("inf"), aleatory="cvar:0.1"),
        env="sentinel/highway-v1",
        env_settings={"reward_speed_range": (20.0, 30.0)},
        evaluations=(Evaluation("dense traffic", 10, env_settings={"vehicles_density": 2.0}),),
    )
    back = Cell.from_json(json.loads(json.dumps(cell.to_json())))
    assert back == cell
    assert back.id == cell.id
    assert back.options["hidden"] == (4,)  # an agent's static field must be hashable
    assert back.make_env(back.evaluations[0].env_settings).vehicles_density == 2.0


EVALUATIONS = [{"name": "another"}, {"episodes": 4}, {"seed": 7}, {"env_settings": {"max_steps": 9}}]


def test_the_id_depends_on_all_but_the_label():
    changes = [
        {"agent": "cdqn", "options": {}},
        {"env": "CartPole-v1"},
        {"steps": 121},
        {"seeds": (5, 3)},
        {"options": {}},
        {"env_settings": {"max_steps": 100}},
        {"evaluations": ()},
        *({"evaluations": (dataclasses.replace(CELL.evaluations[0], **change),)} for change in EVALUATIONS),
        {"points": 7},
    ]
    ids = {dataclasses.replace(CELL, **change).id for change in changes}
    assert len(ids | {CELL.id}) == len(changes) + 1
    assert dataclasses.replace(CELL, label="another name").id == CELL.id


def test_the_id_is_the_same_everywhere():
    assert Cell("random", "CartPole-v0", 100, (0,)).id == "d8eedc22d9780cd3"


@pytest.mark.parametrize(
    "change",
    [
        {"options": {**CELL.options, "hidden": [4]}},
        {"options": {**CELL.options, "hidden": np.array([4])}},
        {"options": {**CELL.options, "lam": 1}},
        {"options": {**CELL.options, "aleatory": "cvar:.25", "preset": "paper", "reading": "sound"}},
        {"options": {**CELL.options, "epsilon_end": np.float64(0.05)}},
        {"options": dict(reversed(CELL.options.items()))},
        {"env": "sentinel/CartPole-v0"},
        {"env": "CartPole-v1", "env_settings": {"max_steps": 200}},
        {"env": CartPole(200)},
        {"evaluations": (dataclasses.replace(CELL.evaluations[0], env_settings={"max_steps": 200}),)},
    ],
)
def test_the_id_does_not_depend_on_how_things_are_typed(change):
    assert dataclasses.replace(CELL, **change).id == CELL.id


def test_another_default_is_another_id(monkeypatch):
    """Of the agent, the plan and the environment; what is typed out stays what it is."""
    typed = with_options(lam=1.0, epsilon_end=0.05)
    own = Cell("random", ENV, 100, (0,))
    assert typed.id == CELL.id
    with registered():
        before = own.id, dataclasses.replace(own, env_settings={"prize": 1.0}).id
        register_env(ENV, functools.partial(Coins, prize=2.0))
        after = dataclasses.replace(own).id, dataclasses.replace(own, env_settings={"prize": 1.0}).id
    assert before[0] == before[1] == after[1] != after[0]
    monkeypatch.setitem(PRESETS, "paper", {**PRESETS["paper"], "lam": 2.0})
    assert (dataclasses.replace(CELL).id == CELL.id, dataclasses.replace(typed).id == CELL.id) == (False, True)
    monkeypatch.undo()
    assert dataclasses.replace(CELL).id == CELL.id
    monkeypatch.setattr("sentinel_rl.study.cell.make_plan", other_plan)
    assert (dataclasses.replace(CELL).id == CELL.id, dataclasses.replace(typed).id == CELL.id) == (False, True)


def other_plan(steps, defaults, options):
    return make_plan(steps, defaults, {"epsilon_end": 0.1, **options})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"agent": "dqn"}, "unknown agent 'dqn'"),
        ({"options": {"gama": 0.9}}, "did you mean gamma"),
        ({"seeds": ()}, "seeds of at least 0"),
        ({"seeds": (1, 1)}, "each once"),
        ({"steps": 0}, "at least 1 step"),
        ({"options": {"lam": object()}}, "cannot be saved"),
        ({"evaluations": (Evaluation("a"), Evaluation("a"))}, "different names"),
    ],
)
def test_what_cannot_be_is_refused(change, told):
    with pytest.raises(UsageError, match=told):
        dataclasses.replace(CELL, **change)


@pytest.mark.parametrize("entries", [{"name": "a/b"}, {"name": "a", "episodes": 0}])
def test_evaluations_that_cannot_be_are_refused(entries):
    with pytest.raises(UsageError):
        Evaluation(**entries)


@pytest.mark.parametrize(
    ("env", "settings", "told"),
    [
        ("Acrobot-v1", {}, "needs an environment in JAX"),
        ("CartPole-1", {}, "did you mean"),
        ("CartPole-v0", {"lanes": 3}, "lanes"),
    ],
)
def test_environments_that_cannot_be_are_refused(env, settings, told):
    with pytest.raises(UsageError, match=told):
        dataclasses.replace(CELL, env=env, env_settings=settings).make_env()
