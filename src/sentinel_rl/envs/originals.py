"""Environments of other packages that have a twin here: a result on the twin can be checked on the original."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium

from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.spec import EnvSpec


class Original(NamedTuple):
    """An environment that another package registers with Gymnasium.

    Args:
        name: what Gymnasium calls it.
        package: to import first.
        extra: of this library, which installs the package.
        settings: it is made with.
        twin: the environment of this library that equals it with these settings.
    """

    name: str
    package: str
    extra: str
    settings: Mapping[str, Any]
    twin: EnvSpec


_HIGHWAY = Original(
    "highway-v0",
    "highway_env",
    "highway",
    {"config": {"lanes_count": 5, "vehicles_count": 10}},
    Highway.preset("highway-v1").spec,
)
# The paper's highway has no name in highway-env; its package stands for it as well.
ORIGINALS: Mapping[str, Original] = {"highway-v0": _HIGHWAY, "highway-env": _HIGHWAY}


def make_original(name: str, **settings: Any) -> "gymnasium.Env[Any, Any]":
    """Make an original with the settings of its twin, and others on top.

    Raises:
        ValueError: when its package is not installed.
    """
    original = ORIGINALS[name]
    try:
        importlib.import_module(original.package)
    except ImportError:
        raise ValueError(
            f"{name} is made by the package {original.package.replace('_', '-')}, which is not installed: "
            f"pip install 'sentinel-rl[{original.extra}]'. Its twin {original.twin.name} needs nothing"
        ) from None
    return gymnasium.make(original.name, **{**original.settings, **settings})
