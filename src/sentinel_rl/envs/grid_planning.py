"""The exact answers of a `GridWorld`, by dynamic programming: the best mean, the best CVaR, and the law of any policy.

Of CVaR there are two: that of the whole return, and that of the rest of it, asked anew at every step, which is what an
agent can follow that sees its place alone.

The return of an episode is known from when and where it ends and from what the guard has cost, so that the *status*
(no guarded cell entered yet, entered without a guard, entered with a guard of cost i) and the time are all that must be
remembered. For CVaR (Rockafellar and Uryasev 2000; Bauerle and Ott 2011)

    max_policy CVaR_alpha(R) = max_b  b - 1/alpha min_policy E[(b - R)^+],

the inner problem is an ordinary one with the terminal utility ``-(b - R)^+``, and the best b is one of the finitely
many returns that are possible: nothing is approximated. The policies may remember the past, which an agent that sees
its place alone cannot: its best is at most the optimum.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sentinel_rl.envs.grid import CLIFF, GOAL, GUARDED, GridWorld

# Levels b that are solved together, for the memory.
_TOGETHER = 64
# Utilities that differ by less differ by rounding.
_EQUAL = 1e-10


class Law(NamedTuple):
    """A finite law of the return: values in increasing order, and their probabilities."""

    values: Float[np.ndarray, " n"]
    probabilities: Float[np.ndarray, " n"]

    def mean(self) -> float:
        """The expected return."""
        return float(self.values @ self.probabilities)

    def cvar(self, alpha: float) -> float:
        """The mean of the lowest share `alpha` of the mass.

        Example:
            >>> Law(np.array([-10.0, 0.0, 2.0]), np.array([0.1, 0.4, 0.5])).cvar(0.2)
            -5.0
        """
        before = np.concatenate([[0.0], np.cumsum(self.probabilities)[:-1]])
        taken = np.clip(alpha - before, 0.0, self.probabilities)
        return float(self.values @ taken / alpha)


class Optimum(NamedTuple):
    """The best that any policy can do.

    Args:
        value: the best mean or CVaR.
        policy: an optimal action by time, status and cell.
        law: the law of the return with this policy.
    """

    value: float
    policy: Int[np.ndarray, "T S C"]
    law: Law


def best_mean(world: GridWorld) -> Optimum:
    """The policy with the largest expected return.

    Example:
        >>> straight = GridWorld(("#####", "#S.G#", "#####"), goal_reward=10.0, max_steps=5)
        >>> best_mean(straight).value
        9.0
    """
    values, policies = _solve(world, lambda returns: returns[None])
    policy = policies[0]
    return Optimum(float(values[0]), policy, law_of(world, policy))


def best_cvar(world: GridWorld, alpha: float) -> Optimum:
    """The policy with the largest CVaR of the whole return.

    Args:
        world: where the start is drawn, that draw is part of the chance.
        alpha: in (0, 1].

    Raises:
        ValueError: for another alpha.
    """
    _require_share(alpha)
    levels = np.unique(np.round(_returns(world).ravel(), 9))
    found: list[tuple[float, float]] = []
    for start in range(0, len(levels), _TOGETHER):
        some = levels[start : start + _TOGETHER]
        values, _ = _solve(world, partial(_shortfall, some))
        found += zip(some + values / alpha, some, strict=True)
    value, level = max(found)
    _, policies = _solve(world, partial(_shortfall, np.array([level])))
    return Optimum(float(value), policies[0], law_of(world, policies[0]))


def stepwise_cvar(world: GridWorld, alpha: float) -> Optimum:
    """The policy that takes at every step the action with the largest CVaR of what is still to come.

    So decides an agent that learns laws and maximises their CVaR in every state, as SENTINEL does (undiscounted, and
    with laws that are known): backwards in time, each action is judged by the law of the return if this policy follows
    it. What it reaches at the start is at most `best_cvar`, whose policy may become bolder or more careful with what
    has happened so far, and may prefer now what it would not choose later.

    Args:
        world: the world.
        alpha: in (0, 1].

    Returns:
        the CVaR of the whole return with this policy, the policy, and the law.

    Raises:
        ValueError: for another alpha.

    Example:
        >>> straight = GridWorld(("#####", "#S.G#", "#####"), goal_reward=10.0, max_steps=5)
        >>> stepwise_cvar(straight, 0.25).value
        9.0
    """
    _require_share(alpha)
    model, returns, steps = _Model(world), _returns(world), world.max_steps
    values, number = np.unique(np.round(returns, 9), return_inverse=True)
    number = number.reshape(returns.shape)
    guarded, statuses = model.is_kind(GUARDED), np.arange(model.statuses)
    # What was paid so far is the same for all actions in a status: the CVaR of the whole return prefers what that of
    # the rest does.
    laws = np.zeros((model.statuses, len(model.kinds), len(values)))
    laws[statuses, :, number[steps, 2]] = 1
    policy = np.zeros((steps, *laws.shape[:2]), np.int8)
    for time in reversed(range(steps)):
        arrived = laws.copy()
        arrived[0, guarded] = np.einsum("s,scv->cv", model.meeting, laws[:, guarded])
        for place, kind in enumerate((GOAL, CLIFF)):
            ends = np.flatnonzero(model.is_kind(kind))
            arrived[:, ends] = 0
            arrived[statuses[:, None], ends, number[time, place][:, None]] = 1
        options = np.einsum("acd,sdv->ascv", model.moves, arrived)
        taken = np.clip(alpha - (np.cumsum(options, axis=-1) - options), 0.0, options)
        tails = taken @ values / alpha
        best = tails >= tails.max(axis=0) - _EQUAL
        policy[time] = np.where(best, options @ values, -np.inf).argmax(axis=0)
        laws = np.take_along_axis(options, policy[time][None, ..., None].astype(int), axis=0)[0]
    law = law_of(world, policy)
    return Optimum(law.cvar(alpha), policy, law)


def _require_share(alpha: float) -> None:
    """Raise `ValueError` unless alpha is in (0, 1]."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")


