"""What an agent is: pure functions on an explicit state."""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.replay import Transition

Metrics = dict[str, Float[Array, "..."]]


@runtime_checkable
class Agent(Protocol):
    """Four verbs, and an account of the reasons.

    An agent is a pytree of hyperparameters; its state is another. The clock is an argument and not part of the state:
    it is the same for all runs, and vmapped runs must not turn it into a batch.
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


def epsilon_greedy(values: Float[Array, " A"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
    """Choose the best action, exact ties broken at random, or with probability epsilon any."""
    explore, choice, *ranks = jax.random.uniform(key, (values.size + 2,))
    best = jnp.argmax(jnp.where(values >= jnp.max(values), jnp.stack(ranks), -1.0))
    anything = jnp.minimum((choice * values.size).astype(jnp.int32), values.size - 1)
    return jnp.where(explore < epsilon, anything, best).astype(jnp.int32)
