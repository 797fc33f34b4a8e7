"""Copies of an environment, stepped and restarted in one compiled call."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs._faces import pack
from sentinel_rl.envs.spec import Env, TimeStep


class Batch(NamedTuple):
    """All copies between two calls: their states, random streams, steps so far, and whose episode has ended."""

    state: Any
    keys: jax.Array
    time: Int[Array, " N"]
    ended: Bool[Array, " N"]


@jax.jit
def start(env: Env, keys: jax.Array) -> tuple[Batch, Float[Array, "N obs"]]:
    """Start an episode in every copy."""
    keys, now = _split(keys)
    state, obs = jax.vmap(env.reset)(now)
    return Batch(state, keys, jnp.zeros(keys.shape, jnp.int32), jnp.zeros(keys.shape, bool)), obs


@jax.jit
def next_step(
    env: Env, batch: Batch, actions: Int[Array, " N"], limit: Int[Array, ""] | None
) -> tuple[Batch, Float[Array, "N row"]]:
    """Step where an episode runs; where it ended in the last call, start the next one (reward 0) instead.

    Returns:
        the copies, and what followed as packed rows.
    """
    keys, now = _split(batch.keys)
    state, after = jax.vmap(env.step)(batch.state, actions, now)
    after = _within(limit, batch.time + 1, after)
    state, obs = _renew(env, batch.ended, now, (state, after.obs))
    runs = ~batch.ended
    reward = jnp.where(runs, after.reward, jnp.zeros_like(after.reward))
    after = TimeStep(obs, reward, after.terminated & runs, after.truncated & runs)
    time = jnp.where(runs, batch.time + 1, 0)
    return Batch(state, keys, time, after.terminated | after.truncated), jax.vmap(pack)(after)


@jax.jit
def same_step(
    env: Env, batch: Batch, actions: Int[Array, " N"], limit: Int[Array, ""] | None
) -> tuple[Batch, Float[Array, "N row"], Float[Array, "N obs"]]:
    """Step, and where an episode ends start the next one at once.

    Returns:
        the copies, what followed the actions as packed rows, and the observations to act on next.
    """
    keys, now = _split(batch.keys)
    state, after = jax.vmap(env.step)(batch.state, actions, now)
    after = _within(limit, batch.time + 1, after)
    ended = after.terminated | after.truncated
    later, fresh = _split(keys)
    state, obs = _renew(env, ended, fresh, (state, after.obs))
    time = jnp.where(ended, 0, batch.time + 1)
    return Batch(state, jnp.where(ended, later, keys), time, jnp.zeros_like(ended)), jax.vmap(pack)(after), obs


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One key to keep and one to use, for every copy."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


def _within(limit: Int[Array, ""] | None, time: Int[Array, " N"], after: TimeStep) -> TimeStep:
    """Truncate at the limit, terminated or not, as Gymnasium's `TimeLimit` does."""
    return after if limit is None else after._replace(truncated=after.truncated | (time >= limit))


def _renew(env: Env, which: Bool[Array, " N"], keys: jax.Array, current: tuple[Any, Array]) -> tuple[Any, Array]:
    """Replace state and observation by those of a new episode in some copies; costs nothing where there are none."""

    def replace(old: tuple[Any, Array]) -> tuple[Any, Array]:
        state, obs = jax.tree.map(_where(which), jax.vmap(env.reset)(keys), old)
        return state, obs

    state, obs = jax.lax.cond(jnp.any(which), replace, lambda old: old, current)
    return state, obs


def _where(which: Bool[Array, " N"]) -> Any:
    """Choose by copy, for leaves of any rank."""
    return lambda new, old: jnp.where(which.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
