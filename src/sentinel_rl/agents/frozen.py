"""What wrappers of trained agents share: they act and explain, and leave learning to the agent inside."""

import abc
from typing import Any

import equinox as eqx
import jax

from sentinel_rl.agents.agent import FixedPolicy
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError


class FrozenWrapper(FixedPolicy):
    """A trained agent seen through something else; ``act`` and ``greedy`` are left to write."""

    agent: eqx.AbstractVar[Any]

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        """There is nothing to begin with: the agent inside is trained by itself.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{type(self).__name__} wraps a trained agent: train the agent, then give its state")

    @abc.abstractmethod
    def greedy(self, state: Any, obs: Any, key: jax.Array) -> Any:
        """Choose as the frozen policy does."""

    @property
    def stochastic(self) -> bool:
        """As the agent inside."""
        return bool(self.agent.stochastic)

    @property
    def gamma(self) -> Any:
        """The discount that the agent inside learnt with; a return without it has none."""
        return getattr(self.agent, "gamma", 1.0)

    @property
    def time_limit(self) -> str:
        """Whether the returns of the agent inside end at a time limit."""
        return str(getattr(self.agent, "time_limit", "terminal"))

    @property
    def objective(self) -> str:
        """As the agent inside."""
        return str(self.agent.objective)

    @property
    def caveat(self) -> str:
        """As the agent inside."""
        return str(self.agent.caveat)
