"""Against a live highway-env."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs.highway import Highway, from_highway_env
from tests.envs.highway.compare import differences
from tests.envs.highway.episodes import GROUPS
from tests.envs.highway.original import cars, make, observation

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:.*pkg_resources:"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("name", ["random", "swift", "small"])
def test_live_episodes_are_equal(name: str):
    group = GROUPS[name]._replace(first_seed=7000)
    episodes = group.record(count=4)
    for row in differences(group.twin(), [group.first(e.seed) for e in episodes], episodes):
        assert row.equal(1e-8), row


@pytest.mark.parametrize("name", GROUPS)
def test_first_states_are_drawn_again_bit_for_bit(name: str):
    group = GROUPS[name]
    env = group.make()
    for seed in range(30):
        env.reset(seed=seed)
        first, truth = group.first(seed), cars(env)
        for field in ("x", "lane", "speed"):
            np.testing.assert_array_equal(getattr(first, field), getattr(truth, field))
        np.testing.assert_array_equal(first.delta[1:], [v.DELTA for v in env.road.vehicles[1:]])
        np.testing.assert_array_equal(first.timer[1:], [v.timer for v in env.road.vehicles[1:]])


def test_a_live_environment_is_imported_in_the_middle_of_an_episode(x64):
    env = make("highway-v0", {"lanes_count": 5, "vehicles_count": 10, "vehicles_density": 2})
    env.reset(seed=3)
    for action in (3, 0, 1):
        env.step(action)
    twin, state = from_highway_env(env)
    assert twin == Highway(vehicles_density=2)
    np.testing.assert_allclose(twin.observe(state), observation(env), atol=1e-12)
    for action in (2, 4, 0):
        env.step(action)
        state, after = jax.jit(twin.step)(state, jnp.array(action), jax.random.key(0))
        np.testing.assert_allclose(state.x, cars(env).x, atol=1e-9)
        np.testing.assert_allclose(after.obs, observation(env), atol=1e-9)
        if after.terminated:
            break
    assert int(state.time) == round(env.time)


@pytest.mark.parametrize(
    "config",
    [
        {"controlled_vehicles": 2},
        {"action": {"type": "ContinuousAction"}},
        {"observation": {"type": "OccupancyGrid"}},
        {"observation": {"type": "Kinematics", "absolute": True}},
        {"other_vehicles_type": "highway_env.vehicle.behavior.AggressiveVehicle"},
    ],
)
def test_what_has_no_twin_is_refused(config: dict):
    env = make("highway-v0", config)
    with pytest.raises(ValueError, match="has no twin: use"):
        from_highway_env(env)


@pytest.mark.parametrize("name", ["highway-v0", "highway-fast-v0"])
def test_presets_are_those_of_the_original(name: str):
    env = make(name, {})
    env.reset(seed=0)
    twin, _ = from_highway_env(env)
    assert twin == Highway.preset(name)
