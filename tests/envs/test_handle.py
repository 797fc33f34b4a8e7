"""Whatever users give as an environment: what is read of it, and what is refused."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sentinel_rl.envs import CartPole, EnvHandle, GymEnv, Toy, resolve_env
from sentinel_rl.envs.handle import require_sizes
from sentinel_rl.errors import IncompatibleError, UsageError

POLE = CartPole(200)


class Table(gymnasium.Env):
    """Shows a table, and counts its actions from 1."""

    observation_space = spaces.Box(-1.0, 1.0, (2, 3), np.float32)
    action_space = spaces.Discrete(3, start=1)


def test_a_jax_environment_by_name_and_as_an_instance():
    for given, name in (("CartPole-v0", "CartPole-v0"), ("sentinel/CartPole-v0", "sentinel/CartPole-v0"), (POLE, None)):
        handle = resolve_env(given)
        assert (handle.env, handle.spec, handle.name, handle.is_jax) == (POLE, POLE.spec, name, True)
        assert (handle.obs_shape, handle.first_action) == ((4,), 0)
    assert isinstance(handle.gymnasium, GymEnv)
    assert handle.action_space == spaces.Discrete(2)
    assert handle.observation_space == GymEnv(POLE).observation_space
    assert resolve_env(handle) is handle


def test_a_gymnasium_environment():
    handle = resolve_env("Acrobot-v1")
    assert (handle.name, handle.is_jax, handle.gymnasium is handle.env) == ("Acrobot-v1", False, True)
    spec = handle.spec
    assert (spec.name, spec.obs_size, spec.num_actions, spec.max_steps) == ("Acrobot-v1", 6, 3, 500)
    assert (spec.reward_range, spec.gamma) == (None, 0.99)
    table = resolve_env(Table())
    assert (table.obs_shape, table.spec.obs_size, table.first_action, table.name) == ((2, 3), 6, 1, None)
    assert (table.observation_space, table.action_space) == (Table.observation_space, Table.action_space)


def test_a_vector_of_environments_has_the_sizes_of_one():
    handle = resolve_env(gymnasium.make_vec("CartPole-v1", num_envs=3))
    assert (handle.spec.obs_size, handle.spec.num_actions, handle.obs_shape, handle.is_jax) == (4, 2, (4,), False)
    assert handle.observation_space.shape == (4,)


def test_sizes_alone():
    handle = resolve_env(POLE.spec)
    assert (handle.env, handle.is_jax, handle.gymnasium) == (None, False, None)
    assert handle.observation_space.shape == (4,)
    assert handle.action_space.n == 2


@pytest.mark.parametrize(
    ("shape", "rows", "single"),
    [((2, 3), 1, True), ((6,), 1, True), ((5, 2, 3), 5, False), ((5, 6), 5, False), ((1, 6), 1, False)],
)
def test_observations_are_flattened_to_a_batch(shape: tuple[int, ...], rows: int, single: bool):
    batch, alone = resolve_env(Table()).batch(np.arange(np.prod(shape)).reshape(shape))
    assert (batch.shape, batch.dtype, alone) == ((rows, 6), np.float32, single)
    np.testing.assert_array_equal(batch.ravel(), np.arange(batch.size))


@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (0, 6), (5, 2, 4), (5, 5, 2, 3)])
def test_observations_of_another_shape_are_refused(shape: tuple[int, ...]):
    with pytest.raises(UsageError, match=r"an observation of Table has the shape \(2, 3\), got \("):
        resolve_env(Table()).batch(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float):
    with pytest.raises(UsageError, match=f"an observation holds {value}: its numbers must be finite"):
        resolve_env(POLE).batch([0.0, value, 0.0, 0.0])


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("given", [None, 3, object()])
def test_what_is_no_environment_is_refused(given: Any):
    with pytest.raises(UsageError, match=r"an environment is needed to know its sizes, got .*: give"):
        resolve_env(given)


def test_an_agent_of_other_sizes_does_not_fit():
    require_sizes(dataclasses.replace(POLE.spec, name="another", max_steps=9), POLE.spec, "agent.zip")
    with pytest.raises(
        IncompatibleError, match=r"agent\.zip was trained on CartPole-v0 \(4 numbers, 2 actions\), but Toy has 3 and 2"
    ):
        require_sizes(dataclasses.replace(Toy().spec, name="Toy"), POLE.spec, "agent.zip")


def test_a_handle_is_a_value():
    assert resolve_env("CartPole-v0") == EnvHandle(POLE.spec, POLE, (4,), 0, "CartPole-v0")
