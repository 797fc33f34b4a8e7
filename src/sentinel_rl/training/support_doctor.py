"""Returns that do not fit between the edges of the support: noticed early, with the range they need."""

import warnings

import numpy as np
from jaxtyping import Bool, Float

from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.replay import Replay
from sentinel_rl.returns import Support

# The share of the targets' mass beyond an edge above which the returns are looked at.
_TOLERATED = 0.01
# Steps back from now in which returns are looked for.
_WINDOW = 10_000


class SupportDoctor:
    """Watches the mass that targets lose at the edges, and compares with the returns that were seen.

    Mass at an edge alone is no illness: fresh networks spread theirs over the whole support, and where a time limit is
    not part of the observation, values tend to the return without limit. The illness is a return that was seen and lies
    outside.

    Args:
        support: of the agent.
        gamma: discount.
        strict: raise instead of warning.
    """

    def __init__(self, support: Support, gamma: float, strict: bool = False):
        self.support, self.gamma, self.strict = support, gamma, strict
        self.done = False

    def suspects(self, clip_low: float, clip_high: float) -> bool:
        """Whether so much mass is lost that the returns should be looked at."""
        return not self.done and max(clip_low, clip_high) > _TOLERATED

    def examine(self, clip_low: float, clip_high: float, replay: Replay, t: int) -> None:
        """Look at the targets of recent updates.

        Args:
            clip_low: share of their mass that fell below the support.
            clip_high: share of their mass that fell above it.
            replay: of the run, whose rewards tell the returns.
            t: steps done.

        Raises:
            UsageError: when `strict` and the support is too small.
        """
        if not self.suspects(clip_low, clip_high):
            return
        low, high = seen_returns(replay, self.gamma)
        slack = 1e-3 * self.support.step
        if low >= self.support.low - slack and high <= self.support.high + slack:
            return
        self.done = True
        message = (
            f"{max(clip_low, clip_high):.1%} of the mass of the targets lies outside the support "
            f"[{self.support.low:g}, {self.support.high:g}] after {t} steps, and discounted returns from {low:.4g} to "
            f"{high:.4g} were seen: give v_min={min(low, self.support.low):.4g} and "
            f"v_max={max(high, self.support.high):.4g}, or wider, or the reward_range of a step"
        )
        if self.strict:
            raise UsageError(message)
        warnings.warn(message, SentinelWarning, stacklevel=2)


def seen_returns(replay: Replay, gamma: float) -> tuple[float, float]:
    """The smallest and the largest discounted return from any of the latest steps whose episode is finished."""
    newest, first = int(replay.newest), 2 * replay.obs_size + 1
    latest = np.arange(max(0, newest + 1 - min(_WINDOW, replay.capacity)), newest + 1) % replay.capacity
    reward, terminated, truncated = np.asarray(replay.rows[latest, first : first + 3], np.float64).T
    returns = discounted_returns(reward, (terminated + truncated) > 0, gamma)
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
