"""Reinforcement learning that must justify its risks."""

from typing import TYPE_CHECKING, Any

from sentinel_rl._version import __version__

if TYPE_CHECKING:
    from sentinel_rl.api import CDQN, UADQN, VDQN, Random, Sentinel, VDQNCVaR, load_agent

__all__ = ["CDQN", "UADQN", "VDQN", "Random", "Sentinel", "VDQNCVaR", "__version__", "load_agent"]


def __getattr__(name: str) -> Any:
    """Import the agent only when it is asked for: the risk library and the command line start without it."""
    if name in __all__:
        from sentinel_rl import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
