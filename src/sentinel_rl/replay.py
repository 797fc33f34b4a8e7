"""A ring of transitions from which every member draws only what its mask lets it see."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt8

Mask = Literal["bernoulli", "poisson", "exponential"]


class Transition(NamedTuple):
    """One step: ``obs`` and ``action``, the ``reward`` and the true successor ``next_obs`` with how it ended."""

    obs: Float[Array, "... obs"]
    action: Int[Array, "..."]
    reward: Float[Array, "..."]
    next_obs: Float[Array, "... obs"]
    terminated: Bool[Array, "..."]
    truncated: Bool[Array, "..."]


class Horizon(NamedTuple):
    """How far a draw looks ahead.

    Args:
        gamma: discount of a step.
        steps: whose rewards are added up, at most: an episode's end, or the newest transition, ends them before.
        limit_ends: whether a time limit ends the return, or cuts the episode off before it ended.
    """

    gamma: float | Array = 1.0
    steps: int = 1
    limit_ends: bool = False


ONE_STEP = Horizon()


class Draw(NamedTuple):
    """Transitions drawn for learning.

    Args:
        transitions: ``[size]`` when the members share them, ``[K, size]`` when each has its own. Where several steps
            are looked ahead, the reward is their discounted sum, and the successor and the ends are those of the last.
        discount: what the return from the successor counts: gamma to the number of steps, or 0 where there is none.
        weights: how much they count for every member, ``[K, size]``.
        number: of every transition, as they were counted when they were added.
    """

    transitions: Transition
    discount: Float[Array, "..."]
    weights: Float[Array, "K size"]
    number: Int[Array, "..."]


class Replay(eqx.Module):
    """Transitions with K bootstrap weights each, and for every member the list of those it may draw.

    Both are rings that are only ever written to: transition ``t`` stands in row ``t % capacity``, and the j-th
    transition that member i may see is named in ``queue[i, j % capacity]``. What has been overwritten is found out
    when it matters, at sampling: a ring that is read and written in the same step is copied by XLA, whole.

    Observations of bytes, such as images, are kept as bytes, in ``frames``: a quarter of what numbers would take.
    """

    rows: Float[Array, "capacity row"]
    queue: Int[Array, "K capacity"]
    count: Int[Array, " K"]
    newest: Int[Array, ""]
    obs_size: int = eqx.field(static=True)
    copies: int = eqx.field(static=True, default=1)
    frames: UInt8[Array, "capacity frame"] | None = None

    @property
    def capacity(self) -> int:
        """The number of transitions kept."""
        return self.rows.shape[0]

    def add(self, t: Int[Array, ""], transition: Transition, weights: Float[Array, " K"]) -> "Replay":
        """Write transition number ``t`` (counted from 0) over the oldest one.

        ``t`` is the shared clock: kept out of the state, it stays one number when runs are vmapped, and the
        write stays in place.
        """
        t = jnp.asarray(t, jnp.int32)
        row, frames = _pack(transition, weights), self.frames
        if frames is not None:
            seen, row = jnp.split(row, (2 * self.obs_size,))
            frames = jax.lax.dynamic_update_index_in_dim(frames, seen.astype(jnp.uint8), t % self.capacity, axis=0)
        rows = jax.lax.dynamic_update_index_in_dim(self.rows, row, t % self.capacity, axis=0)
        sees = weights > 0
        # A member that does not see it writes beyond the end, and that is dropped.
        place = jnp.where(sees, self.count % self.capacity, self.capacity)
        queue = self.queue.at[jnp.arange(place.size), place].set(t, mode="drop", unique_indices=True)
        return Replay(rows, queue, self.count + sees, t, self.obs_size, self.copies, frames)

    def available(self) -> Int[Array, " K"]:
        """The number of transitions that each member may draw: its latest that are not yet overwritten."""
        members = jnp.arange(self.count.size)
        oldest = self.newest - self.capacity + 1

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket  # the latest `low` entries are alive, the latest `high + 1` are not
            middle = (low + high + 1) // 2
            alive = self.queue[members, (self.count - middle) % self.capacity] >= oldest
            return jnp.where(alive, middle, low), jnp.where(alive, high, middle - 1)

        bracket = jnp.zeros_like(self.count), jnp.minimum(self.count, self.capacity)
        alive, _ = jax.lax.fori_loop(0, self.capacity.bit_length(), halve, bracket)
        return jnp.asarray(alive)

    def latest(self, count: int) -> Transition:
        """The latest transitions, oldest first; the first one ever is repeated where there are fewer than `count`."""
        times = jnp.maximum(self.newest - jnp.arange(count - 1, -1, -1), 0)
        return _unpack(self._rows_of(times), self.obs_size)

    def only_latest(self, count: int) -> "Replay":
        """A small replay of the latest `count` transitions, from which `latest` can be asked and nothing drawn."""
        times = jnp.maximum(self.newest - jnp.arange(count - 1, -1, -1), 0)
        unused = jnp.zeros((self.queue.shape[0], count), self.queue.dtype)
        newest = jnp.full_like(self.newest, count - 1)
        frames = None if self.frames is None else self.frames[times % self.capacity]
        rows = self.rows[times % self.capacity]
        return Replay(rows, unused, self.count, newest, self.obs_size, self.copies, frames)

    def sample_shared(self, key: jax.Array, size: int, horizon: Horizon = ONE_STEP) -> Draw:
        """Draw ``size`` transitions for all members together, uniformly with replacement.

        A member counts those that its mask does not let it see with weight 0: the bootstrap of `sample` in
        expectation, at a K-th of the passes through the networks where members judge each other's draws.
        """
        kept = jnp.minimum(self.newest + 1, self.capacity)
        back = jnp.clip((jax.random.uniform(key, (size,)) * kept).astype(jnp.int32), 0, kept - 1)
        index = self.newest - back
        rows = self._rows_of(index)
        return Draw(*self._ahead(rows, index, horizon), jnp.moveaxis(rows[:, -self.count.size :], 0, 1), index)

    def sample(self, key: jax.Array, size: int, horizon: Horizon = ONE_STEP) -> Draw:
        """Draw ``size`` transitions for every member, uniformly from those it may see, with replacement.

        Transitions and weights are ``[K, size]``; a member that has seen nothing gets weights of zero.
        """
        available = self.available()[:, None]
        dice = jax.random.uniform(key, (self.count.size, size))
        back = jnp.clip((dice * available).astype(jnp.int32), 0, jnp.maximum(available - 1, 0)) + 1
        place = (self.count[:, None] - back) % self.capacity
        index = jnp.take_along_axis(self.queue, place, axis=1)
        rows = self._rows_of(index)
        own = jnp.einsum("ksk->ks", rows[..., -self.count.size :])
        return Draw(*self._ahead(rows, index, horizon), jnp.where(available > 0, own, 0.0), index)

    def _ahead(
        self, rows: Float[Array, "... row"], number: Int[Array, "..."], horizon: Horizon
    ) -> tuple[Transition, Float[Array, "..."]]:
        """Transitions over up to as many steps as the horizon has, and the discount of what follows them."""

        def ended(step: Transition) -> Array:
            return step.terminated | step.truncated if horizon.limit_ends else step.terminated

        last = _unpack(rows, self.obs_size)
        first, reward, factor = last, last.reward, jnp.asarray(horizon.gamma)
        for _ in range(1, horizon.steps):
            number, found = self._next_of(number, last)
            goes_on = found & ~(last.terminated | last.truncated)
            step = _unpack(self._rows_of(number), self.obs_size)
            reward = reward + jnp.where(goes_on, factor * step.reward, 0.0)
            factor = jnp.where(goes_on, factor * horizon.gamma, factor)
            last = _where(goes_on, step, last)
        return last._replace(obs=first.obs, action=first.action, reward=reward), factor * (1.0 - ended(last))

    def _next_of(self, number: Int[Array, "..."], step: Transition) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
        """The number of the transition that follows a step in its episode, and whether it is there.

        Several environments write in turn, so that it is one of the next as many; it is the one that begins where the
        step ended. Where it is not found, the step is the last that is known.
        """
        ahead = jnp.stack([number + place for place in range(1, self.copies + 1)], axis=-1)
        obs = self._rows_of(ahead)[..., : self.obs_size]
        fits = jnp.all(obs == step.next_obs[..., None, :], axis=-1) & (ahead <= self.newest)
        return number + 1 + jnp.argmax(fits, axis=-1), jnp.any(fits, axis=-1)

    def _rows_of(self, number: Int[Array, "..."]) -> Float[Array, "... row"]:
        """The transitions of these numbers, each in one row."""
        place = number % self.capacity
        if self.frames is None:
            return self.rows[place]
        return jnp.concatenate([self.frames[place].astype(jnp.float32), self.rows[place]], axis=-1)


def init_replay(capacity: int, obs_size: int, members: int, copies: int = 1, in_bytes: bool = False) -> Replay:
    """Make an empty replay.

    Args:
        capacity: transitions kept.
        obs_size: numbers of an observation.
        members: K, with a mask each.
        copies: environments whose transitions come in turn.
        in_bytes: observations are whole numbers from 0 to 255, and kept as such.
    """
    return Replay(
        rows=jnp.zeros((capacity, (0 if in_bytes else 2 * obs_size) + 4 + members)),
        queue=jnp.zeros((members, capacity), jnp.int32),
        count=jnp.zeros(members, jnp.int32),
        newest=jnp.zeros((), jnp.int32),
        obs_size=obs_size,
        copies=copies,
        frames=jnp.zeros((capacity, 2 * obs_size), jnp.uint8) if in_bytes else None,
    )


def bootstrap_weights(key: jax.Array, members: int, mask: Mask, rate: float | Array) -> Float[Array, " K"]:
    """Draw the weight of one transition for every member (Osband et al. 2016).

    ``bernoulli``: 1 with probability `rate`; ``poisson``: a Poisson(1) count; ``exponential``: an Exp(1) weight.
    """
    if mask == "bernoulli":
        return jax.random.bernoulli(key, rate, (members,)).astype(jnp.float32)
    if mask == "poisson":
        return jax.random.poisson(key, 1.0, (members,)).astype(jnp.float32)
    if mask == "exponential":
        return jax.random.exponential(key, (members,))
    raise ValueError(f"unknown mask {mask!r}: choose one of {get_args(Mask)}")


def _pack(transition: Transition, weights: Array) -> Array:
    """Put a transition into one row: a single write and a single read instead of seven."""
    numbers = [transition.action, transition.reward, transition.terminated, transition.truncated]
    scalars = jnp.stack([jnp.asarray(number, jnp.float32) for number in numbers])
    return jnp.concatenate([transition.obs, transition.next_obs, scalars, weights]).astype(jnp.float32)


def _unpack(rows: Array, obs_size: int) -> Transition:
    obs, next_obs, rest = jnp.split(rows, (obs_size, 2 * obs_size), axis=-1)
    return Transition(
        obs=obs,
        action=rest[..., 0].astype(jnp.int32),
        reward=rest[..., 1],
        next_obs=next_obs,
        terminated=rest[..., 2] > 0,
        truncated=rest[..., 3] > 0,
    )


def _where(condition: Bool[Array, "..."], one: Transition, other: Transition) -> Transition:
    """One or the other transition, place by place."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(condition[..., None] if a.ndim > condition.ndim else condition, a, b)

    return Transition._make(map(pick, one, other))


def map_replays(function: Callable[[Replay], Any], tree: Any) -> Any:
    """Apply a function to every replay in a tree; all else stays as it is."""

    def apply(node: Any) -> Any:
        return function(node) if isinstance(node, Replay) else node

    return jax.tree.map(apply, tree, is_leaf=lambda node: isinstance(node, Replay))


def filled_part(tree: Any, t: int) -> Any:
    """Cut every replay in a tree to what has been written in the first ``t`` steps; the rest is zero."""

    def cut(replay: Replay) -> Any:
        short = eqx.tree_at(lambda node: (node.rows, node.queue), replay, (replay.rows[:t], replay.queue[:, :t]))
        return short if short.frames is None else eqx.tree_at(lambda node: node.frames, short, short.frames[:t])

    return map_replays(cut, tree)


def padded_like(array: Any, like: jax.ShapeDtypeStruct) -> Any:
    """Append zeros to an array, up to the shape of another."""
    if array.shape == like.shape:
        return array
    return jnp.pad(array, [(0, whole - part) for part, whole in zip(array.shape, like.shape, strict=True)])
