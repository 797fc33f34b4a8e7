"""The methods that SB3's agents have: parameters, replays, environments, loggers; vectors by SB3's interface."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sentinel_rl.api.classes import Random, Sentinel
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import IncompatibleError, UsageError
from tests.tiny import Box2D, tiny
from tests.training.pole import bit_equal


@pytest.fixture(scope="module")
def trained() -> Sentinel:
    return tiny(seed=3).learn(60)


def test_parameters_go_from_one_agent_to_another(trained: Sentinel):
    given = trained.get_parameters()
    assert set(given) == {"online", "target", "optimiser"}
    other = tiny(seed=4).set_parameters(given)
    for name in ("online", "target", "optimiser"):
        assert bit_equal(getattr(other.state, name), getattr(trained.state, name))
    observations = np.random.default_rng(0).normal(size=(40, 4))
    np.testing.assert_array_equal(other.predict(observations)[0], trained.predict(observations)[0])
    # They are what training goes on from, with an empty replay.
    begun = other.learn(25, callback=lambda seen, _: seen["self"].num_timesteps < 15)
    assert bit_equal(begun.state.online, trained.state.online), "no update in the warm-up"
    assert int(begun.state.replay.newest) == 14


def test_parameters_of_a_file(trained: Sentinel, tmp_path: Path):
    path = trained.save(tmp_path / "pole")
    other = tiny(seed=4).set_parameters(tmp_path / "pole", exact_match=False)  # the ending may be left out
    assert bit_equal(other.state.online, trained.state.online)
    assert bit_equal(other.state.target, trained.state.online)
    with pytest.raises(IncompatibleError, match=r"'optimiser', which is not given: give it, or exact_match=False"):
        tiny().set_parameters(path)


def test_parameters_of_another_agent_are_refused(trained: Sentinel):
    other = tiny(hidden=(5,))
    before = jax.tree.leaves(other.state)
    with pytest.raises(IncompatibleError, match=r"of another agent:(.|\n)*online.weights\[0\] +\[2, 2, 4, 4\]"):
        other.set_parameters(trained.get_parameters())
    with pytest.raises(IncompatibleError, match="there is no 'actor'"):
        other.set_parameters({"actor": {}})
    assert bit_equal(before, jax.tree.leaves(other.state))


def test_a_replay_goes_from_one_agent_to_another(trained: Sentinel, tmp_path: Path):
    path = trained.save_replay_buffer(tmp_path / "seen")
    other = tiny(seed=4)
    other.load_replay_buffer(tmp_path / "seen")
    assert bit_equal(other.state.replay, trained.state.replay)
    other.learn(25, callback=lambda seen, _: seen["self"].num_timesteps < 15)
    assert int(other.state.replay.newest) == 74
    # 64 places: the transitions 64 to 74 have replaced the first ones.
    np.testing.assert_array_equal(other.state.replay.rows[11:60], trained.state.replay.rows[11:60])
    with pytest.raises(IncompatibleError, match="rows"):
        tiny(Box2D(), v_min=0.0, v_max=6.0).load_replay_buffer(path)
    with pytest.raises(IncompatibleError, match="holds no replay"):
        tiny().load_replay_buffer(trained.save(tmp_path / "policy"))
    with pytest.raises(UsageError, match="has no replay"):
        Random("MlpPolicy", "CartPole-v0").save_replay_buffer(tmp_path / "none")


def test_another_environment(trained: Sentinel):
    agent = tiny(seed=3).learn(30)
    agent.set_env("CartPole-v1")
    assert agent.spec.max_steps == 500
    assert agent.learn(30, reset_num_timesteps=False).num_timesteps == 60
    with pytest.raises(IncompatibleError, match="this agent was trained on CartPole-v1"):
        agent.set_env("sentinel/Toy-v0")
    assert trained.get_vec_normalize_env() is None


class Listing:
    """A logger with the two methods of SB3's."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.dumps: list[int] = []

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        self.values[key] = value

    def dump(self, step: int = 0) -> None:
        self.dumps.append(step)


def test_a_logger_of_ones_own_takes_all(trained: Sentinel):
    logger = Listing()
    agent = tiny(Box2D(), v_min=0.0, v_max=6.0)
    agent.set_logger(logger)
    agent.learn(30, callback=lambda seen, _: seen["self"].logger.record("mine", 1.0))
    assert logger.dumps == [30]
    assert logger.values.keys() >= {"mine", "rollout/ep_rew_mean", "train/loss", "time/fps"}
    agent.learn(30, log_interval=100, reset_num_timesteps=False)
    assert logger.dumps == [30, 60], "the end is always told"


class FakeVec:
    """SB3's interface: the next episode begins in the step that ends one."""

    def __init__(self, count: int):
        self.envs, self.num_envs = [Box2D(length=3 + i) for i in range(count)], count
        self.observation_space, self.action_space = Box2D.observation_space, Box2D.action_space

    def get_attr(self, name: str) -> list[Any]:
        return [getattr(env, name) for env in self.envs]

    def seed(self, seed: Any) -> None: ...

    def step_async(self, actions: Any) -> None: ...

    def reset(self) -> np.ndarray:
        return np.stack([env.reset()[0] for env in self.envs])

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        rows = []
        for env, action in zip(self.envs, actions, strict=True):
            obs, reward, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                info = {"terminal_observation": obs, "TimeLimit.truncated": truncated and not terminated}
                obs, _ = env.reset()
            rows.append((obs, reward, terminated or truncated, info))
        obs, rewards, dones, infos = zip(*rows, strict=True)
        return np.stack(obs), np.array(rewards), np.array(dones), list(infos)

    def close(self) -> None: ...


def test_a_vector_of_sb3_counts_every_step():
    venv = FakeVec(3)
    agent = tiny(venv, v_min=0.0, v_max=6.0).learn(50)
    assert agent.num_timesteps == 50
    assert int(agent.state.replay.newest) == 49
    assert sum(env.total for env in venv.envs) == 51, "the last step has two of three"
    # The successor of a last step is the last observation, not the first one of the next episode.
    rows = np.asarray(agent.state.replay.rows)[:50]
    ended = rows[:, 15] > 0
    assert set((10 * rows[ended][:, 6]).round().tolist()) == {3, 4, 5}
    assert not rows[:, 14].any(), "time limits are truncations"
    assert agent.get_env() is venv
    assert resolve_env(venv).spec.num_actions == 3
