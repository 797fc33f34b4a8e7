"""RL Baselines3 Zoo trains, plays and optimises SENTINEL through the plug-in of `examples/`.

The Zoo wants older versions of two packages than the library's other tools: it lives in a folder of its own,
`.venv/zoo`, which `make test-clients` fills, and is run in processes that look there first.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel_rl import load_agent

pytestmark = pytest.mark.clients
ROOT = Path(__file__).parents[2]
ZOO = Path(sys.prefix) / "zoo"
CONFIGURATION = """
CartPole-v1:
  n_timesteps: 120
  policy: MlpPolicy
  n_envs: 2
  normalize: true
  k: 2
  atoms: 5
  v_min: 0.0
  v_max: 100.0
  policy_kwargs: "dict(net_arch=[4])"
  learning_rate: lin_1e-3
  buffer_size: 64
  learning_starts: 10
  train_freq: 20
  batch_size: 8
  gradient_steps: 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ZOO / "rl_zoo3").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{ZOO} is missing: run the tests with `make test-clients`")
        pytest.skip("`make test-clients` installs the Zoo")
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "sentinel.yml").write_text(CONFIGURATION)
    zoo(folder, "train", "--conf-file", "sentinel.yml", "--eval-freq", "50", "--eval-episodes", "1", "--seed", "3")
    return folder


def zoo(folder: Path, command: str, *arguments: str) -> str:
    """Run the launcher in a folder; returns what it printed."""
    words = ["--algo", "sentinel", "--env", "CartPole-v1", "--device", "auto", *arguments]
    path = os.pathsep.join([str(ZOO), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "rl_zoo.py"), command, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_the_zoo_trains_it(folder: Path):
    run = folder / "logs" / "sentinel" / "CartPole-v1_1"
    agent = load_agent(run / "CartPole-v1.zip")
    assert (agent.kind, agent.num_timesteps, agent.seed) == ("sentinel", 120, 3)
    assert (agent.agent.learning_rate, agent.agent.learning_rate_end, agent.agent.hidden) == (1e-3, 0.0, (4,))
    assert load_agent(run / "best_model.zip").num_timesteps in (50, 100), "found by its evaluations"
    assert (run / "CartPole-v1" / "vecnormalize.pkl").exists()


def test_the_zoo_plays_it(folder: Path):
    printed = zoo(folder, "enjoy", "--folder", "logs", "--no-render", "--n-timesteps", "120", "--load-best")
    assert "Mean reward:" in printed


def test_the_zoo_optimises_it(folder: Path):
    search = ["--optimize", "--n-trials", "2", "--n-evaluations", "1", "--sampler", "random", "--pruner", "none"]
    printed = zoo(folder, "train", "--conf-file", "sentinel.yml", *search, "--no-optim-plots", "--eval-episodes", "1")
    assert "Number of finished trials:  2" in printed
    assert "aleatory:" in printed
