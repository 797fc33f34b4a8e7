"""Environments of other packages start with the agents' defaults: no range of rewards or returns is asked for."""

from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest

import sentinel_rl as srl
from sentinel_rl.errors import SentinelWarning

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Overriding environment.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*is not within the observation space.*:UserWarning"),
]

# Sizes only: all else is the default.
SMALL = {"k": 2, "capacity": 200, "samples": 8, "batch": 8, "warmup": 10, "learn_every": 20}


@pytest.fixture(autouse=True)
def drivers_as_they_were() -> Iterator[None]:
    """highway-env's intersection changes the drivers of all its environments, in their class; that ends with a test."""
    behavior = pytest.importorskip("highway_env.vehicle.behavior")
    before = {name: value for name, value in vars(behavior.IDMVehicle).items() if name.isupper()}
    yield
    for name, value in before.items():
        setattr(behavior.IDMVehicle, name, value)


def made(package: str, name: str) -> gymnasium.Env:
    gymnasium.register_envs(pytest.importorskip(package))
    if package != "ale_py":
        return gymnasium.make(name)
    pytest.importorskip("cv2")
    return gymnasium.wrappers.AtariPreprocessing(gymnasium.make(name, frameskip=1))


@pytest.mark.parametrize(
    ("package", "name", "structure"),
    [
        ("minigrid", "MiniGrid-Empty-5x5-v0", None),
        ("ale_py", "ALE/Pong-v5", "image"),
        ("highway_env", "merge-v1", None),
        ("highway_env", "roundabout-v1", None),
        ("highway_env", "intersection-v2", None),
    ],
)
@pytest.mark.filterwarnings("ignore::sentinel_rl.errors.SentinelWarning")
def test_an_environment_starts_with_defaults_and_learns_some_steps(package, name, structure):
    env = made(package, name)
    agent = srl.Sentinel("MlpPolicy", env, hidden=(8,), **SMALL)
    assert agent.spec.structure == structure
    steps = 120 if package != "highway_env" else 40
    agent.learn(steps)
    assert agent.num_timesteps == steps
    seen, _ = env.reset(seed=1)
    action, _ = agent.predict(seen)
    assert env.action_space.contains(action)
    why = agent.assess(seen)
    assert np.isfinite(why.value).all()
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merge-v0", "roundabout-v0", "intersection-v0"])
@pytest.mark.filterwarnings("ignore::sentinel_rl.errors.SentinelWarning")
def test_the_slow_ones_run_for_three_thousand_steps_with_nothing_but_defaults(name):
    env = made("highway_env", name)
    agent = srl.Sentinel("MlpPolicy", env, seed=0)
    agent.learn(3_000)
    assert agent.num_timesteps == 3_000
    for seed in range(3):
        seen, _ = env.reset(seed=seed)
        action, _ = agent.predict(seen, deterministic=True)
        assert env.action_space.contains(action)
        assert np.isfinite(agent.assess(seen).value).all()
    env.close()


def test_what_has_no_numbers_is_left_out_and_told():
    env = made("minigrid", "MiniGrid-Empty-5x5-v0")
    with pytest.warns(SentinelWarning, match="mission of its observations is not made of numbers"):
        handle = srl.envs.resolve_env(env)
    assert handle.spec.obs_size == 7 * 7 * 3 + 4


def test_a_package_is_named_with_its_environment(tmp_path):
    """``package:name`` imports the package, also on the command line."""
    pytest.importorskip("minigrid")
    with pytest.warns(SentinelWarning, match="mission"):
        handle = srl.envs.resolve_env("minigrid:MiniGrid-Empty-5x5-v0")
    assert handle.spec.num_actions == 7
