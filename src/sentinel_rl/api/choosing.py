"""The actions at a batch of observations, in programs of few sizes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent

# A program is compiled for every number of observations, and kept: batches are cut into blocks, and filled up to powers
# of two, so that there are at most eleven.
_BLOCK = 1024


def in_blocks(
    choose: Callable[..., Any], agent: Agent, state: Any, obs: np.ndarray, key: Any, *more: Any
) -> np.ndarray:
    """The actions at all observations; the key of each depends on its place alone."""
    chosen = []
    for first in range(0, len(obs), _BLOCK):
        part = obs[first : first + _BLOCK]
        room = 1 << (len(part) - 1).bit_length()
        filled = np.concatenate([part, np.repeat(part[-1:], room - len(part), axis=0)])
        chosen.append(np.asarray(choose(agent, state, filled, key, np.int32(first), *more))[: len(part)])
    return np.concatenate(chosen)


def _keys(key: Any, first: Any, count: int) -> Any:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, first + jnp.arange(count))


@jax.jit
def act(agent: Agent, state: Any, obs: Any, key: Any, first: Any, epsilon: Any) -> Any:
    """The actions of an agent that explores."""
    return jax.vmap(lambda x, key: agent.act(state, x, epsilon, key))(obs, _keys(key, first, len(obs)))


@jax.jit
def greedy(agent: Agent, state: Any, obs: Any, key: Any, first: Any) -> Any:
    """The actions of the frozen policy."""
    return jax.vmap(lambda x, key: agent.greedy(state, x, key))(obs, _keys(key, first, len(obs)))
