"""How good a trained policy is: whole episodes without exploration, and what their returns look like."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, ArrayLike, Bool, Int

from sentinel_rl._checks import is_number, is_whole
from sentinel_rl.agents.agent import Agent, StateBased, greedy_in
from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.envs.handle import EnvHandle, EnvLike, resolve_env
from sentinel_rl.envs.spec import Diagnosed, Env, TimeStep
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.training.fused import cut, join
from sentinel_rl.training.host_checks import ends_of, reset_of, rewards_of, step_of, steps_of
from sentinel_rl.training.metrics import Episodes
from sentinel_rl.training.schedule import require_seed

# Where an environment knows no time limit.
LIMIT = 10_000
# Of evaluations: far from the seeds that people train with.
EVALUATION_SEED = 1_000_000
MOST_EPISODES = 1_000_000

# The actions in states of the environment ``[B, ...]`` with observations ``[B, obs]``, drawn with keys ``[B]``.
Choose = Callable[[Any, Array, jax.Array], Int[Array, " B"]]
# Of observations ``[B, obs]``, the actions chosen there and the states of the environment after them: ``[B, ...]``.
Watch = Callable[[Array, Array, Any], Any]


class Player(NamedTuple):
    """A policy, how many episodes it plays side by side, and the diagnostics of each of its decisions."""

    episodes: int
    choose: Choose
    watch: Watch = lambda obs, action, env_state: ()


def play(
    players: Sequence[Player], env: Env, keys: Sequence[jax.Array], gamma: ArrayLike, limit: int
) -> tuple[list[Episodes], list[Any]]:
    """Play episodes of at most `limit` steps side by side, the worlds of all players in one batch.

    Args:
        players: each chooses in its own episodes.
        env: a JAX environment.
        keys: by player, one for each of its episodes.
        gamma: discount.
        limit: of the steps.

    Returns:
        by player, its episodes and the sums over their decisions of what it tells of each, ``[episodes, ...]``.
    """
    sizes = [player.episodes for player in players]
    reset_keys, run_keys = jnp.moveaxis(jax.vmap(jax.random.split)(join(keys)), 1, 0)
    zero, count = jnp.zeros(sum(sizes)), jnp.zeros(sum(sizes), jnp.int32)
    begun = Episodes(zero, zero, count, jnp.zeros(sum(sizes), bool))

    def decide(worlds: Any, obs: Array, step: Array) -> tuple[Any, TimeStep, list[Any]]:
        keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, step)))(run_keys)
        own = cut((worlds, obs, keys[:, 0]), sizes)
        action = join([player.choose(*seen) for player, seen in zip(players, own, strict=True)])
        following, after = jax.vmap(env.step)(worlds, action, keys[:, 1])
        parted = zip(players, cut((obs, action, following), sizes), strict=True)
        return following, after, [player.watch(*seen) for player, seen in parted]

    def goes_on(carry: Any) -> Bool[Array, ""]:
        *_, live, step = carry
        return jnp.logical_and(jnp.any(live), step < limit)

    def turn(carry: Any) -> Any:
        worlds, obs, played, seen, live, step = carry
        following, after, told = decide(worlds, obs, step)
        discount = jnp.power(jnp.asarray(gamma, zero.dtype), step)
        gained = jnp.where(live, after.reward, 0.0)
        played = Episodes(
            played.reward + gained,
            played.discounted + discount * gained,
            played.length + live,
            jnp.where(live, after.terminated, played.terminated),
        )
        seen = [_add(*parts) for parts in zip(seen, told, cut(live, sizes), strict=True)]
        live_next = live & ~(after.terminated | after.truncated)
        return following, after.obs, played, seen, live_next, step + 1

    worlds, obs = jax.vmap(env.reset)(reset_keys)
    first = jnp.zeros((), jnp.int32)
    _, _, told = jax.eval_shape(decide, worlds, obs, first)
    nothing = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), told)
    *_, played, seen, _, _ = jax.lax.while_loop(
        goes_on, turn, (worlds, obs, begun, nothing, jnp.ones(sum(sizes), bool), first)
    )
    return cut(played, sizes), seen


def _add(sums: Any, told: Any, live: Bool[Array, " B"]) -> Any:
    """Add the diagnostics of the episodes that are not over."""

    def add(total: Array, now: Array) -> Array:
        return total + jnp.where(live.reshape(-1, *[1] * (now.ndim - 1)), now, 0)

    return jax.tree.map(add, sums, told)


def evaluate(
    agent: Agent,
    state: Any,
    env: EnvLike,
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    gamma: float | None = None,
) -> Episodes:
    """Play whole episodes with the frozen policy of a trained agent, without exploration.

    In a JAX environment all episodes are played side by side, and episode ``i`` depends on the seed and ``i`` alone. In
    a Gymnasium environment they are played one after the other, episode ``i`` reset with ``seed + i``.

    Args:
        agent: the agent.
        state: its state, or one made by ``agent.with_policy``.
        env: a name, a Gymnasium environment or a JAX one, of the sizes the agent was trained for.
        episodes: how many.
        seed: of the episodes; the default is one that training does not use.
        gamma: discount of the returns; by default the task's own (`EnvSpec.gamma`), whatever the agent learnt with.

    Raises:
        NumericalError: when a return is not finite.
    """
    handle = resolve_env(env)
    _require_some(episodes)
    seed = require_seed(seed)
    if gamma is not None and not is_number(gamma, 0, 1):
        raise UsageError(f"the discount of an evaluation must be a number from 0 to 1, got {gamma!r}")
    discount = handle.spec.gamma if gamma is None else gamma
    return _evaluate(agent, state, handle, episodes, jax.random.key(seed), seed, discount)


def evaluate_watched(
    agent: Agent,
    state: Any,
    env: EnvLike,
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    gamma: float | None = None,
) -> tuple[Episodes, dict[str, np.ndarray]]:
    """Play the episodes of `evaluate`, and tell what the environment says of them beside its rewards.

    Returns:
        the episodes, and for each of them the means over its decisions of the single numbers among the environment's
        diagnostics (`Diagnosed`), by name, ``[episodes]``: on the highway ``mean_speed``. An environment that is
        stepped from Python tells nothing.
    """
    handle = resolve_env(env)
    if not handle.is_jax:
        return evaluate(agent, state, handle, episodes, seed, gamma), {}
    _require_some(episodes)
    discount, limit = handle.spec.gamma if gamma is None else gamma, handle.spec.max_steps or LIMIT
    arguments = agent, state, handle.env, jax.random.key(seed), jnp.float32(discount), episodes, limit
    played, seen = jax.device_get(_watch_many(*arguments))
    return _finite(played, handle.spec.name), {name: total / played.length for name, total in seen.items()}


def evaluate_run(
    agent: Agent, state: Any, handle: EnvHandle, episodes: int, seed: int, run_seed: int, gamma: float
) -> Episodes:
    """Play the episodes of one run's evaluation: those that `evaluate_population` plays where they are compiled."""
    key = jax.random.fold_in(jax.random.key(seed), run_seed)
    first = int(np.random.SeedSequence([seed, run_seed]).generate_state(1)[0]) & 0x3FFFFFFF
    return _evaluate(agent, state, handle, episodes, key, first, gamma)


