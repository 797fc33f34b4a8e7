"""Stable-baselines3's own tools on every agent, which inherit nothing of it."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from sentinel_rl.api.classes import LEARNERS, Learner, load_agent
from tests.learners import make

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:Training and eval env are not of the same type:UserWarning"),
]


@pytest.fixture(scope="module", params=LEARNERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tiny(name: str, **options: Any) -> Learner:
    return make(name, "CartPole-v1", learn_every=50, warmup=10, **options)


def monitored() -> gymnasium.Env:
    from stable_baselines3.common.monitor import Monitor

    return Monitor(gymnasium.make("CartPole-v1"))


@pytest.fixture(scope="module")
def watched(name: str, tmp_path_factory: pytest.TempPathFactory):
    """One training of every agent under all of the callbacks."""
    from stable_baselines3.common.callbacks import (
        BaseCallback,
        CheckpointCallback,
        EvalCallback,
        StopTrainingOnRewardThreshold,
    )

    class Seen(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[str] = []
            self.dones, self.rewards, self.infos = 0, 0.0, []

        def _on_training_start(self) -> None:
            self.calls.append("start")

        def _on_rollout_end(self) -> None:
            self.calls.append("rollout end")

        def _on_step(self) -> bool:
            assert self.num_timesteps == self.model.num_timesteps == self.n_calls
            self.dones += int(self.locals["dones"].sum())
            self.rewards += float(self.locals["rewards"][0])
            self.infos += [info["episode"] for info in self.locals["infos"] if "episode" in info]
            self.logger.record("custom/value", 1.0)
            return True

        def _on_training_end(self) -> None:
            self.calls.append("end")

    folder: Path = tmp_path_factory.mktemp("sb3")
    seen = Seen()
    evaluation = EvalCallback(
        monitored(),
        callback_on_new_best=StopTrainingOnRewardThreshold(reward_threshold=1e6),
        eval_freq=100,
        n_eval_episodes=2,
        best_model_save_path=str(folder / "best"),
        log_path=str(folder / "eval"),
        verbose=0,
    )
    checkpoints = CheckpointCallback(save_freq=100, save_path=str(folder / "checkpoints"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training and eval env are not of the same type")
        agent = tiny(name, monitor_dir=folder).learn(200, callback=[seen, evaluation, checkpoints])
    return agent, seen, evaluation, folder


def test_callbacks_see_every_step_under_the_known_names(watched):
    agent, seen, _, _ = watched
    assert agent.num_timesteps == seen.n_calls == 200
    assert seen.rewards == 200.0
    assert seen.dones == len(seen.infos) > 0
    assert (seen.calls[0], seen.calls[-1]) == ("start", "end")
    assert seen.calls.count("rollout end") == 5, "after each of four updates and at the end"


def test_evaluations_are_logged_and_the_best_model_is_saved(watched):
    _, _, evaluation, folder = watched
    results = np.load(folder / "eval" / "evaluations.npz")
    assert results["timesteps"].tolist() == [100, 200]
    assert np.isfinite(evaluation.last_mean_reward)
    best = load_agent(folder / "best" / "best_model.zip")
    assert best.num_timesteps in (100, 200)


def test_checkpoints_are_agents(watched):
    agent, _, _, folder = watched
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["rl_model_100_steps.zip", "rl_model_200_steps.zip"]
    last = load_agent(folder / "checkpoints" / names[-1])
    assert last.assess(np.ones(4)).to_json() == agent.assess(np.ones(4)).to_json()


def test_a_reward_threshold_stops_training(name: str):
    from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold

    stop = StopTrainingOnRewardThreshold(reward_threshold=1.0)
    agent = tiny(name).learn(200, EvalCallback(monitored(), callback_on_new_best=stop, eval_freq=60, verbose=0))
    assert agent.num_timesteps == 60


def test_callback_lists_of_sb3_work_too():
    from stable_baselines3.common.callbacks import CallbackList, StopTrainingOnMaxEpisodes

    agent = tiny("sentinel").learn(200, CallbackList([StopTrainingOnMaxEpisodes(max_episodes=2)]))
    assert 0 < agent.num_timesteps < 200


def test_evaluate_policy_on_one_and_on_many(watched):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = watched[0]
    rewards, lengths = evaluate_policy(agent, monitored(), n_eval_episodes=3, return_episode_rewards=True)
    assert rewards == [float(length) for length in lengths]
    mean, spread = evaluate_policy(agent, make_vec_env("CartPole-v1", n_envs=3, seed=0), n_eval_episodes=6)
    assert mean >= 1
    assert np.isfinite(spread)
    evaluate_policy(agent, agent.get_env(), n_eval_episodes=1, warn=False)


def test_monitor_files_are_read_by_its_plotter(watched):
    pytest.importorskip("pandas")
    from stable_baselines3.common.results_plotter import load_results

    table = load_results(str(watched[3]))
    assert (table["r"] == table["l"]).all()
    assert table["l"].sum() <= 200
