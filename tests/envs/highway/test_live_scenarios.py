"""Scenarios against a live highway-env: the same changes made to its cars give the same episodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs.highway import SCENARIOS, Highway, HighwayState, Shift
from tests.envs.highway.original import cars, make, observation

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:.*pkg_resources:"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
STEP, RESET = jax.jit(Highway.step), jax.jit(Highway.reset)


def impose(env, state: HighwayState) -> None:
    """Put the cars of highway-env where a first state has them, each as if it had been created there."""
    for i, car in enumerate(env.road.vehicles):
        car.position = np.array([float(state.x[i]), float(state.y[i])])
        car.speed, car.target_speed = float(state.speed[i]), float(state.target_speed[i])
        car.crashed = bool(state.crashed[i])
        car.on_state_update()
        car.target_lane_index = car.lane_index
        if i:
            car.DELTA, car.timer = float(state.delta[i]), np.sum(car.position) * np.pi % 1.0


def intervene(env, shift: Shift, time: int) -> None:
    """What `Shift` says in words, done to the objects of highway-env."""
    if time == 0 or time % 5:
        return
    ego, *others = env.road.vehicles
    awake = [car for car in others if not car.crashed]
    far = {car: car.position[0] - ego.position[0] for car in awake}
    same = [car for car in awake if car.lane_index == ego.lane_index and 0 < far[car] <= 60]
    beside = [
        car
        for car in awake
        if abs(car.lane_index[2] - ego.lane_index[2]) == 1
        and car.target_lane_index == car.lane_index
        and shift.cut_in <= far[car] <= shift.cut_in + 20
    ]
    if same:
        braker = min(same, key=far.get)
        braker.target_speed = min(braker.target_speed, shift.brake_to)
    if beside:
        min(beside, key=far.get).target_lane_index = ego.lane_index


@pytest.mark.parametrize("name", SCENARIOS)
def test_live_episodes_are_equal(name: str, x64):
    events = 0
    for seed in range(3):
        twin = Highway.scenario(name, 3, duration=20)
        shift = Shift() if twin.shift is None else twin.shift
        # One program for all scenarios: what only the reset reads is the same for the steps.
        state, _ = RESET(Highway.scenario(name, 3, duration=20, shift=shift), jax.random.key(seed))
        env = make("highway-v0", {"lanes_count": 5, "vehicles_count": 10, "duration": 20})
        env.reset(seed=seed)
        impose(env, state)
        np.testing.assert_allclose(twin.observe(state), observation(env), atol=1e-9)
        rng, action = np.random.default_rng(seed), 1
        for time in range(20):
            action = action if rng.random() < 0.6 else int(rng.integers(5))
            before = [(car.target_speed, car.target_lane_index) for car in env.road.vehicles]
            intervene(env, shift, time)
            events += before != [(car.target_speed, car.target_lane_index) for car in env.road.vehicles]
            state, after = STEP(Highway(duration=20, shift=shift), state, jnp.array(action), jax.random.key(0))
            _, reward, terminated, truncated, _ = env.step(action)
            real = cars(env)
            for field in ("x", "y", "heading", "speed", "target_speed"):
                np.testing.assert_allclose(getattr(state, field), getattr(real, field), atol=1e-7, err_msg=field)
            for field in ("target_lane", "crashed"):
                np.testing.assert_array_equal(getattr(state, field), getattr(real, field), err_msg=field)
            np.testing.assert_array_equal(np.maximum(state.wait, 0)[1:], real.wait[1:])
            np.testing.assert_allclose(after.reward, reward, atol=1e-9)
            assert (bool(after.terminated), bool(after.truncated)) == (terminated, truncated)
            if terminated or truncated:
                break
    assert (events > 0) == (name in ("braker", "cutin"))
