"""A small agent and a small world's sizes, shared by the tests of the agent."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.returns import Support

SPEC = EnvSpec("small", obs_size=2, num_actions=3)
OBS = jnp.array([0.5, -1.0])
SUPPORT = Support(-1.0, 3.0, 9)


def small(**options: Any) -> SentinelAgent:
    """SENTINEL-3 on nine atoms from -1 to 3."""
    defaults: dict[str, Any] = {"k": 3, "hidden": (8,), "samples": 8, "batch": 4, "capacity": 16, "learning_rate": 0.1}
    return SentinelAgent(SUPPORT, **(defaults | options))


def fresh(agent: SentinelAgent) -> SentinelState:
    """A first state of a small agent; the networks are drawn only once, since drawing them takes long to compile."""
    online = _state().online
    optimisers = agent._adam.init(online), agent._target_adam.init(online)
    return dataclasses.replace(_state(), optimiser=optimisers[0], target_optimiser=optimisers[1])


@functools.cache
def _state() -> SentinelState:
    return jax.jit(lambda key: small().init(SPEC, key))(jax.random.key(0))
