"""Against heavy real parts: stable-baselines3, and Gymnasium's own pictures through pygame."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from tests.envs.worlds import OURS

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:.*-v0 is out of date:DeprecationWarning"),
]


@pytest.mark.parametrize("name", OURS)
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


@pytest.mark.filterwarnings("ignore:.*HumanRendering wrapper is being applied:UserWarning")
@pytest.mark.filterwarnings("ignore:.*pkg_resources:")
def test_a_window_shows_the_picture(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(sys.modules, "highway_env", None)  # as if it were not installed
    pygame = pytest.importorskip("pygame")
    env = gymnasium.make("sentinel/highway-v1", render_mode="human", policy_frequency=15)
    env.reset(seed=0)
    for action in (1, 3):
        env.step(action)
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
        np.testing.assert_array_equal(shown, env.unwrapped.render())
    env.close()
    assert pygame.display.get_surface() is None


def test_the_example_trains_an_agent():
    script = Path(__file__).parents[2] / "examples" / "highway_sb3.py"
    arguments = ["--steps", "1024", "--copies", "16", "--episodes", "20"]
    out = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=True).stdout
    drivers = [line.split(":")[0].strip() for line in out.splitlines() if "return" in line]
    assert drivers == ["PPO", "always SLOWER", "always IDLE", "random"]
