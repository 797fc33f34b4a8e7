"""What a run is named after: all that decides its numbers, however it was typed; and what cannot be named."""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents import options as agent_options
from sentinel_rl.agents.learning import Pace
from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import UsageError
from sentinel_rl.risk import CVaR, Expectation, Wang
from sentinel_rl.storage.configuration import canonical
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training.identity import env_identity, run_identity
from sentinel_rl.training.schedule import Every, Plan, Triangular
from sentinel_rl.training.trainer import train
from tests.training.mine import Greedy, Walk
from tests.training.pole import AGENT, ENV, NAME, SIZES

PLAN = Plan(400, Every(20), warmup=20)


def named(agent: Any = AGENT, env: Any = ENV, plan: Plan = PLAN, seeds: Any = (0, 1)) -> str:
    agents = agent if isinstance(agent, list) else [agent] * len(seeds)
    return canonical(run_identity(agents, resolve_env(env), plan, seeds))


OTHER: dict[str, Any] = {
    "gamma": 0.5,
    "learning_rate": 0.5,
    "learning_rate_end": 0.5,
    "updates": 9,
    "adam_eps": 0.5,
    "samples": 9,
    "batch": 9,
    "capacity": 9,
    "target_every": 9,
    "time_limit": "bootstrap",
    "head": dataclasses.replace(AGENT.support, high=99.0),
    "n_step": 9,
    "stretch": True,
    "max_grad_norm": 9.0,
    "average_over": 9,
    "k": 9,
    "epistemic": CVaR(0.3),
    "aleatory": Expectation(),
    "lam": 9.0,
    "mask": "poisson",
    "mask_rate": 0.9,
    "hidden": (9,),
    "encoder": "mlp",
    "draws": "shared",
    "explore": "member",
    "pace": Pace(learn_every=9),
    "bootstrap_action": "member",
    "target_update": "gradient",
    "aggregate": "scale",
    "divergence": "member_to_marginal",
    "prefer": "outliers",
    "prior_scale": 2.0,
    "prior_on": "mean",
    "alpha_start": 1.0,
    "alpha_fraction": 0.3,
    "layer_norm": True,
}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(SentinelAgent)])
def test_every_field_of_an_agent_counts(field: str):
    assert field in OTHER, "a new field needs another value here"
    assert named(dataclasses.replace(AGENT, **{field: OTHER[field]})) != named()


@pytest.mark.parametrize(
    "plan", [{"steps": 401}, {"learn": Every(21)}, {"learn": Triangular()}, {"warmup": 21}, {"longest_bout": 8}]
)
def test_every_part_of_the_plan_counts(plan: dict[str, Any]):
    assert named(plan=dataclasses.replace(PLAN, **plan)) != named()
    for name in ("epsilon_start", "epsilon_end", "epsilon_fraction"):
        assert named(plan=dataclasses.replace(PLAN, **{name: 0.3})) != named()


def test_the_environment_and_the_seeds_count():
    others = [dataclasses.replace(ENV, max_steps=201), dataclasses.replace(ENV, gravity=9.0), "sentinel/Toy-v0"]
    assert len({named(env=env) for env in others} | {named()}) == 4
    assert len({named(seeds=seeds) for seeds in ([0, 1], [1, 0], [0], [0, 2])}) == 4
    assert named([AGENT, dataclasses.replace(AGENT, lam=9.0)]) != named()


def test_the_kind_of_a_measure_counts_and_not_only_its_number():
    one, other = (dataclasses.replace(AGENT, aleatory=measure(0.25)) for measure in (Wang, CVaR))
    assert named(one) != named(other)


@pytest.mark.parametrize(
    "typed",
    [
        {"aleatory": "cvar:0.25"},
        {"aleatory": CVaR(0.25)},
        {"aleatory": CVaR(np.float64(0.25))},
        {"lam": 1},
        {"lam": np.float32(1.0)},
        {"lam": jnp.float32(1.0)},
        {"gamma": 0.99, "time_limit": "terminal"},
        {"reading": "sound", "preset": "paper"},
        {"hidden": [4]},
        {"v_min": 0, "v_max": AGENT.support.high},
        {"reward_range": (1, 1)},
    ],
)
@pytest.mark.usefixtures("untyped")
def test_the_same_configuration_typed_in_another_way_is_the_same(typed: dict[str, Any]):
    sizes = {"k": 2, "atoms": 5, "hidden": (4,), "samples": 8, "batch": 8, "capacity": 64, "preset": "paper"}
    usual, other = make_agent("sentinel", NAME, **sizes), make_agent("sentinel", NAME, **{**sizes, **typed})
    assert named(other) == named(usual)
    assert named(other, env=NAME, seeds=range(2)) == named(usual, env=f"sentinel/{NAME}", seeds=(0, 1))


def test_a_changed_default_is_another_configuration(tmp_path, monkeypatch):
    """The same words must not return, or go on with, what was made with other numbers."""
    run: Any = {"agent": "sentinel", "env": NAME, "steps": 60, "reports": False, "warmup": 20, "learn_every": 20}

    class Killed(BaseException):
        pass

    def kill(progress: Any) -> None:
        raise Killed

    with pytest.raises(Killed):
        train(**run, **SIZES, folder=tmp_path / "run", callbacks=kill)
    monkeypatch.setitem(agent_options.READINGS, "sound", {"mask_rate": 0.5})
    with pytest.raises(UsageError, match=r"another configuration:\n.*\n +agent\.mask_rate +0\.3\d+ +0\.5"):
        train(**run, **SIZES, folder=tmp_path / "run")


