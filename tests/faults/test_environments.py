"""Environments that misbehave are named, with the place: in training, in evaluations, and which copy of a vector."""

import functools
import math
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from sentinel_rl import evaluate
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import NumericalError, SentinelWarning, UsageError
from sentinel_rl.training import host_training
from sentinel_rl.training.host_envs import GymnasiumWorld, VectorWorld
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.schedule import Plan

GOOD = np.zeros(3, np.float32)


class Mine(gymnasium.Env):
    """Three numbers to see, two actions; returns what it is told to."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Discrete(2)

    def __init__(self, start: Any = (GOOD, {}), step: Any = (GOOD, 1.0, False, False, {})):
        self._start, self._step = start, step

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._given(self._start)

    def step(self, action: int) -> Any:
        return self._given(self._step)

    @staticmethod
    def _given(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value


def stepped(**wrong: Any) -> Any:
    """What `step` returns with some of it wrong."""
    right = {"obs": GOOD, "reward": 1.0, "terminated": False, "truncated": False, "info": {}}
    return tuple({**right, **wrong}.values())


STEPS: list[tuple[Any, type[Exception], str]] = [
    (stepped(obs=np.zeros(4)), UsageError, r"observation of Mine has the shape \(4,\) .*\(3,\) was announced"),
    (stepped(obs=np.zeros(0)), UsageError, r"observation of Mine has the shape \(0,\)"),
    (stepped(obs=np.zeros((3, 3))), UsageError, r"observation of Mine has the shape \(3, 3\)"),
    (stepped(obs=0.5), UsageError, "observation of Mine has the shape"),
    (stepped(obs="abc"), UsageError, "observation of Mine is str 'abc'"),
    (stepped(obs=None), UsageError, "observation of Mine"),
    (stepped(obs={"a": 1}), UsageError, "observation of Mine is dict"),
    (stepped(obs=[[1.0], [1.0, 2.0]]), UsageError, "observation of Mine is list"),
    (stepped(obs=["a", "b", "c"]), UsageError, "observation of Mine is list"),
    (
        stepped(obs=[0.0, math.nan, 0.0]),
        NumericalError,
        r"observation of Mine holds nan at index 1 \(step 7, episode 0",
    ),
    (stepped(obs=[0.0, 0.0, math.inf]), NumericalError, "observation of Mine holds inf at index 2"),
    (stepped(reward="one"), UsageError, "the reward of Mine must be one number, got str 'one'"),
    (stepped(reward=None), UsageError, "the reward of Mine must be one number, got NoneType None"),
    (stepped(reward=np.zeros(2)), UsageError, r"the reward of Mine must be one number, got an array of shape \(2,\)"),
    (stepped(reward=[]), UsageError, "the reward of Mine must be one number"),
    (stepped(reward=1j), UsageError, "the reward of Mine must be one number, got complex"),
    (stepped(reward={"r": 1}), UsageError, "the reward of Mine must be one number, got dict"),
    (stepped(reward=math.nan), NumericalError, "reward of Mine holds nan"),
    (stepped(reward=-math.inf), NumericalError, "reward of Mine holds -inf"),
    (stepped(reward=1e300), NumericalError, "reward of Mine holds inf"),
    (stepped(terminated=None), UsageError, "terminated of Mine must be true or false, got NoneType None"),
    (stepped(terminated="no"), UsageError, "terminated of Mine must be true or false, got str 'no'"),
    (stepped(terminated=0.5), UsageError, "terminated of Mine must be true or false"),
    (stepped(terminated=[]), UsageError, "terminated of Mine must be true or false"),
    (stepped(terminated=2), UsageError, "terminated of Mine must be true or false"),
    (stepped(truncated=None), UsageError, "truncated of Mine must be true or false"),
    (stepped(truncated=np.array([True, False])), UsageError, "truncated of Mine must be true or false"),
    (stepped(info=None), UsageError, "a dictionary, got 5 values"),
    ((GOOD, 1.0, False, {}), UsageError, "got 4 values .*old gym, with one `done`"),
    ((GOOD,), UsageError, "must return observation, reward, terminated, truncated"),
    (None, UsageError, "got NoneType None"),
    (GOOD, UsageError, "got an array of shape"),
    (
        RuntimeError("the motor is broken"),
        UsageError,
        r"Mine raised RuntimeError: .*motor is broken.* in step\(\) \(step 7",
    ),
    (ZeroDivisionError(), UsageError, "the last checkpoint is kept, and the same command resumes from it"),
]
STARTS: list[tuple[Any, type[Exception], str]] = [
    ((np.array([math.nan] * 3), {}), NumericalError, r"at reset holds nan at index 0 \(episode 0, seed 5\)"),
    ((np.zeros(4), {}), UsageError, r"observation of Mine at reset has the shape \(4,\)"),
    (GOOD, UsageError, r"reset\(\) of Mine must return an observation and a dictionary"),
    (None, UsageError, "got NoneType"),
    ((GOOD, None), UsageError, "got 2 values"),
    (ValueError("no map"), UsageError, r"Mine raised ValueError: 'no map' in reset\(\)"),
]


@pytest.mark.attack("bad-environment")
@pytest.mark.parametrize(("step", "error", "message"), STEPS)
def test_a_step_that_is_wrong(step, error, message):
    world = GymnasiumWorld(Mine(step=step), seed=5)
    world.start()
    with pytest.raises(error, match=message):
        world.step(np.array([0]), 7)


@pytest.mark.attack("bad-environment")
@pytest.mark.parametrize(("start", "error", "message"), STARTS)
def test_a_reset_that_is_wrong(start, error, message):
    with pytest.raises(error, match=message):
        GymnasiumWorld(Mine(start=start), seed=5).start()


def test_what_may_be_is_taken():
    """Numbers of NumPy, an array of one number, 0 and 1 as ends."""
    for step in (
        stepped(reward=np.float64(2), terminated=np.bool_(True)),
        stepped(reward=np.array([2]), truncated=1, terminated=0),
        stepped(reward=2, obs=[0, 0, 0], terminated=np.array(True)),
    ):
        world = GymnasiumWorld(Mine(step=step), seed=5)
        world.start()
        happened = world.step(np.array([0]), 0)
        assert happened.reward.tolist() == [2.0]
        assert (happened.terminated | happened.truncated).tolist() == [True]
        assert world.episode == 1


@pytest.mark.attack("bad-environment")
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            Mine(step=RuntimeError("stuck")),
            UsageError,
            r"raised RuntimeError: 'stuck' in step\(\) \(environment 2, step 9",
        ),
        (
            Mine(step=stepped(reward=math.nan)),
            NumericalError,
            r"reward of SyncVectorEnv holds nan at index 0 \(environment 2, step 9",
        ),
        (Mine(step=stepped(obs=[0, math.inf, 0])), NumericalError, r"holds inf at index 1 \(environment 2, step 9"),
        (Mine(step=stepped(obs=np.zeros(5))), UsageError, r"environment 2 shows an array of shape \(5,\)"),
        (Mine(start=RuntimeError("stuck")), UsageError, r"in reset\(\) \(environment 2, step 0"),
        (Mine(start=(np.full(3, math.nan), {})), NumericalError, r"at reset holds nan at index 0 \(environment 2, "),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_in_a_vector_the_copy_is_named(wrong, error, message):
    copies = [Mine(), Mine(), wrong, Mine()]
    vector = SyncVectorEnv([functools.partial(lambda copy: copy, copy) for copy in copies])

    def play():
        world = VectorWorld(vector, seed=5)
        world.start()
        world.step(np.zeros(4, int), 9)

    with pytest.raises(error, match=message):
        play()


@pytest.mark.attack("bad-environment")
@pytest.mark.parametrize(("step", "message"), [(STEPS[i][0], STEPS[i][2]) for i in (11, 20, 28)])
def test_evaluations_name_it_as_well(step, message):
    agent = make_agent("constant", resolve_env(Mine()), action=0)
    with pytest.raises(UsageError, match=message):
        evaluate(agent, agent.init(resolve_env(Mine()).spec, jax.random.key(0)), Mine(step=step), 1, seed=3)


@pytest.mark.attack("bad-environment")
@pytest.mark.parametrize(("obs_size", "num_actions"), [(0, 2), (4, 0), (-1, 2), (2.5, 2), ("4", 2), (True, 2)])
@pytest.mark.usefixtures("untyped")
def test_sizes_that_cannot_be(obs_size, num_actions):
    with pytest.raises(UsageError, match="it must be a whole number of at least 1"):
        EnvSpec("Mine", obs_size, num_actions)


@pytest.mark.attack("bad-environment")
def test_an_observation_of_size_zero_and_returns_beyond_float32():
    class Empty(Mine):
        observation_space = spaces.Box(-1, 1, (0,))

    with pytest.raises(UsageError, match="holds no numbers"):
        resolve_env(Empty())
    with pytest.raises(UsageError, match="v_max must be a finite number"):
        make_agent("sentinel", Mine(), v_min=0.0, v_max=1e308)
    with pytest.raises(UsageError, match=r"beyond 1e\+30"):
        make_agent("sentinel", EnvSpec("Mine", 3, 2, reward_range=(0.0, 1e37)))


@pytest.mark.attack("bad-environment")
def test_an_episode_that_never_ends_is_warned_about_once(monkeypatch):
    monkeypatch.setattr(host_training, "_ENDLESS", 20)
    handle = resolve_env(Mine())
    training = HostTraining(make_agent("constant", handle, action=0), handle, Plan(60), 5)
    with pytest.warns(SentinelWarning, match=r"has not ended in 20 steps .*TimeLimit\(env, 1000\)") as told:
        list(training.chunks())
    assert len(told) == 1
