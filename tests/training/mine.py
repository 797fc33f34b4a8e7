"""An environment and an agent as a user writes them: in a file of their own, unknown to the library."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from sentinel_rl.agents.agent import Account, BaseAgent
from sentinel_rl.envs.spec import EnvSpec, TimeStep


class Walk(eqx.Module):
    """A walk on a line: right pays and leads to the edge, where one falls; after `limit` steps it is over."""

    edge: float = 0.5
    limit: int = eqx.field(static=True, default=12)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Walk", 1, 2, (-1.0, 1.0), self.limit, action_names=("left", "right"), gamma=0.9)

    def reset(self, key: jax.Array) -> Any:
        place = jax.random.uniform(key, minval=-0.1, maxval=0.1)
        return (place, jnp.zeros((), jnp.int32)), place[None]

    def step(self, state: Any, action: Array, key: jax.Array) -> Any:
        move = 2.0 * action - 1.0
        place, time = state[0] + 0.1 * move + 0.05 * jax.random.normal(key), state[1] + 1
        after = TimeStep(place[None], move, jnp.abs(place) > self.edge, time >= self.limit)
        return (place, time), after

    def diagnostics(self, state: Any) -> dict[str, Array]:
        return {"distance": jnp.abs(state[0])}


class Memory(eqx.Module):
    """The sum of the rewards of every action, how often it was updated, and a key of its own."""

    sums: Array
    updates: Array
    key: jax.Array


class Greedy(BaseAgent):
    """Takes what has paid most; a number of the kind that users forget: its state holds a key."""

    rate: float = 1.0

    def init(self, spec: EnvSpec, key: jax.Array) -> Memory:
        return Memory(jnp.zeros(spec.num_actions), jnp.zeros(()), key)

    def act(self, state: Memory, obs: Array, epsilon: Array, key: jax.Array) -> Array:
        explore, choice = jax.random.uniform(key, (2,))
        anything = (choice * state.sums.size).astype(jnp.int32)
        return jnp.where(explore < epsilon, anything, jnp.argmax(state.sums).astype(jnp.int32))

    def observe(self, state: Memory, t: Array, transition: Any, key: jax.Array) -> Memory:
        return Memory(state.sums.at[transition.action].add(self.rate * transition.reward), state.updates, state.key)

    def learn(self, state: Memory, update: Array, key: jax.Array) -> Any:
        return Memory(state.sums, state.updates + 1, state.key), {"largest": jnp.max(jnp.abs(state.sums))}

    def account(self, state: Memory, obs: Array) -> Account:
        return Account(state.sums, {"sum": state.sums})

    def diagnostics(self, state: Memory, obs: Array, action: Array) -> dict[str, Array]:
        return {"right": action.astype(jnp.float32)}

    def report(self, state: Memory) -> dict[str, Array]:
        return {"updates": state.updates}
