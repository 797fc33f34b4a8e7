"""How much memory a training will need, told before it is allocated."""

import os
from collections.abc import Sequence
from typing import Any

import jax

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError

_GIB = 2**30


def require_memory(agents: Sequence[Agent], spec: EnvSpec, available: int | None = None) -> None:
    """Raise unless the states of agents that are trained side by side, their replays above all, fit into memory.

    Args:
        agents: one per run.
        spec: of the environment.
        available: bytes; those of the device by default. Where they are not known, nothing is checked.

    Raises:
        UsageError: with what is needed, what there is, and a capacity that would fit.
    """
    available = device_memory() if available is None else available
    if available is None:
        return
    needed = len(agents) * state_bytes(agents[0], spec)
    if needed <= available:
        return
    runs = f"{len(agents)} runs side by side need" if len(agents) > 1 else "the run needs"
    told = f"{runs} {needed / _GIB:.3g} GiB of memory, and there are {available / _GIB:.3g} GiB"
    capacity = getattr(agents[0], "capacity", None)
    if capacity is None:
        raise UsageError(f"{told}: train fewer at a time")
    fitting = int(capacity * available / needed / 2)
    raise UsageError(
        f"{told}: the replay keeps capacity={capacity} transitions of 2 x {spec.obs_size} numbers. Give a smaller one, "
        f"such as capacity={max(fitting, 1)}" + (", or fewer seeds at a time" if len(agents) > 1 else "")
    )


def state_bytes(agent: Agent, spec: EnvSpec) -> int:
    """The bytes of an agent's state; nothing is computed or allocated."""
    form: Any = jax.eval_shape(lambda key: agent.init(spec, key), jax.random.key(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(form))


def device_memory() -> int | None:
    """The bytes of the accelerator, or of the machine; None where neither tells."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit")
        return None if limit is None else int(limit)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
