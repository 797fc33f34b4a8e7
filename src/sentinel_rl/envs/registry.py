"""The names of the environments, for users, the command line and Gymnasium."""

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium

from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.spec import Env
from sentinel_rl.envs.toy import Toy


class World(NamedTuple):
    """A named environment.

    Args:
        build: makes the environment from its settings.
        max_steps: a time limit that `build` takes as a setting of this name; where there is one, Gymnasium's own
            `TimeLimit` keeps it in the Gymnasium face, so that ``gym.make(..., max_episode_steps=...)`` works.
        twin_of: the Gymnasium environment it equals step by step and may stand in for.
        reward_threshold: mean return from which Gymnasium calls it solved.
    """

    build: Callable[..., Env]
    max_steps: int | None = None
    twin_of: str | None = None
    reward_threshold: float | None = None


WORLDS: dict[str, World] = {
    "sentinel/CartPole-v0": World(CartPole, max_steps=200, twin_of="CartPole-v0", reward_threshold=195.0),
    "sentinel/CartPole-v1": World(CartPole, max_steps=500, twin_of="CartPole-v1", reward_threshold=475.0),
    "sentinel/Toy-v0": World(Toy),
    "sentinel/highway-v1": World(partial(Highway.preset, "highway-v1")),
    "sentinel/highway-v0": World(partial(Highway.preset, "highway-v0")),
    "sentinel/highway-fast-v0": World(partial(Highway.preset, "highway-fast-v0")),
}
TWINS: dict[str, str] = {world.twin_of: name for name, world in WORLDS.items() if world.twin_of is not None}


def make_env(name: str, **settings: Any) -> Env | None:
    """Make the JAX environment of a name, or tell with None that only Gymnasium has it.

    A Gymnasium name stands for its JAX twin where there is one that is equal step by step.

    Args:
        name: for example ``"CartPole-v1"`` or ``"sentinel/Toy-v0"``; a leading ``"module:"`` is not looked at.
        settings: replace those of the name.

    Raises:
        ValueError: when neither this library nor Gymnasium knows the name.

    Example:
        >>> make_env("CartPole-v1").spec.max_steps
        500
        >>> make_env("Acrobot-v1") is None
        True
        >>> make_env("CartPole-1")
        Traceback (most recent call last):
        ValueError: unknown environment 'CartPole-1': did you mean 'CartPole-v1'? ...
    """
    module, _, bare = name.rpartition(":")
    world = WORLDS.get(TWINS.get(bare, bare))
    if world is not None:
        limit = {} if world.max_steps is None else {"max_steps": world.max_steps}
        return world.build(**(limit | settings))
    if module or name in gymnasium.registry:
        return None
    raise ValueError(
        f"unknown environment {name!r}: {_nearest(name)}"
        f"JAX environments: {', '.join([*WORLDS, *TWINS])}; Gymnasium's are listed by gymnasium.pprint_registry(), "
        f"and those of another package are known after importing it, or as 'package:name'"
    )


def register() -> None:
    """Tell Gymnasium the names, so that ``gym.make`` and ``gym.make_vec`` know them."""
    for name, world in WORLDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="sentinel_rl.envs.gym:GymEnv",
                vector_entry_point="sentinel_rl.envs.gym_vector:GymVectorEnv",
                max_episode_steps=world.max_steps,
                reward_threshold=world.reward_threshold,
                kwargs={"env": name} if world.max_steps is None else {"env": name, "max_steps": None},
            )


def _nearest(name: str) -> str:
    """A suggestion, compared without regard to case."""
    known = {candidate.lower(): candidate for candidate in [*gymnasium.registry, *WORLDS]}
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {known[close[0]]!r}? " if close else ""
