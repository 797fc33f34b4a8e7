"""Settings: presets, refusals, and what they change."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs import Drawable, Env, make_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.registry import make_jax_env

COMPILE_QUICKLY = True

RESET = jax.jit(Highway.reset)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lanes_count": 0}, "lanes_count = 0 is not allowed: give a whole number of at least 1"),
        ({"vehicles_count": -1}, "vehicles_count = -1 is not allowed: give a whole number of at least 0"),
        ({"observed_vehicles": 12}, "observed_vehicles = 12 is more than there are: .* at most 11"),
        ({"observed_vehicles": 0}, "observed_vehicles = 0 is not allowed"),
        ({"simulation_frequency": 10, "policy_frequency": 3}, "10 is not a multiple of policy_frequency = 3"),
        ({"policy_frequency": 0}, "policy_frequency = 0 is not allowed"),
        ({"simulation_frequency": -15}, "simulation_frequency = -15 is not allowed"),
        ({"vehicles_density": 0.0}, "vehicles_density = 0.0 is not allowed: give a number above 0"),
        ({"duration": float("nan")}, "duration = nan is not allowed"),
        ({"duration": 1000.0}, "duration = 1000.0 is too long"),
        ({"ego_spacing": -1.0}, "ego_spacing = -1.0 is not allowed"),
        (
            {"others_speed": (27.0, 24.0)},
            r"others_speed = \(27.0, 24.0\) is not allowed: give \(low, high\)",
        ),
        ({"others_speed": (24.0, 31.0)}, "<= 30, the speed limit"),
        ({"others_speed": (0.0, 20.0)}, "others_speed"),
        ({"others_speed": (float("nan"), 20.0)}, "others_speed"),
        ({"others_speed": (20.0,)}, "others_speed"),
        ({"initial_lane_id": 5}, "initial_lane_id = 5 does not exist: .* give 0 to 4, or None"),
        ({"reward_speed_range": (30.0, 20.0)}, r"reward_speed_range = \(30.0, 20.0\) is not allowed"),
        ({"collision_reward": float("inf")}, "collision_reward = inf is not allowed"),
        ({"collision_reward": 0.5}, "normalize_reward divides by .* which is 0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict, message: str):
    with pytest.raises(ValueError, match=message):
        Highway(**settings)


def test_counts_are_whole_numbers(untyped):
    for value in (2.5, True, "3"):
        with pytest.raises(ValueError, match=r"lanes_count = .* give a whole number"):
            Highway(lanes_count=value)


def test_presets():
    paper = Highway.preset("highway-v1")
    assert (paper.lanes_count, paper.vehicles_count, paper.max_steps, paper.spec.obs_size) == (5, 10, 40, 25)
    assert Highway.preset("highway-fast-v0").simulation_frequency == 5
    assert Highway.preset("highway-v0", lanes_count=2).lanes_count == 2
    with pytest.raises(ValueError, match="unknown preset 'highway-v2': choose one of highway-v1, highway-v0"):
        Highway.preset("highway-v2")


@pytest.mark.parametrize("name", ["highway-v1", "highway-v0", "highway-fast-v0"])
def test_names_make_presets_and_leave_the_originals_alone(name: str):
    env = make_env(f"sentinel/{name}")
    assert env == Highway.preset(name)
    assert env.spec.name == f"sentinel/{name}"
    assert isinstance(env, Env)
    assert isinstance(env, Drawable)
    assert make_jax_env(f"highway_env:{name}") is None, "it is Gymnasium's to make"


def test_a_changed_preset_has_no_name_of_its_own():
    for settings in ({"lanes_count": 7}, {"vehicles_density": 2.0}, {"others_speed": (24.0, 27.0)}):
        assert Highway(**settings).spec.name == "sentinel/highway"


def test_how_an_episode_begins_is_compiled_once():
    """One program for every traffic: each compilation of the function would run it in Python once more."""
    traces = []

    @jax.jit
    def play(env: Highway, key: jax.Array):
        traces.append(env.spec.max_steps)
        state, _ = jax.vmap(env.reset)(jax.random.split(key, 3))
        return state, jax.vmap(env.step)(state, jnp.array([0, 1, 3]), jax.random.split(key, 3))[1].obs

    key = jax.random.key(0)
    traffics = ({}, {"vehicles_density": 2}, {"vehicles_density": np.float32(1.5)}, {"others_speed": [27, 30]})
    played = [play(Highway(**traffic, ego_spacing=2 + i), key) for i, traffic in enumerate(traffics)]
    assert traces == [40]
    for traffic, (state, obs) in zip(traffics, played, strict=True):
        alone, _ = jax.vmap(Highway(**traffic, ego_spacing=2 + traffics.index(traffic)).reset)(jax.random.split(key, 3))
        np.testing.assert_allclose(state.x, alone.x, rtol=1e-6)
        assert np.isfinite(obs).all()
    default, dense, _, fast = (np.diff(state.x)[:, 1:].mean() for state, _ in played)
    assert default / 2 == pytest.approx(dense)
    assert default < fast


def test_settings_are_values():
    """Equal ones are equal, and may be static arguments and keys of a dictionary."""
    assert Highway(vehicles_density=2, others_speed=[24, 27]) == Highway(
        vehicles_density=2.0, others_speed=(24.0, 27.0)
    )
    assert Highway(vehicles_density=2) != Highway()
    assert len({Highway(), Highway(vehicles_density=1), Highway(others_speed=(24.0, 27.0))}) == 2
    static = jax.jit(Highway.reset, static_argnums=0)(Highway(vehicles_density=2), jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, static, RESET(Highway(vehicles_density=2), jax.random.key(0)))


def test_every_world_may_have_its_own_traffic():
    densities, keys = jnp.array([1.0, 2.0]), jax.random.split(jax.random.key(0), 2)
    env = eqx.tree_at(lambda env: env.vehicles_density, Highway(), densities)
    axes = jax.tree.map(lambda leaf: 0 if leaf is densities else None, env)
    states, _ = jax.vmap(lambda env, key: env.reset(key), in_axes=(axes, 0))(env, keys)
    after = jax.vmap(lambda env, *args: env.step(*args)[1], in_axes=(axes, 0, None, 0))(env, states, jnp.array(1), keys)
    for i, density in enumerate((1.0, 2.0)):
        alone, _ = RESET(Highway(vehicles_density=density), keys[i])
        np.testing.assert_allclose(states.x[i], alone.x, rtol=1e-6)
    assert np.isfinite(after.obs).all()


@pytest.mark.parametrize(
    ("policy", "duration", "steps"), [(1, 40, 40), (3, 10, 30), (5, 1, 5), (1, 2.5, 3), (15, 1, 15)]
)
def test_the_limit_is_counted_as_the_original_adds_up_its_time(policy: int, duration: float, steps: int):
    assert Highway(policy_frequency=policy, duration=duration).max_steps in (steps, steps + 1)
    time, count = 0.0, 0
    while not time >= duration:
        time, count = time + 1 / policy, count + 1
    assert Highway(policy_frequency=policy, duration=duration).max_steps == count


@pytest.mark.parametrize(
    ("settings", "speed", "lane", "crashed", "reward"),
    [
        ({}, 25.0, 0, False, 0.8),
        ({}, 30.0, 4, False, 1.0),
        ({}, 20.0, 0, False, 2 / 3),
        ({}, 35.0, 4, True, 1 / 3),
        ({"normalize_reward": False}, 30.0, 2, False, 0.45),
        ({"normalize_reward": False}, 30.0, 2, True, -0.55),
        ({"reward_speed_range": (10.0, 20.0)}, 15.0, 0, False, (0.2 + 1) / 1.5),
    ],
)
def test_rewards_by_hand(settings: dict, speed: float, lane: int, crashed: bool, reward: float):
    env = Highway(**settings)
    state, _ = RESET(env, jax.random.key(0))
    state = state._replace(
        y=state.y.at[0].set(4.0 * lane),
        target_lane=state.target_lane.at[0].set(lane),
        speed=state.speed.at[0].set(speed),
        crashed=state.crashed.at[0].set(crashed),
    )
    assert float(env._reward(state)) == pytest.approx(reward, abs=1e-6)
    low, high = env.spec.reward_range
    assert low <= reward <= high
    off = state._replace(y=state.y.at[0].set(-2.5))
    assert float(env._reward(off)) == 0
    assert not env._terminated(off._replace(crashed=off.crashed.at[0].set(False)))
    assert Highway(**settings, offroad_terminal=True)._terminated(off)


def test_whose_crash_ends_the_episode():
    state, _ = RESET(Highway(), jax.random.key(0))
    other, ego = (state._replace(crashed=state.crashed.at[i].set(True)) for i in (3, 0))
    assert [bool(Highway()._terminated(s)) for s in (state, other, ego)] == [False, False, True]
    anyone = Highway(any_crash_terminal=True)
    assert [bool(anyone._terminated(s)) for s in (state, other, ego)] == [False, True, True]


def test_an_observation_by_hand():
    env = Highway(vehicles_count=4, observed_vehicles=4)
    state, _ = RESET(env, jax.random.key(0))
    state = state._replace(
        x=jnp.array([100.0, 90.0, 89.0, 130.0, 301.0]),  # 1 is 10 m behind, 2 is 11 m behind, 4 is out of sight
        y=jnp.array([4.0, 0.0, 0.0, 16.0, 4.0]),
        speed=jnp.array([25.0, 20.0, 20.0, 21.0, 20.0]),
    )
    rows = np.asarray(env.observe(state)).reshape(4, 5)
    np.testing.assert_allclose(rows[0], [1, 0.5, 0.2, 25 / 80, 0], atol=1e-6)
    np.testing.assert_allclose(rows[1], [1, 0.15, 0.6, -4 / 80, 0], atol=1e-6)
    np.testing.assert_array_equal(rows[2:], 0)
    nearer = state._replace(x=state.x.at[1].set(90.5))
    np.testing.assert_allclose(env.observe(nearer).reshape(4, 5)[1], [1, -9.5 / 200, -0.2, -5 / 80, 0], atol=1e-6)
