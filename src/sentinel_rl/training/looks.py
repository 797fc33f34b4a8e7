"""What agents tell of themselves while they learn, looked at now and then without holding them up."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from sentinel_rl.replay import Replay
from sentinel_rl.training.fused import Population
from sentinel_rl.training.population import Fleet, sharded
from sentinel_rl.training.watch import risk_seen

_SEEN = 64  # observations that `risk_seen` looks at


class Looks:
    """Collects looks at the runs of a training.

    Args:
        fleet: on whose devices they are.
        runs: how many; the last group may be filled up.
    """

    def __init__(self, fleet: Fleet, runs: int):
        self._fleet, self._runs = fleet, runs
        self._times: list[int] = []
        self._told: list[list[Any]] = []

    def add(self, t: int, groups: list[Population]) -> None:
        """Look after `t` steps. The numbers stay on the device: it goes on while nobody waits for them."""
        self._times.append(t)
        self._told.append([part for group in groups for part in self._look(group)])

    def curves(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The step counts, and what was told by name, ``[runs, looks]``."""
        looks = [jax.tree.map(lambda *parts: np.concatenate(parts), *look) for look in jax.device_get(self._told)]
        told = {name: np.stack([look[name] for look in looks], axis=1)[: self._runs] for name in looks[0]}
        return np.array(self._times), told

    def _look(self, group: Population) -> list[Any]:
        states = group.runs.agent
        if not _tells(group):
            return [{}]
        if self._fleet.devices[0].platform != "cpu":
            return [_look_at_all(group.agents, states, self._fleet.mesh)]
        # One run after the other on one core: the bits must not depend on how many cores there are, as those of a
        # program that is partitioned over them do.
        small = eqx.tree_at(lambda state: state.replay, states, _recent(states.replay, self._fleet.mesh))
        pair = jax.device_put((group.agents, small), self._fleet.devices[0])
        return [_look_at_one(*_run(pair, i)) for i in range(group.runs.obs.shape[0])]


def lower_looks(groups: Sequence[Population], mesh: Mesh) -> list[Any]:
    """The programs of looks on an accelerator, traced but not compiled; outlines of groups are enough."""
    return [_look_at_all.lower(group.agents, group.runs.agent, mesh) for group in groups if _tells(group)]


def _tells(group: Population) -> bool:
    """Whether there is anything to look at: agents that learn nothing have seen nothing."""
    return isinstance(getattr(group.runs.agent, "replay", None), Replay)


@partial(jax.jit, static_argnames="mesh")
def _look_at_all(agents: Any, states: Any, mesh: Mesh) -> Any:
    return sharded(risk_seen, mesh)(agents, states)


@jax.jit
def _look_at_one(agent: Any, state: Any) -> Any:
    return jax.tree.map(lambda number: number[None], risk_seen(agent, state))


@jax.jit
def _run(tree: Any, number: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], tree)


@partial(jax.jit, static_argnames="mesh")
def _recent(replays: Replay, mesh: Mesh) -> Any:
    """Replays with the latest transitions only: little to move."""

    def cut(replay: Replay) -> Replay:
        latest = jnp.maximum(replay.newest - jnp.arange(_SEEN - 1, -1, -1), 0) % replay.capacity
        newest = jnp.full_like(replay.newest, _SEEN - 1)
        unused = jnp.zeros((replay.queue.shape[0], _SEEN), replay.queue.dtype)
        return Replay(replay.rows[latest], unused, replay.count, newest, replay.obs_size)

    return sharded(cut, mesh)(replays)
