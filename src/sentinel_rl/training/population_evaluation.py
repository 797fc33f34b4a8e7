"""Frozen policies of many runs examined at once: every run, every episode side by side in one compiled call."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array

from sentinel_rl._mapping import each_of
from sentinel_rl.agents.agent import Agent, greedy_in
from sentinel_rl.envs.spec import Diagnosed, Env
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import map_replays
from sentinel_rl.storage.configuration import plain, restored
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.evaluation import LIMIT, Player, play
from sentinel_rl.training.fused import Population
from sentinel_rl.training.population import Fleet, joined, stack_agents

# Episodes side by side on one device, of all its runs together: enough to fill it, and within its memory.
_SIDE_BY_SIDE = {"cpu": 500}
_SIDE_BY_SIDE_ELSEWHERE = 2**15

# The groups of a training and its seeds.
_Trained = tuple[Sequence[Population], Sequence[int]]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Episodes of the frozen final policies.

    Args:
        name: what the arrays of the record are called by.
        episodes: for every run.
        seed: of the episodes. Run ``s`` gets its own, the same for every agent, so that agents can be paired.
        env_settings: changes of the environment, on top of the cell's.
        acting: options that the frozen policies act with in place of those they were trained with, such as measures of
            risk. They may differ in numbers only: ``cvar:1`` is the mean for an agent that was trained with a CVaR.
        keeps: names of the arrays that a record keeps, ``reward`` among them; all when None. A record has at most 1 000
            arrays, too few for all of a hundred evaluations.
    """

    name: str = "frozen"
    episodes: int = 1_000
    seed: int = 1_000_000
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    acting: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    keeps: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise UsageError(f"an evaluation needs a name without '/', got {self.name!r}")
        if self.episodes < 1:
            raise UsageError(f"the evaluation {self.name!r} needs at least 1 episode, got {self.episodes}")
        if self.keeps is not None:
            object.__setattr__(self, "keeps", tuple(self.keeps))
            if "reward" not in self.keeps:
                raise UsageError(f"the evaluation {self.name!r} must keep reward, got {', '.join(self.keeps)}")
        for name in ("env_settings", "acting"):
            object.__setattr__(self, name, restored(plain(getattr(self, name), name)))


def evaluate_population(
    trainings: Sequence[Training], env: Env, evaluation: Evaluation, gamma: float, agents: Sequence[Agent] | None = None
) -> list[dict[str, np.ndarray]]:
    """Play the episodes of an evaluation with the policy of every run.

    Episode ``i`` of a run depends on the evaluation's seed, the run's and ``i`` alone.

    Args:
        trainings: that went side by side.
        env: to play in.
        evaluation: how many episodes, and their seed.
        gamma: discount.
        agents: one for every training, whose numbers its policies act with in place of their own.

    Returns:
        for every training ``discounted``, ``reward``, ``length``, ``terminated`` ``[S, E]``, and means over the
        decisions ``[S, ...]``.
    """
    groups = [each.groups for each in trainings]
    if agents is not None:
        groups = [_acting(own, agent) for own, agent in zip(groups, agents, strict=True)]
    trained = [(own, each.seeds) for own, each in zip(groups, trainings, strict=True)]
    parts = [
        [told for arguments in calls for told in _play_groups(*arguments)]
        for calls in _slices(trainings[0].fleet, trained, env, evaluation, gamma)
    ]
    by_group = iter(zip(*jax.device_get(parts), strict=True))
    return [_told([next(by_group) for _ in each.groups], len(each.seeds), evaluation.episodes) for each in trainings]


def lower_evaluation(
    fleet: Fleet, trained: Sequence[_Trained], env: Env, evaluation: Evaluation, gamma: float
) -> list[Any]:
    """The programs of an evaluation, traced but not compiled; outlines of groups are enough."""
    return [_play_groups.lower(*arguments) for arguments in next(_slices(fleet, trained, env, evaluation, gamma))]


def _acting(groups: Sequence[Population], agent: Agent) -> list[Population]:
    """Groups whose states are those of their training, and whose numbers are an agent's.

    Raises:
        UsageError: for an agent of another kind.
    """
    one = stack_agents([agent])
    stacks = [jax.tree.map(lambda leaf, n=group.size: jnp.repeat(leaf, n, axis=0), one) for group in groups]
    if any(
        str(jax.tree.structure(s)) != str(jax.tree.structure(g.agents)) for s, g in zip(stacks, groups, strict=True)
    ):
        raise UsageError(
            f"{agent} cannot act for agents of another kind: an evaluation may change their numbers only, for example "
            "the alpha of a CVaR (the mean is cvar:1)"
        )
    return [Population(stack, group.runs) for stack, group in zip(stacks, groups, strict=True)]


