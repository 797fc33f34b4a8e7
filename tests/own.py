"""Parts of a user's own: an environment, an agent and a risk measure that the library does not know."""

from collections.abc import Iterator
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.agents import registry as agents
from sentinel_rl.agents.agent import Account, BaseAgent, Metrics
from sentinel_rl.envs import registry as envs
from sentinel_rl.envs.spec import EnvSpec, TimeStep
from sentinel_rl.replay import Transition
from sentinel_rl.risk import Distortion

ENV, AGENT = "tests/Coins-v0", "tests-bandit"


class Coins(eqx.Module):
    """Four throws in an episode; action 1 pays `prize`, action 0 pays nothing."""

    prize: float = eqx.field(static=True, default=1.0)
    throws: int = eqx.field(static=True, default=4)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(ENV, 1, 2, (0.0, self.prize), self.throws, action_names=("leave", "take"))

    def reset(self, key: jax.Array) -> tuple[Int[Array, ""], Float[Array, " 1"]]:
        return jnp.zeros((), jnp.int32), jnp.zeros(1)

    def step(self, state: Int[Array, ""], action: Int[Array, ""], key: jax.Array) -> tuple[Int[Array, ""], TimeStep]:
        following = state + 1
        obs, reward = jnp.reshape(following / self.throws, 1), jnp.where(action == 1, self.prize, 0.0)
        return following, TimeStep(obs, reward, jnp.array(False), following >= self.throws)


class Means(eqx.Module):
    """Sums of the rewards and numbers of the choices of every action, and what was learnt of them."""

    sums: Float[Array, " A"]
    counts: Float[Array, " A"]
    values: Float[Array, " A"]


class Bandit(BaseAgent):
    """Prefers the action of the highest mean reward, whatever it sees."""

    optimism: float = 0.5

    def init(self, spec: EnvSpec, key: jax.Array) -> Means:
        nothing = jnp.zeros(spec.num_actions)
        return Means(nothing, nothing, nothing + self.optimism)

    def act(self, state: Means, obs: Array, epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        explore, choice = jax.random.split(key)
        anything = jax.random.randint(choice, (), 0, state.values.size)
        return jnp.where(jax.random.uniform(explore) < epsilon, anything, jnp.argmax(state.values)).astype(jnp.int32)

    def observe(self, state: Means, t: Array, transition: Transition, key: jax.Array) -> Means:
        sums = state.sums.at[transition.action].add(transition.reward)
        return Means(sums, state.counts.at[transition.action].add(1.0), state.values)

    def learn(self, state: Means, update: Array, key: jax.Array) -> tuple[Means, Metrics]:
        values = jnp.where(state.counts > 0, state.sums / jnp.maximum(state.counts, 1.0), self.optimism)
        return Means(state.sums, state.counts, values), {"loss": jnp.sum((values - state.values) ** 2)}

    def policy(self, state: Means) -> Float[Array, " A"]:
        return state.values

    def with_policy(self, policy: Float[Array, " A"]) -> Means:
        nothing = jnp.zeros_like(policy)
        return Means(nothing, nothing, policy)

    def account(self, state: Means, obs: Array) -> Account:
        return Account(state.values, {"choices": state.counts})


class Gloomy(Distortion):
    """A measure without a name that could be written down."""

    share: float

    def g(self, u: Array) -> Array:
        return jnp.minimum(u / self.share, 1.0)


@contextmanager
def registered() -> Iterator[None]:
    """The environment and the agent have names."""
    envs.register_env(ENV, Coins)
    agents.register_agent(AGENT, Bandit)
    try:
        yield
    finally:
        del agents._KINDS[AGENT], envs._ENTRIES[ENV], envs.gymnasium.registry[ENV]
