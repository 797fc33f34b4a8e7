"""Frozen policies of many runs examined at once: every run, every episode side by side in one compiled call."""

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from sentinel_rl.agents.agent import Accountable
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.highway.road import closest_lane
from sentinel_rl.envs.spec import Env
from sentinel_rl.runners.evaluate import LIMIT, Episodes, Watch, play_watched
from sentinel_rl.runners.population import Fleet, Population, sharded
from sentinel_rl.study.cell import Evaluation

# Episodes side by side on one device, of all its runs together: enough to fill it, and within its memory.
_SIDE_BY_SIDE = {"cpu": 500}
_SIDE_BY_SIDE_ELSEWHERE = 2**15

SPEED_BINS = 40  # of 1 m/s


def evaluate_frozen(
    fleet: Fleet, groups: list[Population], seeds: tuple[int, ...], env: Env, evaluation: Evaluation, gamma: float
) -> dict[str, np.ndarray]:
    """Play the episodes of an evaluation with the policy of every run.

    Episode ``i`` of a run depends on the evaluation's seed, the run's and ``i`` alone.

    Returns:
        ``discounted``, ``reward``, ``length``, ``terminated`` ``[S, E]``, and means over the decisions ``[S, ...]``.
    """
    size = groups[0].runs.obs.shape[0]
    side_by_side = _SIDE_BY_SIDE.get(fleet.devices[0].platform, _SIDE_BY_SIDE_ELSEWHERE)
    together = max(1, side_by_side * len(fleet.devices) // size)
    slices = math.ceil(evaluation.episodes / together)
    count = math.ceil(evaluation.episodes / slices)
    parts = []
    for begin in range(0, slices * count, count):
        numbers = jnp.arange(begin, begin + count)
        weights = numbers < evaluation.episodes  # the last slice may be longer than what is asked for
        row = []
        for index, group in enumerate(groups):
            own = [seeds[min(index * size + i, len(seeds) - 1)] for i in range(size)]
            keys = _run_keys(evaluation.seed, jnp.asarray(own, jnp.uint32))
            common = env, jnp.float32(gamma), numbers, weights, fleet.mesh
            row.append(_play_group(group.agents, _policies(group), keys, *common))
        parts.append(row)
    played, seen = _joined(jax.device_get(parts), len(seeds))
    fields = {name: values[:, : evaluation.episodes] for name, values in played._asdict().items()}
    decisions = np.sum(fields["length"], axis=1, dtype=np.float64)
    shares = {name: total / decisions.reshape(-1, *[1] * (total.ndim - 1)) for name, total in seen.items()}
    return {name: np.asarray(values, np.float32) for name, values in fields.items()} | shares


def _policies(group: Population) -> Any:
    """The states of a group without what was seen: frozen policies do not look back."""
    states = group.runs.agent
    if getattr(states, "replay", None) is None:
        return states
    return eqx.tree_at(lambda state: state.replay, states, None)


def _joined(parts: list[list[Any]], runs: int) -> tuple[Episodes, dict[str, np.ndarray]]:
    """The slices of the groups as one: episodes beside each other, counts added."""
    rows = [jax.tree.map(lambda *groups: np.concatenate(groups)[:runs], *row) for row in parts]
    played = jax.tree.map(lambda *each: np.concatenate(each, axis=1), *[row[0] for row in rows])
    seen = jax.tree.map(lambda *each: np.sum(each, axis=0, dtype=np.float64), *[row[1] for row in rows])
    return played, seen


@jax.jit
def _run_keys(seed: Any, seeds: Array) -> Array:
    return jax.vmap(lambda own: jax.random.fold_in(jax.random.key(seed), own))(seeds)


@partial(jax.jit, static_argnames="mesh")
def _play_group(
    agents: Any, states: Any, keys: Array, env: Env, gamma: Array, numbers: Array, weights: Array, mesh: Mesh
) -> Any:
    limit = env.spec.max_steps or LIMIT

    def one(agent: Accountable, state: Any, key: Array, common: Any) -> Any:
        gamma, numbers, weights = common
        watch = watch_decisions(agent, state, env)
        episode_keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
        played, seen = jax.vmap(lambda each: play_watched(agent, state, env, each, gamma, limit, watch))(episode_keys)
        return played, jax.tree.map(lambda counts: jnp.tensordot(weights.astype(counts.dtype), counts, axes=1), seen)

    return sharded(one, mesh, shared=1)(agents, states, keys, (gamma, numbers, weights))


def watch_decisions(agent: Accountable, state: Any, env: Env) -> Watch:
    """Make a function that tells of a decision what is worth counting, by name."""

    def watch(obs: Array, action: Array, env_state: Any) -> dict[str, Array]:
        seen = {"actions": jax.nn.one_hot(action, env.spec.num_actions)}
        if isinstance(env, Highway):
            seen |= _driving(env, env_state)
        if isinstance(agent, SentinelAgent):
            seen |= _reasons(agent, state, obs, action)
        return seen

    return watch


def _driving(env: Highway, state: Any) -> dict[str, Array]:
    """How fast the ego drives, and where."""
    lane = closest_lane(state.y[0], env.lanes_count).astype(jnp.int32)
    speed = jnp.clip(jnp.floor(state.speed[0]), 0, SPEED_BINS - 1).astype(jnp.int32)
    return {"speed": jax.nn.one_hot(speed, SPEED_BINS), "lane": jax.nn.one_hot(lane, env.lanes_count)}


def _reasons(agent: SentinelAgent, state: Any, obs: Array, action: Array) -> dict[str, Array]:
    """The penalties of the action taken, and whether other values of the same belief prefer another one."""
    why = agent.assess(state, obs)
    return {
        "aleatory": why.aleatory_penalty[action],
        "epistemic": why.epistemic_penalty[action],
        "differs_additive": (why.additive[action] < jnp.max(why.additive)).astype(obs.dtype),
        "differs_neutral": (why.mean[action] < jnp.max(why.mean)).astype(obs.dtype),
    }
