"""Claims of the paper, and what a run has to say about them."""

import dataclasses
import enum
import math


class Verdict(enum.StrEnum):
    """The answer to a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"

    @classmethod
    def of(cls, holds: bool) -> "Verdict":
        """The verdict on a claim that can be computed without chance."""
        return cls.HOLDS if holds else cls.FAILS


@dataclasses.dataclass(frozen=True)
class Claim:
    """A sentence of the paper and its place."""

    text: str
    where: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """The verdict on a claim in one setting, with the reason in numbers."""

    claim: Claim
    setting: str
    verdict: Verdict
    reason: str


def share_interval(successes: int, runs: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval for a share.

        (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)

    Example:
        >>> low, high = share_interval(10, 100)
        >>> print(round(low, 3), round(high, 3))
        0.055 0.174
    """
    share = successes / runs
    centre = share + z**2 / (2 * runs)
    spread = z * math.sqrt(share * (1 - share) / runs + z**2 / (4 * runs**2))
    return (centre - spread) / (1 + z**2 / runs), (centre + spread) / (1 + z**2 / runs)


def mostly(successes: list[int], runs: int) -> Verdict:
    """Whether something happens in most runs, for every count of successes in a list.

    It holds when every 95 % interval lies above one half, does not hold when every one lies below.

    Example:
        >>> print(mostly([90, 99], runs=100), mostly([10, 90], runs=100), sep=", ")
        holds, undecided
    """
    intervals = [share_interval(count, runs) for count in successes]
    if all(low > 0.5 for low, _ in intervals):
        return Verdict.HOLDS
    return Verdict.FAILS if all(high < 0.5 for _, high in intervals) else Verdict.UNDECIDED