def _slices(
    fleet: Fleet, trained: Sequence[_Trained], env: Env, evaluation: Evaluation, gamma: float
) -> Iterator[list[tuple[Any, ...]]]:
    """The calls of `_play_groups` that play all episodes, as many at once as the devices take."""
    players = [_policies(groups, seeds, index) for groups, seeds in trained for index in range(len(groups))]
    calls = fleet.calls(players)
    side_by_side = _SIDE_BY_SIDE.get(fleet.devices[0].platform, _SIDE_BY_SIDE_ELSEWHERE) * len(fleet.devices)
    together = max(1, side_by_side // max(sum(group.size for group in call) for call in calls))
    slices = math.ceil(evaluation.episodes / together)
    count = math.ceil(evaluation.episodes / slices)
    for begin in range(0, slices * count, count):
        numbers = jnp.arange(begin, begin + count)
        weights = numbers < evaluation.episodes  # the last slice may be longer than what is asked for
        common = env, jnp.uint32(evaluation.seed), jnp.float32(gamma), numbers, weights, fleet.mesh
        yield [(call, *common) for call in calls]


def _policies(groups: Sequence[Population], seeds: Sequence[int], index: int) -> Population:
    """A group without its worlds and what was seen, which frozen policies need not, and with seeds for keys."""
    group = groups[index]
    own = [seeds[min(index * group.size + i, len(seeds) - 1)] for i in range(group.size)]
    group = map_replays(lambda replay: None, group)
    world_and_key = None, jnp.asarray(own, jnp.uint32)
    policies: Population = eqx.tree_at(lambda group: (group.runs.env, group.runs.key), group, world_and_key)
    return policies


def _told(groups: list[Any], runs: int, episodes: int) -> dict[str, np.ndarray]:
    """The slices of a training's groups as one: episodes beside each other, counts added."""
    rows = [jax.tree.map(lambda *each: np.concatenate(each)[:runs], *row) for row in zip(*groups, strict=True)]
    played = jax.tree.map(lambda *each: np.concatenate(each, axis=1), *[row[0] for row in rows])
    seen = jax.tree.map(lambda *each: np.sum(each, axis=0, dtype=np.float64), *[row[1] for row in rows])
    fields = {name: values[:, :episodes] for name, values in played._asdict().items()}
    decisions = np.sum(fields["length"], axis=1, dtype=np.float64)
    shares = {name: total / decisions.reshape(-1, *[1] * (total.ndim - 1)) for name, total in seen.items()}
    types = {"length": np.int64, "terminated": np.bool_}
    return {name: np.asarray(values, types.get(name, np.float32)) for name, values in fields.items()} | shares


@partial(jax.jit, static_argnames="mesh")
def _play_groups(
    groups: list[Population], env: Env, seed: Array, gamma: Array, numbers: Array, weights: Array, mesh: Mesh
) -> list[Any]:
    episodes = len(numbers)

    def local(groups: list[Population], common: Any) -> list[Any]:
        seed, gamma, numbers, weights = common
        kinds, parted = joined(groups)
        players = [_player(kind, env, episodes) for kind in kinds]
        keys = [_episode_keys(seed, kind.runs.key, numbers).reshape(-1) for kind in kinds]
        played, seen = play(players, env, keys, gamma, env.spec.max_steps or LIMIT)
        return parted([_by_run(told, kind.size, weights) for kind, *told in zip(kinds, played, seen, strict=True)])

    split, whole = PartitionSpec("runs"), PartitionSpec()
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(split, whole), out_specs=split, check_vma=False)
    told: list[Any] = mapped(groups, (seed, gamma, numbers, weights))
    return told


def _episode_keys(seed: Array, runs: Array, numbers: Array) -> Array:
    """Keys ``[runs, episodes]``."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(seed), runs)
    return jax.vmap(lambda key: jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers))(keys)


def _player(kind: Population, env: Env, episodes: int) -> Player:
    """All runs of a kind, each in its own episodes."""

    def every(function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of agent, state and one decision for decisions ``[runs * episodes, ...]``."""

        def of_run(agent: Any, state: Any, *decisions: Any) -> Any:
            return jax.vmap(lambda *each: function(agent, state, *each))(*decisions)

        def of_all(*decisions: Any) -> Any:
            by_run = jax.tree.map(lambda leaf: leaf.reshape(kind.size, episodes, *leaf.shape[1:]), decisions)
            told = each_of(of_run)(kind.agents, kind.runs.agent, *by_run)
            return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), told)

        return of_all

    return Player(
        kind.size * episodes,
        every(lambda agent, state, world, obs, key: greedy_in(agent, state, env, world, obs, key)),
        every(partial(diagnose, env)),
    )


def _by_run(told: Any, runs: int, weights: Array) -> Any:
    """Episodes ``[runs, episodes]``, and the sums over those that count."""
    played, seen = jax.tree.map(lambda leaf: leaf.reshape(runs, -1, *leaf.shape[1:]), told)
    return played, jax.tree.map(lambda counts: jnp.einsum("e,re...->r...", weights.astype(counts.dtype), counts), seen)


def diagnose(env: Env, agent: Agent, state: Any, obs: Array, action: Array, env_state: Any) -> dict[str, Array]:
    """The diagnostics of a decision: its action, what the environment tells of the state it led to, and the agent's."""
    told = {"actions": jax.nn.one_hot(action, env.spec.num_actions)}
    if isinstance(env, Diagnosed):
        told |= env.diagnostics(env_state)
    return told | agent.diagnostics(state, obs, action)
