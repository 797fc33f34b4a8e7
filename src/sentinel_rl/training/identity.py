"""What a run is named after: every field of the agent, the environment and the plan, not the options as typed."""

import json
from collections.abc import Sequence
from typing import Any

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import identity
from sentinel_rl.training.schedule import Plan


def run_identity(agents: Sequence[Agent], handle: EnvHandle, plan: Plan, seeds: Sequence[int]) -> dict[str, Any]:
    """All that makes runs what they are: a changed default is another identity.

    Raises:
        UsageError: for an agent or environment that cannot be named in a file.
    """
    named = [identity(agent, "agent") for agent in agents]
    same = all(name == named[0] for name in named)
    return {
        "agent": named[0] if same else named,
        "env": env_identity(handle),
        "plan": identity(plan, "plan"),
        "seeds": [int(seed) for seed in seeds],
    }


def env_identity(handle: EnvHandle) -> Any:
    """The identity of an environment: the fields of a JAX one, Gymnasium's own description of the others."""
    if handle.is_jax:
        return identity(handle.env, "env")
    spec = getattr(handle.env, "spec", None)
    if spec is None:
        raise UsageError(
            f"{handle.spec.name} cannot be named in a file: make it with gymnasium.make, or give no folder"
        )
    try:
        described = json.loads(spec.to_json())
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{handle.spec.name} cannot be named in a file ({error}): give no folder") from error
    kept = ("id", "kwargs", "max_episode_steps", "additional_wrappers")
    count = getattr(handle.env, "num_envs", None)
    return {name: described.get(name) for name in kept} | ({} if count is None else {"num_envs": int(count)})
