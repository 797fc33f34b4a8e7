"""Named shifts: what they change, that strength 0 would change nothing, and the split."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs import env_names, make_env
from sentinel_rl.envs.highway import SCENARIOS, Highway, HighwayState, Shift, scenario_names
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import identity

COMPILE_QUICKLY = True

CARS = 5
KEYS = jax.random.split(jax.random.key(3), 64)
DRAW = jax.jit(jax.vmap(lambda env, key: env.reset(key)[0], in_axes=(None, 0)))
INTERVENE = jax.jit(lambda shift, state: shift.intervene(state, 5, 1))


def test_the_split_is_fixed():
    """Changing it after results are known would make test scenarios of what was tuned on."""
    assert scenario_names("calibration") == ["dense", "slow", "standstill"]
    assert scenario_names("test") == ["blocked", "braker", "cutin"]
    assert scenario_names() == scenario_names("calibration") + scenario_names("test")


@pytest.mark.parametrize("name", SCENARIOS)
def test_names_lead_to_scenarios_and_back(name: str):
    known = SCENARIOS[name].env
    env = make_env(known)
    assert known in env_names()
    assert env == Highway.scenario(name, 2)
    assert env.spec.name == known
    assert make_env(known, strength=1, duration=20) == Highway.scenario(name, 1.0, duration=20)
    assert make_env("sentinel/highway-v1", scenario=name, strength=3) == Highway.scenario(name, 3), "as in a study"
    assert make_env(known, strength=1).spec.name == "sentinel/highway"
    assert identity(env) != identity(Highway())


def test_no_test_scenario_is_a_calibration_scenario():
    made = [Highway.scenario(name, s) for name in scenario_names() for s in (0.5, 1, 2, 3, 3.5)]
    sides = ["calibration"] * 15 + ["test"] * 15
    assert not any(
        one == other for one, a in zip(made, sides, strict=True) for other, b in zip(made, sides, strict=True) if a != b
    )


def test_a_highway_as_it_was_has_the_identity_it_had():
    assert "shift" not in identity(Highway())


@pytest.mark.parametrize("strength", [0, -1, 4, float("nan"), True])
def test_strengths_that_do_not_exist_are_refused(strength: object):
    with pytest.raises(UsageError, match=r"strength = .* is not allowed: give a number above 0, at most 3.5"):
        make_env("sentinel/highway-dense-v1", strength=strength)


def test_what_is_not_possible_is_refused():
    with pytest.raises(ValueError, match="unknown scenario 'fog': choose one of dense, "):
        Highway.scenario("fog")
    with pytest.raises(ValueError, match="distance of 10 to 1000 m"):
        Shift(wrecks=1, distance=5)
    with pytest.raises(ValueError, match="any_crash_terminal = True ends an episode with wrecks"):
        Highway.scenario("blocked", any_crash_terminal=True)


def test_traffic_is_denser_and_slower():
    assert Highway.scenario("dense", 2).vehicles_density == 3
    assert Highway.scenario("slow", 2).others_speed == (15, 18)


@pytest.mark.parametrize(("name", "strength", "count", "distance"), [("standstill", 3, 1, 40), ("blocked", 2, 3, 120)])
def test_wrecks_stand_before_the_ego_and_all_others_behind_them(name, strength, count, distance):
    state = DRAW(Highway.scenario(name, strength), KEYS)
    before = DRAW(Highway(), KEYS)
    crashed = np.asarray(state.crashed)
    np.testing.assert_array_equal(crashed.sum(axis=1), count)
    assert not crashed[:, 0].any()
    ahead = np.asarray(state.x - state.x[:, :1])
    np.testing.assert_allclose(ahead[crashed], distance, rtol=1e-5)
    assert not np.asarray(state.speed)[crashed].any()
    lanes = np.asarray(state.target_lane)
    np.testing.assert_array_equal(lanes[:, 1], lanes[:, 0])
    assert all(len(set(row[1 : count + 1])) == count for row in lanes.tolist()), "each in a lane of its own"
    np.testing.assert_array_equal(state.y, 4.0 * lanes)
    free = ahead[:, count + 1 :]
    assert (free >= distance + 20 - 1e-3).all()
    np.testing.assert_allclose(np.diff(free), np.diff(np.asarray(before.x)[:, count + 1 :]), atol=1e-3)
    np.testing.assert_array_equal(state.speed[:, count + 1 :], before.speed[:, count + 1 :])


def test_a_shift_that_is_off_changes_nothing():
    np.testing.assert_array_equal(DRAW(Highway(shift=Shift()), KEYS).x, DRAW(Highway(), KEYS).x)
    state = scene([(30, 1), (20, 0)], time=5)
    after = INTERVENE(Shift(), state)
    for name, value in after._asdict().items():
        np.testing.assert_array_equal(value, getattr(state, name))


def scene(others: list[tuple[float, int]], time: int) -> HighwayState:
    """The ego at 100 m in lane 1, others so many metres ahead of it in these lanes, and more far away."""
    cars = [(0.0, 1), *others, *[(500.0, 4)] * (CARS - 1 - len(others))]
    ahead, lane = (np.array(column) for column in zip(*cars, strict=True))
    speed, none, no = np.full(CARS, 22.0, np.float32), np.zeros(CARS, np.float32), np.zeros(CARS, bool)
    lanes, waits = lane.astype(np.int32), np.zeros(CARS, np.int32)
    x, y = (100 + ahead).astype(np.float32), (4 * lane).astype(np.float32)
    state = HighwayState(x, y, none, speed, lanes, speed, none, waits, no, no, none, none, np.int32(time))
    return jax.tree.map(jnp.asarray, state)


@pytest.mark.parametrize(
    ("others", "time", "braking"),
    [
        ([(40, 1), (20, 1), (10, 0), (-9, 1)], 5, 2),  # the nearest ahead in the lane
        ([(40, 1), (20, 1)], 10, 2),
        ([(40, 1), (20, 1)], 4, None),  # not due
        ([(40, 1)], 0, None),  # never at the start
        ([(61, 1), (20, 2)], 5, None),  # nobody within 60 m
    ],
)
def test_who_brakes(others, time: int, braking: int | None):
    after = INTERVENE(Highway.scenario("braker", 3).shift, scene(others, time))
    expected = np.where(np.arange(CARS) == braking, 5.0, 22.0)
    np.testing.assert_array_equal(after.target_speed, expected)


@pytest.mark.parametrize(
    ("others", "time", "cutting"),
    [
        ([(25, 0), (20, 2), (16.5, 1)], 5, 2),  # the nearest of both sides
        ([(12, 0), (30, 2)], 5, 2),  # 12 m are too near
        ([(37, 0), (20, 3)], 5, None),  # too far; two lanes away
        ([(20, 0)], 7, None),  # not due
    ],
)
def test_who_cuts_in(others, time: int, cutting: int | None):
    state = scene(others, time)
    after = INTERVENE(Highway.scenario("cutin", 2).shift, state)
    expected = np.where(np.arange(CARS) == cutting, 1, state.target_lane)
    np.testing.assert_array_equal(after.target_lane, expected)


def test_wrecks_neither_brake_nor_cut_in():
    state = scene([(20, 1), (20, 0)], 5)._replace(crashed=jnp.arange(CARS) > 0)
    after = INTERVENE(Shift(brake_to=5, cut_in=10), state)
    np.testing.assert_array_equal(after.target_speed, state.target_speed)
    np.testing.assert_array_equal(after.target_lane, state.target_lane)