def test_a_gymnasium_environment_is_named_by_its_description():
    usual = gymnasium.make("CartPole-v1")
    assert env_identity(resolve_env(usual))["id"] == "CartPole-v1"
    assert named(env=usual) == named(env=gymnasium.make("CartPole-v1"))
    others = [
        gymnasium.make("CartPole-v1", max_episode_steps=100),
        gymnasium.make("CartPole-v1", sutton_barto_reward=True),
        gymnasium.wrappers.TimeLimit(usual, 50),
        gymnasium.make_vec("CartPole-v1", num_envs=2),
        gymnasium.make_vec("CartPole-v1", num_envs=3),
    ]
    assert len({named(env=env) for env in others} | {named(env=usual)}) == 6


class Versioned(Walk):
    """An environment whose author counts its versions."""

    version = 2


def test_a_version_of_the_users_own_counts():
    identity = run_identity([Greedy()], resolve_env(Versioned()), PLAN, [0])
    name = "tests.training.test_identity.Versioned"
    assert identity["env"] == {"class": name, "version": 2, "edge": 0.5, "limit": 12}
    assert identity["agent"] == {"class": "tests.training.mine.Greedy", "rate": 1.0}
    assert identity["plan"]["learn"] == {"class": "sentinel_rl.Every", "period": 20}


class Table(Greedy):
    """An agent with an array for a parameter."""

    values: Any = eqx.field(default_factory=lambda: np.zeros(3))


def test_arrays_are_named_by_their_numbers():
    few, many = np.arange(3.0), np.arange(100, dtype=np.float32)
    assert run_identity([Table(values=few)], resolve_env(ENV), PLAN, [0])["agent"]["values"] == [0.0, 1.0, 2.0]
    assert named(Table(values=many)) != named(Table(values=np.nextafter(many, np.float32(1))))
    assert named(Table(values=many)) == named(Table(values=jnp.asarray(many)))
    assert "sha256" in named(Table(values=many))


def never_written(folder: Path) -> bool:
    return not folder.exists()


def test_what_is_defined_inside_a_function_can_be_trained_but_not_be_given_a_folder(tmp_path):
    class Local(RandomAgent):
        pass

    class Hidden(Walk):
        pass

    assert train(Local(), Hidden(), 20).steps == 20
    for agent, env, what in ((Local(), ENV, "agent"), (RandomAgent(), Hidden(), "env")):
        with pytest.raises(
            UsageError, match=rf"{what} is '.*<locals>.*', which cannot be named in a file: define it at"
        ):
            train(agent, env, 20, folder=tmp_path / "run")
    assert never_written(tmp_path / "run")


class Shaped(Greedy):
    """An agent with a function for a parameter."""

    shape: Any = eqx.field(static=True, default=jnp.tanh)


def shape_of_mine(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (lambda x: x, r"agent\.shape is '.*<lambda>', which cannot be named in a file"),
        (object(), r"agent\.shape is of type object, which cannot be named in a file: use numbers"),
        ({"deep": [1, {2, 3}]}, r"agent\.shape\.deep\[1\] is of type set, which cannot be named"),
    ],
)
def test_what_has_no_name_is_told_with_its_place(tmp_path, shape: Any, message: str):
    with pytest.raises(UsageError, match=message):
        train(Shaped(shape=shape), Walk(), 20, folder=tmp_path / "run")
    assert never_written(tmp_path / "run")


def test_a_function_of_a_module_has_a_name():
    found = run_identity([Shaped(shape=shape_of_mine)], resolve_env(ENV), PLAN, [0])
    assert found["agent"]["shape"] == {"function": "tests.training.test_identity.shape_of_mine"}


class Unregistered(gymnasium.Env):
    """An environment that was not made by `gymnasium.make`."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 1.0, True, False, {}


def test_a_gymnasium_environment_without_a_description_cannot_be_named(tmp_path):
    with pytest.raises(UsageError, match=r"Unregistered cannot be named in a file: make it with gymnasium\.make"):
        train("random", Unregistered(), 20, folder=tmp_path / "run")
    assert never_written(tmp_path / "run")
    result = train("random", Unregistered(), 20)
    assert result.totals["episodes"] == [20]
    with pytest.raises(UsageError, match="cannot be made a second time to evaluate in: give evaluation_env"):
        train("random", Unregistered(), 20, evaluate=2)
    judged = train("random", Unregistered(), 20, evaluate=2, evaluation_env=Unregistered())
    assert np.shape(judged.episodes.reward) == (1, 2)


def test_a_folder_notes_what_was_asked_for_beside_the_identity(tmp_path):
    train("random", NAME, 20, 2, folder=tmp_path / "run", action=1, warmup=5)
    found = status(tmp_path / "run")
    assert found.about == {
        "agent": "random",
        "options": {"action": 1, "warmup": 5},
        "env": NAME,
        "steps": 20,
        "seeds": [0, 1],
    }
    assert found.configuration["agent"]["class"] == "sentinel_rl.RandomAgent"
    assert found.configuration["plan"]["warmup"] == 5
