"""SB3's own vectors, normalisation, callbacks and loggers with the methods of its agents."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from sentinel_rl.api.classes import Sentinel
from tests.tiny import TINY

pytestmark = pytest.mark.clients
RANGE = {"v_min": 0.0, "v_max": 100.0}


def agent_on(venv: Any, **options: Any) -> Sentinel:
    return Sentinel("MlpPolicy", venv, **(TINY | RANGE | options))


@pytest.fixture(scope="module")
def vec_env() -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CartPole-v1", n_envs=3, seed=0)


def test_any_number_of_copies_counts_every_step(vec_env: Any):
    from stable_baselines3.common.callbacks import BaseCallback

    class Steps(BaseCallback):
        calls = 0

        def _on_step(self) -> bool:
            self.calls += 1
            assert len(self.locals["dones"]) == 3
            return True

    seen = Steps()
    agent = agent_on(vec_env).learn(100, seen)
    assert (agent.num_timesteps, int(agent.state.replay.newest)) == (100, 99)
    assert seen.calls == 34, "three transitions a step, one in the last"
    assert agent.get_env() is vec_env
    assert agent.get_vec_normalize_env() is None


def test_a_time_limit_is_no_end():
    """MountainCar ends by its time limit only, which SB3 tells in the infos."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    venv = DummyVecEnv([lambda: gymnasium.make("MountainCar-v0", max_episode_steps=10)])
    agent = agent_on(venv, v_min=-100.0, v_max=0.0).learn(60)
    rows = np.asarray(agent.state.replay.rows)[:60]
    assert rows[:, 2 * 2 + 2].sum() == 0, "nothing terminated"
    assert np.flatnonzero(rows[:, 2 * 2 + 3]).tolist() == [9, 19, 29, 39, 49, 59]
    # Within an episode the successor is the next observation; after its end it is not.
    follows = (rows[:-1, 2:4] == rows[1:, :2]).all(axis=1)
    assert np.flatnonzero(~follows).tolist() == [9, 19, 29, 39, 49]


def test_normalised_observations_and_rewards(tmp_path: Path):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecNormalize

    normalised = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1), gamma=0.99)
    agent = agent_on(normalised).learn(60)
    assert agent.get_vec_normalize_env() is normalised
    assert normalised.obs_rms.count > 60
    rows = np.asarray(agent.state.replay.rows)[:60]
    assert np.abs(rows[:, :4]).max() <= 10, "observations are clipped as VecNormalize does"
    assert not (rows[:, 9] == 1.0).all(), "rewards are normalised, too"
    normalised.training = False
    assert np.isfinite(evaluate_policy(agent, normalised, n_eval_episodes=2)[0])
    path = agent.save(tmp_path / "normalised", include="training")
    assert Sentinel.load(path, env=normalised).learn(20, reset_num_timesteps=False).num_timesteps == 80


def test_a_logger_of_sb3_writes_the_files(vec_env: Any, tmp_path: Path):
    from stable_baselines3.common.logger import configure

    agent = agent_on(vec_env)
    logger = configure(str(tmp_path), ["csv"])
    agent.set_logger(logger)
    agent.learn(60, log_interval=1)
    logger.close()
    head = (tmp_path / "progress.csv").read_text().splitlines()[0]
    assert {"rollout/ep_rew_mean", "train/loss"} <= set(head.split(","))
