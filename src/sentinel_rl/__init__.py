"""Reinforcement learning that must justify its risks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sentinel_rl._version import __version__

if TYPE_CHECKING:
    from sentinel_rl.agents import make_agent, register_agent
    from sentinel_rl.api import CDQN, UADQN, VDQN, Random, Sentinel, VDQNCVaR, load_agent
    from sentinel_rl.envs import make_env, register_env
    from sentinel_rl.training import evaluate, register_metric, train

# The risk library and the command line start without all this: a name is imported when it is first asked for.
_HOMES = {
    **dict.fromkeys(("CDQN", "UADQN", "VDQN", "Random", "Sentinel", "VDQNCVaR", "load_agent"), "api"),
    **dict.fromkeys(("make_agent", "register_agent"), "agents"),
    **dict.fromkeys(("make_env", "register_env"), "envs"),
    **dict.fromkeys(("evaluate", "register_metric", "train"), "training"),
}

__all__ = [
    "CDQN",
    "UADQN",
    "VDQN",
    "Random",
    "Sentinel",
    "VDQNCVaR",
    "__version__",
    "evaluate",
    "load_agent",
    "make_agent",
    "make_env",
    "register_agent",
    "register_env",
    "register_metric",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its package."""
    if name in _HOMES:
        return getattr(import_module(f"sentinel_rl.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
