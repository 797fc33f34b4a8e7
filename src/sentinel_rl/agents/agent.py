"""What an agent is: pure functions on an explicit state."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Transition

Metrics = dict[str, Float[Array, "..."]]
Diagnostics = dict[str, Float[Array, "..."]]


class Account(NamedTuple):
    """What an agent can tell of every action at an observation.

    Args:
        value: what its frozen policy maximises.
        parts: what the value comes from, by name.
        draws: of the value of every action, where the agent samples it.
    """

    value: Float[Array, " A"]
    parts: dict[str, Float[Array, " A"]]
    draws: Float[Array, "draws A"] | None = None


@runtime_checkable
class Agent(Protocol):
    """All that the library asks of an agent. `BaseAgent` has a default for everything but the first four methods.

    An agent is a pytree of hyperparameters (an equinox module); its state is another. The clock is an argument and not
    part of the state: it is the same for all runs, and vmapped runs must not turn it into a batch. Within an episode
    and between two updates `act` may not depend on what was observed: a runner may hand that over later.
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

    def plan_defaults(self, steps: int) -> dict[str, Any]:
        """Options of the plan of a training of so many steps, such as ``learn_every``, where it names no others."""
        ...

    def planned(self, updates: int) -> Self:
        """The agent for a training of so many updates: schedules that depend on its length are filled in."""
        ...

    @property
    def stochastic(self) -> bool:
        """Whether the frozen policy draws its actions: each call of `greedy` then needs a key of its own."""
        ...

    def greedy(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Int[Array, ""]:
        """Choose as the frozen policy does: nothing is explored."""
        ...

    def policy(self, state: Any) -> Any:
        """The part of the state that acting needs: what a saved policy holds."""
        ...

    def with_policy(self, policy: Any) -> Any:
        """A state that can act and explain, though not learn, from what `policy` gave."""
        ...

    def account(self, state: Any, obs: Float[Array, " obs"]) -> Account:
        """Tell what is known of every action at an observation."""
        ...

    def diagnostics(self, state: Any, obs: Float[Array, " obs"], action: Int[Array, ""]) -> Diagnostics:
        """Numbers about one decision of the frozen policy, by name; evaluations report their means."""
        ...

    def report(self, state: Any) -> Metrics:
        """Numbers about the agent while it learns, by name; learning curves and logs show them."""
        ...

    def check(self, t: int, metrics: Mapping[str, float], state: Callable[[], Any]) -> str | None:
        """A warning after ``t`` steps, given the mean metrics of the latest updates; None when all is well."""
        ...

    @property
    def objective(self) -> str:
        """What the frozen policy maximises, as text."""
        ...

    @property
    def caveat(self) -> str:
        """What the agent cannot tell, or how its numbers are to be read; empty where nothing must be said."""
        ...


@runtime_checkable
class StateBased(Protocol):
    """What an agent adds that chooses by the true state of the environment, as a planner with an exact model does.

    Where the environment is a JAX one, training and evaluations call `choose_in` instead of ``act`` and ``greedy``.
    Where there is only an observation, they call the latter, which raise `UsageError` if an observation is not enough.
    """

    def choose_in(
        self, state: Any, env: Env, env_state: Any, obs: Float[Array, " obs"], key: jax.Array
    ) -> Int[Array, ""]:
        """Choose an action in a state of the environment, of which `obs` is the observation."""
        ...


class BaseAgent(eqx.Module):
    """Defaults of the `Agent` protocol: ``init``, ``act``, ``observe`` and ``learn`` are left to write."""

    @abc.abstractmethod
    def act(self, state: Any, obs: Float[Array, " obs"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
        """Choose an action; with probability epsilon at random."""

    def plan_defaults(self, steps: int) -> dict[str, Any]:
        """No warm-up."""
        return {"warmup": 0}

    def planned(self, updates: int) -> Self:
        """Nothing depends on the length of a training."""
        return self

    @property
    def stochastic(self) -> bool:
        """The frozen policy always chooses the same action at the same observation."""
        return False

    def greedy(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Int[Array, ""]:
        """Act without exploring."""
        return self.act(state, obs, jnp.zeros(()), key)

    def policy(self, state: Any) -> Any:
        """The whole state."""
        return state

    def with_policy(self, policy: Any) -> Any:
        """The whole state."""
        return policy

    def account(self, state: Any, obs: Float[Array, " obs"]) -> Account:
        """Nothing is known: an agent that can be asked for its reasons says what its actions are worth here."""
        raise UsageError(f"{type(self).__name__} does not explain its decisions: it has no method account(state, obs)")

    def diagnostics(self, state: Any, obs: Float[Array, " obs"], action: Int[Array, ""]) -> Diagnostics:
        """No numbers."""
        return {}

    def report(self, state: Any) -> Metrics:
        """No numbers."""
        return {}

    def check(self, t: int, metrics: Mapping[str, float], state: Callable[[], Any]) -> str | None:
        """No warnings."""
        return None

    @property
    def objective(self) -> str:
        """The value."""
        return "its value"

    @property
    def caveat(self) -> str:
        """Nothing must be said."""
        return ""


class FixedPolicy(BaseAgent):
    """A policy that learns nothing: a driver by rules, a planner, a random one. ``act`` is left to write."""

    def init(self, spec: EnvSpec, key: jax.Array) -> Any:
        """A number that means nothing: runs are stacked by the arrays of their states, and need one."""
        return jnp.zeros(())

    def observe(self, state: Any, t: Array, transition: Transition, key: jax.Array) -> Any:
        """Forget it."""
        return state

    def learn(self, state: Any, update: Array, key: jax.Array) -> tuple[Any, Metrics]:
        """Learn nothing."""
        return state, {}

    @property
    def objective(self) -> str:
        """Nothing."""
        return "nothing"

    @property
    def caveat(self) -> str:
        """There is nothing to tell."""
        return "nothing is learnt and nothing is known"


def act_in(
    agent: Any, state: Any, env: Env, env_state: Any, obs: Array, epsilon: Array, key: jax.Array
) -> Int[Array, ""]:
    """Act in a JAX environment; an agent that chooses by its true state does not explore."""
    if isinstance(agent, StateBased):
        return agent.choose_in(state, env, env_state, obs, key)
    action: Array = agent.act(state, obs, epsilon, key)
    return action


def greedy_in(agent: Any, state: Any, env: Env, env_state: Any, obs: Array, key: jax.Array) -> Int[Array, ""]:
    """Choose in a JAX environment as the frozen policy does."""
    if isinstance(agent, StateBased):
        return agent.choose_in(state, env, env_state, obs, key)
    action: Array = agent.greedy(state, obs, key)
    return action


def epsilon_greedy(values: Float[Array, " A"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
    """Choose the best action, exact ties broken at random, or with probability epsilon any."""
    # The draw waits for the values: side by side, a CPU spends more on running the two at once than it gains.
    data = jax.random.key_data(key) + jnp.isnan(values[0]).astype(jnp.uint32)
    key = jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))
    explore, choice, *ranks = jax.random.uniform(key, (values.size + 2,))
    best = jnp.argmax(jnp.where(values >= jnp.max(values), jnp.stack(ranks), -1.0))
    anything = jnp.minimum((choice * values.size).astype(jnp.int32), values.size - 1)
    return jnp.where(explore < epsilon, anything, best).astype(jnp.int32)


def best_action(values: Float[Array, " A"]) -> Int[Array, ""]:
    """Choose the best action, the first of equals: what a frozen policy does."""
    return jnp.argmax(values).astype(jnp.int32)
