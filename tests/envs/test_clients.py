"""Against heavy real parts: stable-baselines3, and Gymnasium's own pictures through pygame."""

import gymnasium
import numpy as np
import pytest

from sentinel_rl.envs.registry import WORLDS

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:.*-v0 is out of date:DeprecationWarning"),
]


@pytest.mark.parametrize("name", WORLDS)
def test_stable_baselines_checker_passes(name: str):
    from stable_baselines3.common.env_checker import check_env

    check_env(gymnasium.make(name), skip_render_check=False)


def test_stable_baselines_trains_on_it():
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", gymnasium.make("sentinel/CartPole-v1"), learning_starts=50, seed=0, device="cpu")
    assert model.learn(200).num_timesteps == 200


@pytest.mark.filterwarnings("ignore:.*pkg_resources:")
@pytest.mark.parametrize("motion", [(0.0, 0.0, 0.0, 0.0), (-1.2, 0.0, 0.2, 0.0), (2.0, 0.0, -0.15, 0.0)])
def test_the_picture_is_gymnasiums(motion: tuple[float, ...]):
    pytest.importorskip("pygame")
    original, ours = (gymnasium.make(name, render_mode="rgb_array") for name in ("CartPole-v1", "sentinel/CartPole-v1"))
    original.reset()
    ours.reset()
    original.unwrapped.state = np.array(motion)
    ours.unwrapped._state = ours.unwrapped._state._replace(motion=np.array(motion, np.float32))
    gap = np.abs(original.render().astype(float) - ours.render())
    assert (gap.max(-1) > 64).mean() < 0.002, "only edges may differ"
