"""What an agent is: pure functions on an explicit state."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.replay import Transition

Metrics = dict[str, Float[Array, "..."]]


class Account(NamedTuple):
    """What an agent can tell of every action at an observation.

    Args:
        value: what its frozen policy maximises.
        parts: what the value comes from, by name.
    """

    value: Float[Array, " A"]
    parts: dict[str, Float[Array, " A"]]


@runtime_checkable
class Agent(Protocol):
    """Four verbs: all that a runner needs.

    An agent is a pytree of hyperparameters; its state is another. The clock is an argument and not part of the state:
    it is the same for all runs, and vmapped runs must not turn it into a batch. Within an episode and
    between two updates `act` may not depend on what was observed: a runner may hand that over later.
    """

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        """Make the state before the first step."""
        ...

    def act(self, state: Any, obs: Float[Array, " obs"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
        """Choose an action; with probability epsilon at random."""
        ...

    def observe(self, state: Any, t: Int[Array, ""], transition: Transition, key: jax.Array) -> Any:
        """Take in transition number ``t``, counted from 0."""
        ...

    def learn(self, state: Any, update: Int[Array, ""], key: jax.Array) -> tuple[Any, Metrics]:
        """Improve; ``update`` is the number of this update, counted from 1."""
        ...


@runtime_checkable
class Accountable(Agent, Protocol):
    """An agent that is also evaluated, and asked for its reasons."""

    def greedy(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Int[Array, ""]:
        """Choose as the frozen policy does: nothing is explored."""
        ...

    def account(self, state: Any, obs: Float[Array, " obs"]) -> Account:
        """Tell what is known of every action at an observation."""
        ...


def epsilon_greedy(values: Float[Array, " A"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
    """Choose the best action, exact ties broken at random, or with probability epsilon any."""
    # The draw waits for the values: side by side, a CPU spends more on running the two at once than it gains.
    data = jax.random.key_data(key) + jnp.isnan(values[0]).astype(jnp.uint32)
    key = jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))
    explore, choice, *ranks = jax.random.uniform(key, (values.size + 2,))
    best = jnp.argmax(jnp.where(values >= jnp.max(values), jnp.stack(ranks), -1.0))
    anything = jnp.minimum((choice * values.size).astype(jnp.int32), values.size - 1)
    return jnp.where(explore < epsilon, anything, best).astype(jnp.int32)
