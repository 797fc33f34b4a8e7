"""Recording an agent: the episodes of an evaluation, the twin's own alternatives, and returns behind the time limit."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sentinel_rl as srl
from sentinel_rl.agents.agent import FixedPolicy
from sentinel_rl.envs.highway import Highway
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.explanation import explain
from sentinel_rl.training.trips import Trip, steps_beyond
from sentinel_rl.viewer import record
from sentinel_rl.viewer.record import _atoms
from tests.learners import OPTIONS, make
from tests.tiny import Box2D, tiny

# Small, and with a discount whose returns are soon known.
ROAD = Highway.preset("highway-v1", duration=4, vehicles_count=5, lanes_count=3)
EPISODES, SEED = 3, 11


@pytest.fixture(scope="module")
def driver():
    options = OPTIONS["sentinel"] | {"time_limit": "bootstrap", "gamma": 0.6, "k": 2}
    return srl.Sentinel("MlpPolicy", ROAD, **options)


@pytest.fixture(scope="module")
def drive(driver):
    return record(driver, episodes=EPISODES, seed=SEED)


@pytest.fixture(scope="module")
def states(driver, drive):
    """The twin stepped by hand through the first episode, with the actions that were recorded."""
    key = jax.random.fold_in(jax.random.key(SEED), 0)
    state, _ = jax.jit(ROAD.reset)(jax.random.split(key)[0])
    found, step = [state], jax.jit(ROAD.step)
    for action in drive.arrays["action"][: drive.arrays["lengths"][0]]:
        found.append(step(found[-1], jnp.int32(action), key)[0])
    return found


def test_the_episodes_are_those_of_an_evaluation(driver, drive):
    played = srl.evaluate(driver.agent, driver.state, ROAD, EPISODES, SEED)
    np.testing.assert_array_equal(drive.arrays["lengths"], played.length)
    sums = np.add.reduceat(drive.arrays["reward"], drive.starts())
    np.testing.assert_allclose(sums, played.reward, rtol=1e-5)


def test_every_decision_is_that_of_assess(driver, drive):
    for decision in (0, drive.decisions - 1):
        why = explain(driver.agent, driver.state, drive.arrays["obs"][decision], driver.handle)
        np.testing.assert_allclose(drive.arrays["probs"][decision], why.probs, atol=1e-6)
        np.testing.assert_allclose(drive.arrays["weights"][decision], why.belief.weights, atol=1e-6)
        np.testing.assert_allclose(drive.arrays["value"][decision], why.value, atol=1e-5)
        np.testing.assert_allclose(drive.arrays["parts"][decision, 0], why.assessment.mean, atol=1e-5)
        assert drive.arrays["action"][decision] == why.action
    assert drive.about.actions == ROAD.spec.action_names
    assert (drive.about.aleatory, drive.about.epistemic) == ("cvar:0.25", "cvar:0.25")


def test_vehicles_are_where_the_twin_has_them(drive, states):
    """After every decision, bit for bit; in between they move on."""
    cars, substeps = drive.arrays["cars"], drive.about.substeps
    for t, state in enumerate(states):
        wanted = np.stack([state.x, state.y, state.heading, state.speed], axis=-1)
        np.testing.assert_array_equal(cars[t * substeps], wanted)
        np.testing.assert_array_equal(drive.arrays["crashed"][t * substeps], state.crashed)
    moved = np.diff(cars[: substeps * (len(states) - 1) + 1, 0, 0])
    assert ((moved > 0) & (moved < 4)).all()


def test_the_rows_that_are_seen_are_those_of_the_observation(drive, states):
    for t, state in enumerate(states[:-1]):
        rows = drive.arrays["obs"][t].reshape(ROAD.observed_vehicles, -1)
        seen = drive.arrays["seen"][t]
        np.testing.assert_array_equal(seen >= 0, rows[:, 0] == 1)
        there = seen[1:][seen[1:] >= 0]
        away = np.asarray(state.x)[there] - float(state.x[0])
        np.testing.assert_allclose(np.clip(away / 200, -1, 1), rows[1:][seen[1:] >= 0, 1], atol=1e-6)


def test_every_alternative_is_what_the_twin_does(drive, states):
    """The path of an action ends where the twin is after that action and IDLE."""
    step = jax.jit(jax.vmap(ROAD.step, in_axes=(0, 0, None)))
    key = jax.random.key(0)
    five = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), states[0])
    after, _ = step(five, jnp.arange(5), key)
    end, _ = step(after, jnp.ones(5, jnp.int32), key)
    wanted = np.stack([end.x[:, 0], end.y[:, 0]], axis=-1)
    np.testing.assert_array_equal(drive.arrays["paths"][0, :, -1], wanted)
    np.testing.assert_array_equal(drive.arrays["wrecked"][0], np.asarray(end.crashed)[:, 0])


def test_returns_go_on_behind_the_time_limit(driver, drive):
    """Against an environment that lasts longer: the same drive, summed to its end."""
    longer = Highway.preset("highway-v1", duration=30, vehicles_count=5, lanes_count=3)
    whole = record(driver.agent, longer, 1, SEED, state=driver.state)
    length = int(drive.arrays["lengths"][0])
    rewards = whole.arrays["reward"].astype(float)
    for t in range(length):
        wanted = sum(0.6**j * reward for j, reward in enumerate(rewards[t:]))
        assert drive.arrays["realised"][t] == pytest.approx(wanted, abs=0.02)
    assert drive.arrays["realised"][length - 1] > drive.arrays["reward"][length - 1]


def trip(closed: bool, rewards: int = 5, length: int = 5) -> Trip:
    return Trip(np.zeros((length, 1)), np.zeros(length, np.int32), np.ones(rewards), False, True, closed, [])


def test_returns_that_are_cut_off_are_not_known():
    assert trip(closed=True).realised(0.5).tolist() == [1.9375, 1.875, 1.75, 1.5, 1.0]
    assert np.isnan(trip(closed=False).realised(0.5)).all()
    known = trip(closed=False, rewards=10).realised(0.5)
    assert np.isnan(known).tolist() == [False, False, False, False, True]
    assert [steps_beyond(gamma) for gamma in (0.5, 0.95, 1.0, 0.0)] == [7, 90, 1000, 1]


@pytest.mark.parametrize("name", ["vdqn", "uadqn", "random"])
def test_agents_without_laws_show_their_estimates(name):
    agent = make(name, "CartPole-v0")
    found = record(agent, episodes=2, seed=3, longest=6)
    assert not found.has_laws
    assert found.about.view == "frames"
    assert found.arrays["image_at"].size == found.decisions + found.episodes
    told = agent.assess(found.arrays["obs"][0])
    np.testing.assert_allclose(found.arrays["value"][0], told.value, atol=1e-5)
    assert set(found.about.parts) == set(told.account.parts)
    assert found.arrays["lengths"].max() <= 6


def test_laws_with_atoms_of_their_own_keep_them():
    shape = (3, 2, 5, 7)
    grid = np.broadcast_to(np.arange(7.0), (3, 7))
    np.testing.assert_array_equal(_atoms(grid, shape), np.arange(7.0))
    own = np.sort(np.random.default_rng(0).normal(size=shape), -1)
    np.testing.assert_array_equal(_atoms(own, shape), own)
    per_action = own[:, :1]
    np.testing.assert_array_equal(_atoms(per_action, shape), np.broadcast_to(per_action, shape))
    per_decision = own[:, 0, 0]
    np.testing.assert_array_equal(_atoms(per_decision, shape)[2, 1, 4], per_decision[2])


class Clock(FixedPolicy):
    """Chooses by the true state, the time, and tells nothing."""

    def act(self, state, obs, epsilon, key):
        raise UsageError("an observation is not enough")

    def choose_in(self, state, env, env_state, obs, key):
        return (env_state.time % 2 + 3).astype(jnp.int32)


def test_drivers_that_only_act_are_shown_too():
    found = record(Clock(), ROAD, 1, SEED, state=jnp.zeros(()))
    assert found.arrays["action"].tolist() == [3, 4, 3, 4][: found.decisions]
    np.testing.assert_array_equal(found.arrays["value"], np.eye(5)[found.arrays["action"]])
    assert "does not tell" in found.about.note
    assert (found.about.agent, found.about.parts) == ("Clock", ())


def test_a_gymnasium_environment_without_pictures_shows_what_is_seen():
    agent = tiny(Box2D(), v_min=0.0, v_max=5.0)
    found = record(agent, Box2D(), episodes=2, seed=3)
    assert found.about.view == "chart"
    assert found.about.actions == ("[1]", "[2]", "[3]")
    assert found.arrays["lengths"].tolist() == [5, 5]
    assert found.arrays["truncated"].tolist() == [False, False, False, False, True] * 2
    np.testing.assert_allclose(found.arrays["obs"][1], np.full(6, 0.1), atol=1e-6)
    rewards = found.arrays["reward"][:5]
    np.testing.assert_allclose(found.arrays["realised"][0], sum(0.99**j * r for j, r in enumerate(rewards)), rtol=1e-5)


class Painted(Box2D):
    """A world that draws itself, and cannot be driven on past its end."""

    render_mode = "rgb_array"
    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012 - as Gymnasium has it

    def step(self, action):
        if self.t >= self.length:
            raise RuntimeError("it is over")
        return super().step(action)

    def render(self):
        return np.full((60, 900, 3), 20 * self.t, np.uint8)


def test_a_gymnasium_environment_that_draws_itself():
    agent = tiny(Painted(), v_min=0.0, v_max=5.0, time_limit="bootstrap")
    found = record(agent, Painted(), episodes=2, seed=3)
    assert (found.about.view, found.about.per_second) == ("frames", 12.0)
    assert found.arrays["image_at"].tolist() == list(range(12))
    assert np.isnan(found.arrays["realised"]).all(), "what follows the time limit is not known"


@pytest.mark.clients
def test_a_name_of_gymnasium_is_drawn_where_it_can_be():
    """With pygame, which highway-env brings along."""
    agent = srl.Random("MlpPolicy", "Acrobot-v1")
    found = record(agent, episodes=1, seed=0, longest=3)
    assert found.about.view == "frames"
    assert found.decisions == 3


def test_what_cannot_be_recorded_is_told(driver):
    with pytest.raises(UsageError, match="with its state"):
        record(driver.agent, ROAD)
    with pytest.raises(UsageError, match="no environment to play in"):
        record(make("random", ROAD.spec))
    with pytest.raises(UsageError, match="episodes must be a whole number of at least 1"):
        record(driver, episodes=0)
    with pytest.raises(IncompatibleError, match="was trained on"):
        record(driver, "CartPole-v0")
    with pytest.raises(UsageError, match="needs one environment"):
        record(make("random", "CartPole-v0"), gymnasium.make_vec("CartPole-v1", num_envs=2))
