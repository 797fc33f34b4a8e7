"""The reference drivers of the highway, on a short road with three other cars."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents import registry as agents
from sentinel_rl.agents.highway import FASTER, IDLE, LANE_LEFT, LANE_RIGHT, SLOWER, HighwayRule, HighwaySearch
from sentinel_rl.agents.registry import make_agent, named_options
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.highway import Highway
from sentinel_rl.errors import UsageError
from sentinel_rl.training.evaluation import evaluate

LANES = 3
ENV = Highway(lanes_count=LANES, vehicles_count=3, observed_vehicles=4, simulation_frequency=5, duration=5)
KEY = jax.random.key(0)
RULE, SEARCH = HighwayRule(lanes=LANES), HighwaySearch(depth=2, hold=1)
FAR = 150.0

step = jax.jit(lambda state, action: ENV.step(state, action, KEY))
drive = jax.jit(lambda obs: RULE.act((), obs, jnp.zeros(()), KEY))
observe = jax.jit(ENV.observe)
choose = jax.jit(lambda state: SEARCH.choose_in((), ENV, state, jnp.zeros(20), KEY))
choose_many = jax.jit(jax.vmap(lambda state: SEARCH.choose_in((), ENV, state, jnp.zeros(20), KEY)))


@pytest.fixture(scope="module")
def start():
    return jax.jit(ENV.reset)(KEY)[0]


@pytest.fixture
def road(start):
    """Make a state: the ego's lane and speed, and by car how far it is ahead, its lane and its speed."""

    def make(lane, speed, *cars):
        cars = [*cars, *[(FAR + 10 * i, i, 22.0) for i in range(3 - len(cars))]]
        distance, lanes, speeds = (np.array(row, np.float32) for row in zip((0, lane, speed), *cars, strict=True))
        still = np.zeros(4, np.float32)
        return start._replace(
            x=jnp.asarray(100 + distance),
            y=jnp.asarray(4 * lanes),
            heading=jnp.asarray(still),
            speed=jnp.asarray(speeds),
            target_lane=jnp.asarray(np.round(lanes), jnp.int32),
            target_speed=jnp.asarray(speeds),
            wait=jnp.asarray(np.full(4, 50), start.wait.dtype),
        )

    return make


@pytest.mark.parametrize(
    ("what", "lane", "speed", "cars", "action"),
    [
        ("free road", 1, 25.0, [], FASTER),
        ("free road at top speed", 2, 30.0, [], IDLE),
        ("free road at top speed, not right-most", 1, 30.0, [], LANE_RIGHT),
        ("slower car near, cars on both sides", 1, 25.0, [(15, 1, 20.0), (2, 0, 25.0), (3, 2, 25.0)], SLOWER),
        ("the left is free", 1, 25.0, [(15, 1, 20.0), (3, 2, 25.0)], LANE_LEFT),
        ("the right is free", 1, 25.0, [(15, 1, 20.0), (3, 0, 25.0)], LANE_RIGHT),
        ("the right lane is free in the distance only", 1, 30.0, [(15, 1, 20.0), (20, 2, 21.0)], LANE_LEFT),
        ("no lane to the left of the left-most", 0, 25.0, [(15, 0, 20.0), (3, 1, 25.0)], SLOWER),
        ("no lane to the right of the right-most", 2, 25.0, [(15, 2, 20.0), (3, 1, 25.0)], SLOWER),
        ("a car between lanes is on both", 1, 25.0, [(15, 1, 20.0), (3, 0.45, 25.0), (3, 2, 25.0)], SLOWER),
        ("neither near nor free", 2, 25.0, [(30, 2, 25.0), (5, 1, 25.0)], IDLE),
    ],
)
def test_rule(road, what, lane, speed, cars, action):
    assert drive(observe(road(lane, speed, *cars))) == action, what


def test_rule_sees_no_cars():
    alone = jnp.zeros(20).at[:4].set(jnp.array([1.0, 0.5, 2 / 3, 25 / 80]))
    assert drive(alone) == FASTER


