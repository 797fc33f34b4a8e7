"""Reinforcement learning that must justify its risks."""

from typing import TYPE_CHECKING, Any

from sentinel_rl._version import __version__

if TYPE_CHECKING:
    from sentinel_rl.learner import Sentinel

__all__ = ["Sentinel", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the agent only when it is asked for: the risk library and the command line start without it."""
    if name == "Sentinel":
        from sentinel_rl.learner import Sentinel

        return Sentinel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
