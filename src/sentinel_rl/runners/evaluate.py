"""How good a trained policy is: whole episodes without exploration, and what their returns look like."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.risk import CVaR

# Where an environment knows no time limit.
LIMIT = 10_000

# Of the observation, the action chosen there, and the state of the environment after it.
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


def play(agent: Policy, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, limit: int) -> Episodes:
    """Play one episode greedily, of at most `limit` steps."""
    return play_watched(agent, state, env, key, gamma, limit, lambda obs, action, env_state: ())[0]


def play_watched(
    agent: Policy, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, limit: int, watch: Watch
) -> tuple[Episodes, Any]:
    """Play one episode greedily, and sum over its decisions what `watch` tells of each."""
    reset_key, run_key = jax.random.split(key)
    env_state, obs = env.reset(reset_key)
    zero = jnp.zeros(())
    played = Episodes(zero, zero, jnp.zeros((), jnp.int32), jnp.array(False))

    def goes_on(carry: Any) -> Bool[Array, ""]:
        *_, played, ended, _ = carry
        return jnp.logical_and(~ended, played.length < limit)

    def step(carry: Any) -> Any:
        env_state, obs, played, _, seen = carry
        act_key, step_key = jax.random.split(jax.random.fold_in(run_key, played.length))
        action = agent.greedy(state, obs, act_key)
        env_state, after = env.step(env_state, action, step_key)
        discount = jnp.power(jnp.asarray(gamma, zero.dtype), played.length)
        following = Episodes(
            played.reward + after.reward,
            played.discounted + discount * after.reward,
            played.length + 1,
            after.terminated,
        )
        seen = jax.tree.map(jnp.add, seen, watch(obs, action, env_state))
        return env_state, after.obs, following, after.terminated | after.truncated, seen

    told = jax.eval_shape(lambda: watch(obs, agent.greedy(state, obs, run_key), env_state))
    nothing = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), told)
    *_, played, _, seen = jax.lax.while_loop(goes_on, step, (env_state, obs, played, jnp.array(False), nothing))
    return played, seen


@partial(jax.jit, static_argnames=("episodes", "limit"))
def _play_many(
    agent: Policy, state: Any, env: Env, key: jax.Array, gamma: ArrayLike, episodes: int, limit: int
) -> Episodes:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(episodes))
    return jax.vmap(lambda each: play(agent, state, env, each, gamma, limit))(keys)


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
