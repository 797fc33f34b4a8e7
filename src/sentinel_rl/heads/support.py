"""The support of categorical laws: derived from what is known of the rewards, and checked against what was seen."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Bool, Float

from sentinel_rl._checks import is_number, is_whole, shown
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Replay
from sentinel_rl.returns import Support

# The share of the targets' mass beyond an edge above which the returns are looked at.
_TOLERATED = 0.01
# Steps back from now in which returns are looked for.
_WINDOW = 10_000
# Returns beyond this, or steps of the grid below its inverse, are not computed with in float32.
_FARTHEST = 1e30
_MOST_ATOMS = 100_001


def make_support(
    spec: EnvSpec,
    gamma: float,
    time_limit: str = "terminal",
    atoms: int | None = None,
    v_min: float | None = None,
    v_max: float | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Support:
    """Derive the range of discounted returns from the rewards of a step, the discount and the time limit.

    ``[min(0, r_min S), max(0, r_max S)]`` with ``S = (1 - gamma^H) / (1 - gamma)``, H the time limit, or without
    limit where time limits are bootstrapped through. A range that is given is kept, but must hold the returns.

    Raises:
        UsageError: for a value of another type or out of range, or where the range of returns is not known.
    """
    require_numbers(atoms, v_min, v_max, reward_range)
    needed = _needed(spec, gamma, time_limit, reward_range)
    if needed is None and (v_min is None or v_max is None):
        raise UsageError(
            f"the range of returns of {spec.name} is not known: give v_min and v_max, or the reward_range of a step; "
            "head='quantile' needs none"
        )
    derived = needed or (0.0, 0.0)  # where nothing is known, both ends are given
    low, high = derived[0] if v_min is None else v_min, derived[1] if v_max is None else v_max
    if time_limit == "bootstrap" and needed is not None and (low > needed[0] + 1e-6 or high < needed[1] - 1e-6):
        raise UsageError(
            f"the support [{low:g}, {high:g}] cannot hold the returns of {spec.name} with time_limit='bootstrap': "
            f"they reach [{needed[0]:g}, {needed[1]:g}]"
        )
    try:
        support = Support(float(low), float(high), 51 if atoms is None else int(atoms))
    except ValueError as error:
        raise UsageError(f"{error}: check v_min, v_max, reward_range and atoms") from error
    _require_precision(support)
    return support


def require_numbers(atoms: object, v_min: object, v_max: object, reward_range: object) -> None:
    """Refuse what is no number, or one with which float32 cannot compute."""
    if atoms is not None and not is_whole(atoms, 2, _MOST_ATOMS):
        raise UsageError(
            f"atoms must be a whole number: at least 2 atoms and at most {_MOST_ATOMS}, got {shown(atoms)}"
        )
    told = f"a finite number from {-_FARTHEST:g} to {_FARTHEST:g}"
    for name, value in (("v_min", v_min), ("v_max", v_max)):
        if value is not None and not is_number(value, -_FARTHEST, _FARTHEST):
            raise UsageError(f"{name} must be {told}, got {shown(value)}")
    if reward_range is None:
        return
    pair = reward_range if isinstance(reward_range, tuple | list) else ()
    if len(pair) != 2 or not all(is_number(end, -_FARTHEST, _FARTHEST) for end in pair) or pair[0] > pair[1]:
        raise UsageError(
            f"reward_range must be the smallest and the largest reward of a step, each {told}, for example "
            f"reward_range=(-1.0, 1.0), got {shown(reward_range)}"
        )


def _require_precision(support: Support) -> None:
    """Refuse a grid whose atoms are the same numbers in float32, or so large that their sums are not finite."""
    farthest = max(abs(support.low), abs(support.high))
    if farthest > _FARTHEST or not support.step > max(1 / _FARTHEST, float(np.spacing(np.float32(farthest)))):
        raise UsageError(
            f"the {support.size} atoms from {support.low:g} to {support.high:g} cannot be told apart in float32, or "
            f"are beyond {_FARTHEST:g}: give v_min and v_max that are farther apart, fewer atoms, or other units"
        )


def range_is_known(
    spec: EnvSpec,
    gamma: float,
    time_limit: str = "terminal",
    v_min: float | None = None,
    v_max: float | None = None,
    reward_range: tuple[float, float] | None = None,
) -> bool:
    """Whether `make_support` can make a grid."""
    given = v_min is not None and v_max is not None
    return given or _needed(spec, gamma, time_limit, reward_range) is not None


def _needed(
    spec: EnvSpec, gamma: float, time_limit: str, reward_range: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The range of discounted returns, where it follows from the rewards."""
    rewards = reward_range if reward_range is not None else spec.reward_range
    horizon = spec.max_steps if time_limit == "terminal" else None
    if rewards is None or (gamma == 1 and horizon is None):
        return None
    sums = float(horizon or 0) if gamma == 1 else (1 - (gamma**horizon if horizon else 0.0)) / (1 - gamma)
    return min(0.0, rewards[0] * sums), max(0.0, rewards[1] * sums)


def support_warning(
    support: Support, gamma: float, t: int, metrics: Mapping[str, float], replay: Callable[[], Replay]
) -> str | None:
    """A warning, with the range that is needed, when returns were seen that do not fit into the support.

    Mass at an edge alone is no fault: fresh networks spread theirs over the whole support, and where a time limit is
    not part of the observation, values tend to the return without limit. The fault is a return that was seen and lies
    outside.

    Args:
        support: of the agent.
        gamma: discount.
        t: steps done.
        metrics: ``clip_low`` and ``clip_high``, the shares of the targets' mass that fell below and above it.
        replay: gives the replay, whose rewards tell the returns; asked for only when mass is lost.
    """
    clipped = max(metrics.get("clip_low", 0.0), metrics.get("clip_high", 0.0))
    if not clipped > _TOLERATED:
        return None
    low, high = seen_returns(replay(), gamma)
    slack = 1e-3 * support.step
    if low >= support.low - slack and high <= support.high + slack:
        return None
    return (
        f"{clipped:.1%} of the mass of the targets lies outside the support "
        f"[{support.low:g}, {support.high:g}] after {t} steps, and discounted returns from {low:.4g} to "
        f"{high:.4g} were seen: give v_min={min(low, support.low):.4g} and "
        f"v_max={max(high, support.high):.4g}, or wider, or the reward_range of a step"
    )


def seen_returns(replay: Replay, gamma: float) -> tuple[float, float]:
    """The smallest and the largest discounted return from any of the latest steps whose episode is finished."""
    seen = replay.latest(min(int(replay.newest) + 1, _WINDOW, replay.capacity))
    reward, terminated, truncated = (np.asarray(part) for part in (seen.reward, seen.terminated, seen.truncated))
    returns = discounted_returns(reward.astype(np.float64), terminated | truncated, gamma)
    return (float(returns.min()), float(returns.max())) if returns.size else (0.0, 0.0)


def discounted_returns(
    reward: Float[np.ndarray, " t"], ended: Bool[np.ndarray, " t"], gamma: float
) -> Float[np.ndarray, " s"]:
    """The discounted return from every step of every finished episode, in order.

    Example:
        >>> discounted_returns(np.array([1.0, 2.0, 4.0]), np.array([False, True, False]), 0.5)
        array([2., 2.])
    """
    finished = np.flatnonzero(ended)
    returns = np.zeros(finished[-1] + 1 if finished.size else 0)
    following = 0.0
    for t in reversed(range(returns.size)):
        following = reward[t] + gamma * following * (not ended[t])
        returns[t] = following
    return returns
