"""The familiar classes: every agent with the methods that users of reinforcement learning libraries know."""

from sentinel_rl.api.base import Learner
from sentinel_rl.api.classes import (
    CDQN,
    LEARNERS,
    UADQN,
    VDQN,
    Random,
    Sentinel,
    VDQNCVaR,
    learner_class,
    load_agent,
)

__all__ = [
    "CDQN",
    "LEARNERS",
    "UADQN",
    "VDQN",
    "Learner",
    "Random",
    "Sentinel",
    "VDQNCVaR",
    "learner_class",
    "load_agent",
]