def _evaluate(
    agent: Agent, state: Any, handle: EnvHandle, episodes: int, key: jax.Array, first_seed: int, gamma: float
) -> Episodes:
    name = handle.spec.name
    if handle.is_jax:
        limit = handle.spec.max_steps or LIMIT
        played = _play_many(agent, state, handle.env, key, jnp.float32(gamma), episodes, limit)
        return _finite(Episodes(*(np.asarray(field) for field in played)), name)
    if handle.env is None or isinstance(handle.env, VectorEnv):
        raise UsageError(f"an evaluation needs one environment to play in, got {handle.env!r}")
    choose = _chooser(agent, state, handle, key)
    rows = [_play_gymnasium(handle.env, choose, first_seed + i, gamma, name) for i in range(episodes)]
    return _finite(Episodes(*(np.array(field) for field in zip(*rows, strict=True))), name)


@partial(jax.jit, static_argnames=("episodes", "limit"))
def _play_many(
    agent: Agent, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, episodes: int, limit: int
) -> Episodes:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(episodes))
    choose = jax.vmap(lambda world, obs, key: greedy_in(agent, state, env, world, obs, key))
    (played,), _ = play([Player(episodes, choose)], env, [keys], gamma, limit)
    return played


@partial(jax.jit, static_argnames=("episodes", "limit"))
def _watch_many(
    agent: Agent, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, episodes: int, limit: int
) -> tuple[Episodes, dict[str, Array]]:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(episodes))
    choose = jax.vmap(lambda world, obs, key: greedy_in(agent, state, env, world, obs, key))

    def numbers(world: Any) -> dict[str, Array]:
        told = env.diagnostics(world) if isinstance(env, Diagnosed) else {}
        return {name: value for name, value in told.items() if value.ndim == 0}

    player = Player(episodes, choose, lambda obs, action, worlds: jax.vmap(numbers)(worlds))
    (played,), (seen,) = play([player], env, [keys], gamma, limit)
    return played, seen