def law_of(world: GridWorld, policy: Int[np.ndarray, "..."]) -> Law:
    """The exact law of the return of a policy.

    Args:
        world: the world.
        policy: an action for every cell ``[C]``, or by time, status and cell ``[T, S, C]``.
    """
    model = _Model(world)
    steps, size = world.max_steps, len(model.kinds)
    actions = np.broadcast_to(policy, (steps, model.statuses, size))
    mass = np.zeros((model.statuses, size))
    mass[0, world.tables.starts] = 1 / len(world.tables.starts)
    returns, ended = _returns(world), np.zeros((steps + 1, 3, model.statuses))
    cells = np.arange(size)
    for time in range(steps):
        moved = np.stack([row @ model.moves[actions[time, s], cells] for s, row in enumerate(mass)])
        for place, kind in enumerate((GOAL, CLIFF)):
            ended[time, place] = moved[:, model.is_kind(kind)].sum(axis=1)
            moved[:, model.is_kind(kind)] = 0
        mass = model.meet(moved)
    ended[steps, 2] = mass.sum(axis=1)
    values, where = np.unique(np.round(returns.ravel(), 9), return_inverse=True)
    probabilities = np.bincount(where.ravel(), ended.ravel(), len(values))
    return Law(values[probabilities > 0], probabilities[probabilities > 0])


class _Model:
    """A world as matrices: `moves[a, c, c']`, and what entering a guarded cell does to the status."""

    def __init__(self, world: GridWorld):
        tables = world.tables
        self.kinds = np.array(tables.kinds)
        size = len(self.kinds)
        self.moves = np.zeros((4, size, size))
        for cell in range(size):
            for action in range(4):
                shares = tables.probabilities[cell, action]
                np.add.at(self.moves[action, cell], tables.outcomes[cell, action], shares)
        costs, chance = world.guard_costs, world.guard_probability
        self.costs = np.array([0.0, 0.0, *costs])
        self.statuses = len(self.costs)
        self.meeting = np.array([0.0, 1 - chance, *[chance / max(len(costs), 1)] * len(costs)])

    def is_kind(self, kind: str) -> np.ndarray:
        """Which cells are of a kind."""
        return np.asarray(self.kinds == kind)

    def meet(self, mass: np.ndarray) -> np.ndarray:
        """Give those a status who enter a guarded cell for the first time."""
        guarded = self.is_kind(GUARDED)
        out = mass.copy()
        out[0, guarded] = 0
        out[:, guarded] += self.meeting[:, None] * mass[0, guarded]
        return out


def _returns(world: GridWorld) -> Float[np.ndarray, "T1 3 S"]:
    """The return of an episode that ends with step `t` at the goal or the cliff, or (``t = T``) by the time limit."""
    costly = world.max_steps if world.costly_steps is None else world.costly_steps
    walked = world.step_cost * np.minimum(np.arange(world.max_steps + 1), costly)
    ends = np.array([world.goal_reward, -world.cliff_cost, 0.0])
    costs = np.array([0.0, 0.0, *world.guard_costs])
    return np.asarray(ends[None, :, None] - walked[:, None, None] - costs)


def _shortfall(levels: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """``-(b - R)^+`` for each level b."""
    return np.asarray(-np.maximum(levels.reshape(-1, *[1] * returns.ndim) - returns, 0.0))


def _solve(world: GridWorld, utility: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the expected utility of the return backwards in time, for several utilities at once.

    Of actions that are equally good the one with the larger expected return is taken: a shortfall does not tell between
    returns above its level.

    Args:
        world: the world.
        utility: of returns ``[...]``, as ``[B, ...]``.

    Returns:
        the best expected utilities ``[B]`` and optimal actions ``[B, T, S, C]``.
    """
    model, tables, returns = _Model(world), world.tables, _returns(world)
    worth = np.stack([utility(returns), np.broadcast_to(returns, utility(returns).shape)])  # [2, B, T + 1, 3, S]
    steps = world.max_steps
    value = np.repeat(worth[:, :, -1, 2, :, None], len(model.kinds), axis=-1)
    policies = np.zeros((worth.shape[1], steps, *value.shape[2:]), np.int8)
    guarded = model.is_kind(GUARDED)
    for time in reversed(range(steps)):
        arrived = value.copy()
        arrived[:, :, 0, guarded] = np.einsum("s,ubsc->ubc", model.meeting, value[..., guarded])
        for place, kind in enumerate((GOAL, CLIFF)):
            arrived[..., model.is_kind(kind)] = worth[:, :, time, place, :, None]
        options = np.stack([arrived @ move.T for move in model.moves])  # [4, 2, B, S, C]
        first, second = options[:, 0], options[:, 1]
        best = first >= first.max(axis=0) - _EQUAL
        chosen = np.where(best, second, -np.inf).argmax(axis=0)
        policies[:, time] = chosen
        value = np.take_along_axis(options, chosen[None, None], axis=0)[0]
    return value[0][:, 0, tables.starts].mean(axis=1), policies
