"""The names of the environments: those of the library, of Gymnasium and of users, and what is refused."""

import os
import subprocess
import sys
from typing import Any

import gymnasium
import pytest

from sentinel_rl.envs import CartPole, Env, EnvSpec, Toy, env_names, make_env, register_env, resolve_env
from sentinel_rl.envs.registry import _twins, make_jax_env, register
from sentinel_rl.errors import UsageError
from tests.envs.worlds import OURS


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
    assert make_jax_env(name) is None


def test_what_only_gymnasium_has_is_made_by_it():
    env = make_env("Acrobot-v1", render_mode="rgb_array")
    assert isinstance(env, gymnasium.Env)
    assert (env.spec.id, env.render_mode) == ("Acrobot-v1", "rgb_array")


def test_settings_replace_those_of_the_name():
    assert make_env("CartPole-v1", max_steps=30, gravity=1.6) == CartPole(30, gravity=1.6)
    assert make_env("sentinel/Toy-v0", means=(2.0, 1.0)) == Toy(means=(2.0, 1.0))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("CartPole-v1", {"gravitas": 1.0}, "CartPole-v1: .*gravitas"),
        ("Acrobot-v1", {"gravitas": 1.0}, "Acrobot-v1.*gravitas"),
        ("some_package:Maze-v0", {}, "some_package"),
    ],
)
def test_what_cannot_be_made_is_the_users_mistake(name: str, settings: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        make_env(name, **settings)


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
    with pytest.raises(UsageError, match=f"unknown environment '{name}': did you mean '{nearest}'"):
        make_env(name)


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(UsageError, match=r"unknown environment 'qqq': JAX environments: sentinel/CartPole-v0, "):
        make_env("qqq")


def test_gymnasium_knows_every_name_once():
    assert set(OURS) < set(env_names())
    assert set(env_names()) <= set(gymnasium.registry)
    register()
    assert set(_twins()) == {"CartPole-v0", "CartPole-v1"}
    for twin, name in _twins().items():
        original, ours = gymnasium.spec(twin), gymnasium.spec(name)
        assert (original.max_episode_steps, original.reward_threshold) == (
            ours.max_episode_steps,
            ours.reward_threshold,
        )
        assert gymnasium.envs.registration.EnvSpec.from_json(ours.to_json()) == ours


def test_an_environment_of_the_users_own_has_a_name_everywhere():
    register_env("mine/Pole-v3", CartPole, max_steps=40, reward_threshold=30.0)
    assert make_env("mine/Pole-v3") == CartPole(40)
    assert make_env("mine/Pole-v3", max_steps=7) == CartPole(7)
    assert resolve_env("mine/Pole-v3").is_jax
    assert "mine/Pole-v3" in env_names()
    face = gymnasium.make("mine/Pole-v3")
    assert (face.spec.max_episode_steps, face.spec.reward_threshold) == (40, 30.0)
    assert face.unwrapped.env == CartPole(None)
    with pytest.raises(UsageError, match="unknown environment 'mine/Pol-v3': did you mean 'mine/Pole-v3'"):
        make_env("mine/Pol-v3")


def test_a_name_of_the_users_own_can_be_given_again():
    for steps in (10, 20):
        register_env("mine/Again-v0", lambda steps=steps: CartPole(steps))
        assert make_env("mine/Again-v0") == CartPole(steps)
        assert gymnasium.make("mine/Again-v0").unwrapped.env == CartPole(steps)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("sentinel/Toy-v0", Toy, "'sentinel/Toy-v0' exists already: choose another name"),
        ("CartPole-v1", CartPole, "'CartPole-v1' exists already"),
        ("Acrobot-v1", CartPole, "'Acrobot-v1' exists already"),
        ("mine/Maze-v0", CartPole(), "needs a class or function that makes the environment, got CartPole"),
        ("mine/a maze!", CartPole, "the name 'mine/a maze!' cannot be used: Malformed"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_what_cannot_be_registered_is_refused_and_leaves_nothing(name: str, make: Any, message: str):
    known, told = env_names(), dict(gymnasium.registry)
    with pytest.raises(UsageError, match=message):
        register_env(name, make)
    assert (env_names(), dict(gymnasium.registry)) == (known, told)


def test_actions_have_a_name_each_or_none():
    assert EnvSpec("road", 2, 2, action_names=("left", "right")).action_names == ("left", "right")
    with pytest.raises(ValueError, match=r"road has 3 actions, but the action_names \('left', 'right'\)"):
        EnvSpec("road", 2, 3, action_names=("left", "right"))


def test_the_library_alone_does_not_import_gymnasium():
    script = "import sys, sentinel_rl; sys.exit('gymnasium' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"PYTHONPATH": "src"})