def follow(state, actions):
    """The rewards of a sequence until the episode ends, one step after the other, and whether it ended by a crash."""
    rewards = []
    for action in actions:
        state, after = step(state, jnp.int32(action))
        rewards.append(float(after.reward))
        if after.terminated or after.truncated:
            break
    return rewards, bool(after.terminated)


@pytest.fixture
def tight(road):
    """A road on which idling ends in a crash, one that is blocked everywhere but far, and one near the limit."""
    blocked = road(1, 25.0, (26, 1, 5.0), (1, 0, 25.0))
    queue = road(0, 30.0, (30, 0, 10.0), (40, 1, 12.0), (60, 2, 15.0))
    return [blocked, queue, queue._replace(time=jnp.asarray(4, queue.time.dtype))]


def test_search_avoids_a_crash_that_idling_runs_into(tight):
    state = tight[0]
    assert follow(state, [IDLE] * 3)[1]
    for _ in range(4):
        action = choose(state)
        assert action != IDLE or not follow(state, [IDLE])[1]
        state, after = step(state, action)
        assert not after.terminated


def test_search_is_the_best_of_all_sequences_and_a_batch_chooses_as_one_does(tight):
    together = choose_many(jax.tree.map(lambda *leaves: jnp.stack(leaves), *tight))
    for state, chosen in zip(tight, together, strict=True):
        values = {}
        for sequence in itertools.product(range(5), repeat=2):
            rewards, _ = follow(state, [*sequence, IDLE])
            value = sum(0.99**t * reward for t, reward in enumerate(rewards))
            values[sequence[0]] = max(values.get(sequence[0], 0.0), value)
        assert values[int(chosen)] >= max(values.values()) - 1e-4
        assert chosen == choose(state)


def test_search_is_idle_where_nothing_else_is_better(road):
    """At top speed on the right of an empty road FASTER and LANE_RIGHT do nothing either."""
    assert choose(road(2, 30.0)) == IDLE


def test_names_and_options():
    rule = make_agent("highway-rule", "sentinel/highway-fast-v0", near=7.0)
    assert (rule.lanes, rule.near, make_agent("highway-rule", ENV, lanes=3).lanes) == (3, 7.0, 3)
    assert make_agent("highway-rule", "sentinel/highway-v1") == HighwayRule()
    search = make_agent("highway-search", ENV, depth=1)
    assert named_options(search) == ("highway-search", {"depth": 1, "hold": 2, "gamma": 0.99})
    assert make_agent("constant", ENV, action="SLOWER") == make_agent("random", ENV, action=SLOWER)
    assert agents.fixed_names() == ["random", "constant", "highway-rule", "highway-search"]


@pytest.mark.parametrize(
    ("name", "env", "options", "message"),
    [
        ("highway-rule", "CartPole-v1", {}, "highway-rule drives on the highway, and CartPole-v1"),
        ("highway-search", "CartPole-v1", {}, "highway-search drives on the highway, and CartPole-v1"),
        ("highway-rule", ENV, {"nearr": 1}, "unknown option nearr: did you mean near"),
        ("highway-search", ENV, {"depth": 0}, "a depth of 1 to 6"),
        ("highway-search", ENV, {"hold": -1}, "got depth=2 and hold=-1"),
        ("constant", ENV, {}, "which action\\? Give one of LANE_LEFT"),
        ("constant", ENV, {"action": "STOP"}, "'STOP' does not exist: sentinel/highway has the actions LANE_LEFT"),
        ("constant", "CartPole-v1", {"action": "LEFT"}, "no names for its actions"),
        ("constant", "CartPole-v1", {"action": 2}, "CartPole-v1 has the actions 0 to 1"),
    ],
)
def test_errors(name, env, options, message):
    with pytest.raises(UsageError, match=message):
        make_agent(name, env, **options)


def test_a_driver_on_another_environment():
    with pytest.raises(UsageError, match="CartPole-v1 is another environment"):
        evaluate(HighwaySearch(), (), CartPole(500), 1)
    with pytest.raises(UsageError, match="got 4 numbers"):
        evaluate(HighwayRule(), (), CartPole(500), 1)
    with pytest.raises(UsageError, match="only an observation is given"):
        SEARCH.greedy((), jnp.zeros(20), KEY)
