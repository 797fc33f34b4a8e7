"""What is exported: the decision of a frozen policy at one observation, with the numbers behind it."""

import importlib
import json
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl.agents.agent import Agent, StateBased, best_action
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import assess_laws, has_laws


@runtime_checkable
class Trained(Protocol):
    """What has a policy to export: an agent's class, such as `sentinel_rl.Sentinel`, or a `SavedPolicy`."""

    @property
    def agent(self) -> Agent:
        """The agent."""
        ...

    @property
    def state(self) -> Any:
        """Its state."""
        ...

    @property
    def handle(self) -> EnvHandle:
        """The sizes of its environment."""
        ...


def needed(package: str, what: str) -> Any:
    """Import a package of the extra ``export``.

    Raises:
        UsageError: where it is missing, with the line that installs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise UsageError(f"{what} needs the package {package}: pip install 'sentinel-rl[export]'") from error


def decision_of(policy: Trained) -> Callable[[Float[Array, "..."]], dict[str, Array]]:
    """The function of one observation that is exported.

    It returns the ``action`` in the environment's count and the ``value`` of every action; of an agent with laws also
    their ``mean``, ``aleatory_penalty`` and ``epistemic_penalty``, of another one what its value comes from.

    Raises:
        UsageError: for a policy that draws its actions, or needs more than an observation.
    """
    agent, state, handle = policy.agent, policy.state, policy.handle
    name = type(agent).__name__
    if agent.stochastic:
        raise UsageError(f"{name} draws its actions at random: there is no function of the observation to export")
    if isinstance(agent, StateBased):
        raise UsageError(f"{name} chooses by the true state of its environment: an export sees observations only")

    def decide(observation: Array) -> dict[str, Array]:
        obs = observation.reshape(-1)
        if has_laws(agent):
            _, why = assess_laws(agent, state, obs)
            action, value = best_action(why.composite), why.composite
            parts = {
                "mean": why.mean,
                "aleatory_penalty": why.aleatory_penalty,
                "epistemic_penalty": why.epistemic_penalty,
            }
        else:
            action, told = agent.greedy(state, obs, jax.random.key(0)), agent.account(state, obs)
            value, parts = told.value, told.parts
        return {"action": action.astype(jnp.int32) + handle.first_action, "value": value, **parts}

    return decide


def about(policy: Trained) -> dict[str, str]:
    """What a file tells of its policy, as texts."""
    spec = policy.handle.spec
    names = spec.action_names or tuple(map(str, range(spec.num_actions)))
    return {
        "environment": spec.name,
        "agent": type(policy.agent).__name__,
        "maximises": policy.agent.objective,
        "action_names": json.dumps(list(names)),
        "first_action": str(policy.handle.first_action),
    }
