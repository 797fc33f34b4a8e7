import os
import subprocess
import sys

import gymnasium
import pytest

from sentinel_rl.envs import CartPole, Env, Toy, make_env
from sentinel_rl.envs.registry import TWINS, WORLDS, register


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("CartPole-v0", CartPole(200)),
        ("CartPole-v1", CartPole(500)),
        ("sentinel/CartPole-v0", CartPole(200)),
        ("sentinel/CartPole-v1", CartPole(500)),
        ("sentinel_rl.envs:sentinel/CartPole-v1", CartPole(500)),
        ("sentinel/Toy-v0", Toy()),
    ],
)
def test_names(name: str, env: Env):
    assert make_env(name) == env


@pytest.mark.parametrize("name", ["Acrobot-v1", "LunarLander-v3", "some_package:Maze-v0"])
def test_what_only_gymnasium_has_is_none(name: str):
    assert make_env(name) is None


def test_settings_replace_those_of_the_name():
    assert make_env("CartPole-v1", max_steps=30, gravity=1.6) == CartPole(30, gravity=1.6)
    assert make_env("sentinel/Toy-v0", means=(2.0, 1.0)) == Toy(means=(2.0, 1.0))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("CartPole", "CartPole-v1"),
        ("cartpole-v0", "CartPole-v0"),
        ("sentinel/Toy", "sentinel/Toy-v0"),
        ("Sentinel/CartPol-v1", "sentinel/CartPole-v1"),
        ("Acrobt-v1", "Acrobot-v1"),
    ],
)
def test_unknown_names_suggest_the_nearest(name: str, nearest: str):
    with pytest.raises(ValueError, match=f"unknown environment '{name}': did you mean '{nearest}'"):
        make_env(name)


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(ValueError, match=r"unknown environment 'qqq': JAX environments: sentinel/CartPole-v0, "):
        make_env("qqq")


def test_gymnasium_knows_every_name_once():
    assert set(WORLDS) <= set(gymnasium.registry)
    register()
    for twin, name in TWINS.items():
        original, ours = gymnasium.spec(twin), gymnasium.spec(name)
        assert (original.max_episode_steps, original.reward_threshold) == (
            ours.max_episode_steps,
            ours.reward_threshold,
        )
        assert gymnasium.envs.registration.EnvSpec.from_json(ours.to_json()) == ours


def test_the_library_alone_does_not_import_gymnasium():
    script = "import sys, sentinel_rl; sys.exit('gymnasium' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"PYTHONPATH": "src"})
