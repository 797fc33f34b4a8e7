import dataclasses
import json

import pytest

from sentinel_rl.errors import UsageError
from sentinel_rl.study import Cell, Evaluation
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


def test_the_id_depends_on_all_but_the_label():
    changes = [
        {"agent": "cdqn", "options": {}},
        {"env": "CartPole-v1"},
        {"steps": 121},
        {"seeds": (5, 3)},
        {"options": {}},
        {"env_settings": {"max_steps": 100}},
        {"evaluations": ()},
        {"points": 7},
    ]
    ids = {dataclasses.replace(CELL, **change).id for change in changes}
    assert len(ids | {CELL.id}) == len(changes) + 1
    assert dataclasses.replace(CELL, label="another name").id == CELL.id


def test_the_id_is_the_same_everywhere():
    assert Cell("random", "CartPole-v0", 100, (0,)).id == "a32172fa8c9660a2"


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
