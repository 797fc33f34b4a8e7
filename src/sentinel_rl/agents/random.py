"""Policies that learn nothing, for the rows that every table needs: random, or always the same action."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.agents.agent import Account, BaseAgent, Metrics
from sentinel_rl.agents.options import checked, options_of, require_known
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Transition


class RandomState(eqx.Module):
    """The probability of every action: all that there is to know."""

    online: Float[Array, " A"]


class RandomAgent(BaseAgent):
    """Every action with the same probability, or one action always.

    Args:
        action: the one that is always taken, counted from 0; any when None.
        gamma: discount of the returns that are reported.
    """

    action: int | None = eqx.field(static=True, default=None)
    gamma: float | Array = 0.99

    @property
    def stochastic(self) -> bool:
        """Whether actions are drawn."""
        return self.action is None

    def init(self, spec: EnvSpec, key: jax.Array) -> RandomState:
        """Give all actions their probability."""
        if self.action is None:
            return RandomState(jnp.full(spec.num_actions, 1 / spec.num_actions))
        return RandomState(jax.nn.one_hot(self.action, spec.num_actions))

    def act(self, state: RandomState, obs: Array, epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        """Draw an action; epsilon changes nothing."""
        return jax.random.categorical(key, jnp.log(state.online)).astype(jnp.int32)

    def observe(self, state: RandomState, t: Array, transition: Transition, key: jax.Array) -> RandomState:
        """Forget it."""
        return state

    def learn(self, state: RandomState, update: Array, key: jax.Array) -> tuple[RandomState, Metrics]:
        """Learn nothing."""
        return state, {}

    def account(self, state: RandomState, obs: Array) -> Account:
        """The probability of every action."""
        return Account(state.online, {"probability": state.online})

    def policy(self, state: RandomState) -> Float[Array, " A"]:
        """The probabilities."""
        return state.online

    def with_policy(self, policy: Float[Array, " A"]) -> RandomState:
        """The probabilities."""
        return RandomState(policy)

    @property
    def objective(self) -> str:
        """Nothing."""
        return "nothing"

    @property
    def caveat(self) -> str:
        """There is nothing to tell."""
        return "nothing is learnt and nothing is known"


RANDOM_OPTIONS = options_of(RandomAgent)


def make_random(spec: EnvSpec, **options: Any) -> RandomAgent:
    """Make a policy from options: fields of `RandomAgent`.

    Raises:
        UsageError: for an unknown option or an action that does not exist.

    Example:
        >>> make_random(EnvSpec("CartPole-v0", 4, 2), action=1).action
        1
    """
    require_known(options, RANDOM_OPTIONS)
    action = options.get("action")
    if action is not None and action not in range(spec.num_actions):
        raise UsageError(f"action {action!r} does not exist: {spec.name} has the actions 0 to {spec.num_actions - 1}")
    return RandomAgent(**checked(RandomAgent, options))
