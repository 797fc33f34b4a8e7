"""How good a trained policy is: whole episodes without exploration, and what their returns look like."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from sentinel_rl.envs.spec import Env, TimeStep
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.risk import CVaR
from sentinel_rl.training.fused import cut, join

# Where an environment knows no time limit.
LIMIT = 10_000

# The actions at observations ``[B, obs]``, drawn with keys ``[B]``.
Choose = Callable[[Array, jax.Array], Int[Array, " B"]]
# Of observations ``[B, obs]``, the actions chosen there and the states of the environment after them: ``[B, ...]``.
Watch = Callable[[Array, Array, Any], Any]


@runtime_checkable
class Policy(Protocol):
    """Whatever can act without exploring: every agent, with its state."""

    def greedy(self, state: Any, obs: Array, key: jax.Array) -> Int[Array, ""]:
        """Choose an action."""
        ...


class Episodes(NamedTuple):
    """Finished episodes."""

    reward: Float[ArrayLike, "..."]
    discounted: Float[ArrayLike, "..."]
    length: Int[ArrayLike, "..."]
    terminated: Bool[ArrayLike, "..."]


class Summary(NamedTuple):
    """What is told of episodes: means, the tail of their discounted returns, and how often they ended badly."""

    episodes: int
    mean_return: float
    mean_discounted: float
    tail_discounted: float
    terminations_per_1000: float


class Player(NamedTuple):
    """Who plays a number of episodes side by side, and what is told of every decision."""

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
        own = cut((obs, keys[:, 0]), sizes)
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
    """Add what is told of the episodes that are not over."""

    def add(total: Array, now: Array) -> Array:
        return total + jnp.where(live.reshape(-1, *[1] * (now.ndim - 1)), now, 0)

    return jax.tree.map(add, sums, told)


@partial(jax.jit, static_argnames=("episodes", "limit"))
def _play_many(
    agent: Policy, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, episodes: int, limit: int
) -> Episodes:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(episodes))
    choose = jax.vmap(lambda obs, key: agent.greedy(state, obs, key))
    (played,), _ = play([Player(episodes, choose)], env, [keys], gamma, limit)
    return played


def evaluate(agent: Policy, state: Any, env: Env, episodes: int, seed: int = 0, gamma: ArrayLike = 0.99) -> Episodes:
    """Play episodes side by side; episode ``i`` depends on the seed and ``i`` alone.

    Raises:
        NumericalError: when a return is not finite.
    """
    _require_some(episodes)
    limit = env.spec.max_steps or LIMIT
    played = _play_many(agent, state, env, jax.random.key(seed), jnp.float32(gamma), episodes, limit)
    return _finite(Episodes(*(np.asarray(field) for field in played)), env.spec.name)


def evaluate_gymnasium(
    env: gymnasium.Env[Any, Any], choose: Callable[[Any], Any], episodes: int, seed: int = 0, gamma: float = 0.99
) -> Episodes:
    """Play episodes one after the other in a Gymnasium environment; episode ``i`` is reset with ``seed + i``."""
    _require_some(episodes)
    played = [_play_gymnasium(env, choose, seed + i, gamma) for i in range(episodes)]
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    return _finite(Episodes(*(np.array(field) for field in zip(*played, strict=True))), name)


def summarise(played: Episodes, alpha: float = 0.25) -> Summary:
    """Reduce episodes to the numbers that are reported; the tail is the library's CVaR."""
    return Summary(
        episodes=int(np.size(played.reward)),
        mean_return=float(np.mean(played.reward)),
        mean_discounted=float(np.mean(played.discounted)),
        tail_discounted=float(CVaR(alpha).of(np.asarray(played.discounted, np.float64))),
        terminations_per_1000=1000 * float(np.mean(played.terminated)),
    )


def pooled(parts: list[Episodes]) -> Episodes:
    """The episodes of several evaluations as one."""
    return Episodes(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def _play_gymnasium(env: gymnasium.Env[Any, Any], choose: Callable[[Any], Any], seed: int, gamma: float) -> Episodes:
    obs, _ = env.reset(seed=seed)
    reward, discounted, length = 0.0, 0.0, 0
    ended = terminated = False
    while not ended and length < LIMIT:
        obs, now, terminated, truncated, _ = env.step(choose(obs))
        reward, discounted, length = reward + float(now), discounted + gamma**length * float(now), length + 1
        ended = terminated or truncated
    return Episodes(reward, discounted, length, bool(terminated))


def _require_some(episodes: int) -> None:
    if episodes < 1:
        raise UsageError(f"an evaluation needs at least 1 episode, got {episodes}")


def _finite(played: Episodes, name: str) -> Episodes:
    bad = np.flatnonzero(~np.isfinite(np.asarray(played.reward)))
    if bad.size:
        raise NumericalError(f"the return of episode {bad[0]} of {name} is not finite: fix the environment")
    return played