def _chooser(agent: Agent, state: Any, handle: EnvHandle, key: jax.Array) -> Callable[[Any], int]:
    """The frozen policy as a function of an observation of a Gymnasium environment.

    The Gymnasium face of a JAX environment knows the true state, for agents that choose by it.
    """
    draws, face = itertools.count(), handle.env.unwrapped

    def choose(obs: Any) -> int:
        (row,), _ = handle.batch(obs)
        if isinstance(agent, StateBased) and isinstance(face, GymEnv):
            action = _greedy_in(agent, state, face.env, face.state, row, key, next(draws))
        else:
            action = _greedy(agent, state, row, key, next(draws))
        return int(action) + handle.first_action

    return choose


@jax.jit
def _greedy(agent: Agent, state: Any, obs: Array, key: jax.Array, draw: Array) -> Array:
    return agent.greedy(state, obs, jax.random.fold_in(key, draw))


@jax.jit
def _greedy_in(agent: Agent, state: Any, env: Env, env_state: Any, obs: Array, key: jax.Array, draw: Array) -> Array:
    return greedy_in(agent, state, env, env_state, obs, jax.random.fold_in(key, draw))


def _play_gymnasium(
    env: gymnasium.Env[Any, Any], choose: Callable[[Any], Any], seed: int, gamma: float, name: str
) -> Episodes:
    where = f"episode of seed {seed}"
    with steps_of(name, "reset", where):
        returned = env.reset(seed=seed)
    obs = reset_of(returned, name, where)
    reward, discounted, length = 0.0, 0.0, 0
    ended = terminated = False
    while not ended and length < LIMIT:
        action, where = choose(obs), f"step {length} of the episode of seed {seed}"
        with steps_of(name, "step", where):
            stepped = env.step(action)
        obs, given, terminates, truncates, _ = step_of(stepped, name, where)
        now = float(rewards_of(given, 1, name, where)[0])
        terminated = bool(ends_of(terminates, 1, "terminated", name, where)[0])
        reward, discounted, length = reward + now, discounted + gamma**length * now, length + 1
        ended = terminated or bool(ends_of(truncates, 1, "truncated", name, where)[0])
    return Episodes(reward, discounted, length, terminated)


def _require_some(episodes: int) -> None:
    if not is_whole(episodes, 1, MOST_EPISODES):
        raise UsageError(f"an evaluation needs at least 1 episode and at most {MOST_EPISODES}, got {episodes!r}")


def _finite(played: Episodes, name: str) -> Episodes:
    bad = np.flatnonzero(~np.isfinite(np.asarray(played.reward)))
    if bad.size:
        raise NumericalError(f"the return of episode {bad[0]} of {name} is not finite: fix the environment")
    return played
