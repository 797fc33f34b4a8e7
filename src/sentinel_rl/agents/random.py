"""Policies that learn nothing, for the rows that every table needs: random, or always the same action."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl._checks import is_whole, shown
from sentinel_rl.agents.agent import Account, FixedPolicy
from sentinel_rl.agents.options import checked, options_of, require_known
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError


class RandomState(eqx.Module):
    """The probability of every action: all that there is to know."""

    online: Float[Array, " A"]


class RandomAgent(FixedPolicy):
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

    def account(self, state: RandomState, obs: Array) -> Account:
        """The probability of every action."""
        return Account(state.online, {"probability": state.online})

    def policy(self, state: RandomState) -> Float[Array, " A"]:
        """The probabilities."""
        return state.online

    def with_policy(self, policy: Float[Array, " A"]) -> RandomState:
        """The probabilities."""
        return RandomState(policy)


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
    if action is not None and not is_whole(action, 0, spec.num_actions - 1):
        raise UsageError(
            f"action {shown(action)} does not exist: {spec.name} has the actions 0 to {spec.num_actions - 1}"
        )
    return RandomAgent(**checked(RandomAgent, options))


def make_constant(spec: EnvSpec, action: int | str | None = None, **options: Any) -> RandomAgent:
    """Make the policy that always takes one action.

    Args:
        spec: of the environment.
        action: its number or, where actions have names, its name.
        options: other fields of `RandomAgent`.

    Raises:
        UsageError: for no action, or one that does not exist.

    Example:
        >>> make_constant(EnvSpec("Road", 1, 2, action_names=("FASTER", "SLOWER")), action="SLOWER").action
        1
    """
    names = spec.action_names or ()
    if action is None:
        raise UsageError(f"which action? Give one of {', '.join(names) or f'0 to {spec.num_actions - 1}'} as action=")
    if isinstance(action, str):
        if action not in names:
            known = f"the actions {', '.join(names)}" if names else "no names for its actions: give a number"
            raise UsageError(f"action {shown(action)} does not exist: {spec.name} has {known}")
        action = names.index(action)
    return make_random(spec, action=action, **options)
