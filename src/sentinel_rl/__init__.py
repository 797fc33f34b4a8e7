"""Reinforcement learning that must justify its risks."""

from typing import TYPE_CHECKING, Any

from sentinel_rl._version import __version__

if TYPE_CHECKING:
    from sentinel_rl.learner import CDQN, UADQN, VDQN, Sentinel

__all__ = ["CDQN", "UADQN", "VDQN", "Sentinel", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the agent only when it is asked for: the risk library and the command line start without it."""
    if name in __all__:
        from sentinel_rl import learner

        return getattr(learner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
