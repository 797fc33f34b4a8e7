"""The agents by the names that users give them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from sentinel_rl.agents.agent import Accountable
from sentinel_rl.agents.cdqn import CDQN_OPTIONS, make_cdqn
from sentinel_rl.agents.options import OPTIONS, make_sentinel
from sentinel_rl.agents.random import RANDOM_OPTIONS, RandomAgent, make_random
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.agents.uadqn import UADQN_OPTIONS, UADQNAgent, make_uadqn
from sentinel_rl.agents.vdqn import VDQN_OPTIONS, VDQNAgent, make_vdqn, make_vdqn_cvar
from sentinel_rl.envs.spec import EnvSpec


class Maker(Protocol):
    """Makes an agent for an environment of these sizes."""

    def __call__(self, spec: EnvSpec, **options: Any) -> Any:
        """Make it, or raise `UsageError`."""
        ...


class Kind(NamedTuple):
    """How an agent is made, from which options, and what comes out."""

    make: Maker
    options: tuple[str, ...]
    agent: type[Any]


AGENTS: Mapping[str, Kind] = {
    "sentinel": Kind(make_sentinel, OPTIONS, SentinelAgent),
    "cdqn": Kind(make_cdqn, CDQN_OPTIONS, SentinelAgent),
    "vdqn": Kind(make_vdqn, VDQN_OPTIONS, VDQNAgent),
    "vdqn-cvar": Kind(make_vdqn_cvar, VDQN_OPTIONS, VDQNAgent),
    "uadqn": Kind(make_uadqn, UADQN_OPTIONS, UADQNAgent),
    "random": Kind(make_random, RANDOM_OPTIONS, RandomAgent),
}


def make_agent(name: str, spec: EnvSpec, **options: Any) -> Accountable:
    """Make an agent by its name.

    Example:
        >>> make_agent("uadqn", EnvSpec("CartPole-v0", 4, 2), quantiles=20).quantiles
        20
    """
    agent: Accountable = AGENTS[name].make(spec, **options)
    return agent
