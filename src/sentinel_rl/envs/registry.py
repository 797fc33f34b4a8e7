"""The names of the environments, for users, the command line and Gymnasium; anyone may add one."""

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium

from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.gaps import cartpole_gap, highway_gap
from sentinel_rl.envs.grid import PRESETS as GRIDS
from sentinel_rl.envs.grid import GridWorld
from sentinel_rl.envs.gymnax import PREFIX, from_gymnax
from sentinel_rl.envs.highway import SCENARIOS, Highway
from sentinel_rl.envs.originals import ORIGINALS, make_original
from sentinel_rl.envs.spec import Env
from sentinel_rl.envs.toy import Toy
from sentinel_rl.errors import UsageError


class Entry(NamedTuple):
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


_ENTRIES: dict[str, Entry] = {
    "sentinel/CartPole-v0": Entry(CartPole, max_steps=200, twin_of="CartPole-v0", reward_threshold=195.0),
    "sentinel/CartPole-v1": Entry(CartPole, max_steps=500, twin_of="CartPole-v1", reward_threshold=475.0),
    "sentinel/Toy-v0": Entry(Toy),
    "sentinel/highway-v1": Entry(partial(Highway.preset, "highway-v1")),
    "sentinel/highway-v0": Entry(partial(Highway.preset, "highway-v0")),
    "sentinel/highway-fast-v0": Entry(partial(Highway.preset, "highway-fast-v0")),
    **{each.env: Entry(partial(Highway.scenario, each.name)) for each in SCENARIOS.values()},
    **{f"sentinel/{name}": Entry(partial(GridWorld.preset, name)) for name in GRIDS},
    "sentinel/CartPoleGap-v0": Entry(cartpole_gap),
    "sentinel/CartPoleGapOpen-v0": Entry(partial(cartpole_gap, closed=False)),
    "sentinel/highway-gap-v0": Entry(highway_gap),
    "sentinel/highway-gap-open-v0": Entry(partial(highway_gap, closed=False)),
}
_BUILT_IN = frozenset(_ENTRIES)


def env_names() -> list[str]:
    """The names of all JAX environments, those of users and the Gymnasium names of twins included."""
    return [*_ENTRIES, *_twins()]


def register_env(
    name: str, make: Callable[..., Env], *, max_steps: int | None = None, reward_threshold: float | None = None
) -> None:
    """Give a JAX environment a name that `make_env`, training, studies, the command line and Gymnasium know.

    Args:
        name: as Gymnasium writes it, for example ``"mine/Maze-v0"``.
        make: the class of the environment, or a function, that makes it from settings.
        max_steps: a time limit that `make` takes as the setting ``max_steps``.
        reward_threshold: mean return from which Gymnasium calls it solved.

    Raises:
        UsageError: for a name that belongs to the library or to Gymnasium, or that Gymnasium cannot read.

    Example:
        >>> from sentinel_rl.envs import Toy
        >>> register_env("mine/Toy-v0", Toy)
        >>> make_env("mine/Toy-v0").spec.num_actions
        2
    """
    taken = name in gymnasium.registry and name not in _ENTRIES
    if name in _BUILT_IN or taken:
        raise UsageError(f"the environment {name!r} exists already: choose another name")
    if not callable(make):
        raise UsageError(f"register_env needs a class or function that makes the environment, got {make!r}")
    _ENTRIES[name] = Entry(make, max_steps, None, reward_threshold)
    gymnasium.registry.pop(name, None)
    try:
        _tell_gymnasium(name)
    except gymnasium.error.Error as error:
        del _ENTRIES[name]
        raise UsageError(f"the name {name!r} cannot be used: {error}") from error


def make_env(name: str, **settings: Any) -> Any:
    """Make the environment of a name: the JAX one where there is one, else Gymnasium's.

    A Gymnasium name stands for its JAX twin where there is one that is equal step by step.

    Args:
        name: for example ``"CartPole-v1"``, ``"sentinel/Toy-v0"``, ``"Acrobot-v1"``, ``"gymnax/Breakout-MinAtar"`` or
            ``"package:name"``.
        settings: replace those of the name.

    Raises:
        UsageError: when neither this library nor Gymnasium knows the name, or a setting is impossible.

    Example:
        >>> make_env("CartPole-v1").spec.max_steps
        500
        >>> make_env("Acrobot-v1").action_space.n.item()
        3
    """
    try:
        if name in ORIGINALS:
            return make_original(name, **settings)
        env = make_jax_env(name, **settings)
        return gymnasium.make(name, **settings) if env is None else env
    except (ValueError, TypeError, ImportError, gymnasium.error.Error) as error:
        raise UsageError(str(error) if name in str(error) else f"{name}: {error}") from error


def make_jax_env(name: str, **settings: Any) -> Env | None:
    """Make the JAX environment of a name, or tell with None that only Gymnasium has it.

    Raises:
        ValueError: when neither this library nor Gymnasium knows the name.

    Example:
        >>> make_jax_env("Acrobot-v1") is None
        True
        >>> make_jax_env("CartPole-1")
        Traceback (most recent call last):
        ValueError: unknown environment 'CartPole-1': did you mean 'CartPole-v1'? ...
    """
    if name.startswith(PREFIX):
        return from_gymnax(name.removeprefix(PREFIX), **settings)
    module, _, bare = name.rpartition(":")
    entry = _ENTRIES.get(_twins().get(bare, bare))
    if entry is not None:
        limit = {} if entry.max_steps is None else {"max_steps": entry.max_steps}
        return entry.build(**(limit | settings))
    if module or name in gymnasium.registry:
        return None
    raise ValueError(
        f"unknown environment {name!r}: {_nearest(name)}"
        f"JAX environments: {', '.join(env_names())}; Gymnasium's are listed by gymnasium.pprint_registry(), "
        f"and those of another package are known after importing it, or as 'package:name'"
    )


def register() -> None:
    """Tell Gymnasium the library's names, so that ``gym.make`` and ``gym.make_vec`` know them."""
    for name in _ENTRIES:
        if name not in gymnasium.registry:
            _tell_gymnasium(name)


def _tell_gymnasium(name: str) -> None:
    entry = _ENTRIES[name]
    gymnasium.register(
        id=name,
        entry_point="sentinel_rl.envs.gym:GymEnv",
        vector_entry_point="sentinel_rl.envs.gym_vector:GymVectorEnv",
        max_episode_steps=entry.max_steps,
        reward_threshold=entry.reward_threshold,
        kwargs={"env": name} if entry.max_steps is None else {"env": name, "max_steps": None},
    )


def _twins() -> dict[str, str]:
    """The Gymnasium names that a JAX environment may stand in for."""
    return {entry.twin_of: name for name, entry in _ENTRIES.items() if entry.twin_of is not None}


def _nearest(name: str) -> str:
    """A suggestion, compared without regard to case."""
    known = {candidate.lower(): candidate for candidate in [*gymnasium.registry, *_ENTRIES]}
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {known[close[0]]!r}? " if close else ""
