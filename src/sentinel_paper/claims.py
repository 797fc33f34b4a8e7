"""Claims of the paper, and what a run has to say about them."""

import dataclasses
import enum
import math
import types
from collections.abc import Iterable, Mapping


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
    """A sentence of the paper that an experiment can decide.

    Args:
        name: a short slug, unique in its experiment, by which everything cites the claim.
        text: the sentence.
        where: its place in the paper.
    """

    name: str
    text: str
    where: str


def by_name(*claims: Claim) -> Mapping[str, Claim]:
    """The claims of an experiment by their names.

    Raises:
        ValueError: for two claims of the same name.

    Example:
        >>> by_name(Claim("fewer-crashes", "It has fewer crashes.", "section 6"))["fewer-crashes"].where
        'section 6'
    """
    found = {claim.name: claim for claim in claims}
    if len(found) < len(claims):
        raise ValueError(f"two claims have the same name: {', '.join(claim.name for claim in claims)}")
    return types.MappingProxyType(found)


@dataclasses.dataclass(frozen=True)
class Finding:
    """The verdict on a claim in one setting, with the reason in numbers.

    Args:
        claim: of the paper.
        setting: in which it is judged.
        verdict: on it.
        reason: all numbers that matter, in words.
        effect: the one number that decides, with its interval; where there are several, the least favourable one.
    """

    claim: Claim
    setting: str
    verdict: Verdict
    reason: str
    effect: str = ""


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on what is judged in several ways: it holds when all do, and does not when one does not.

    Example:
        >>> print(together([Verdict.HOLDS, Verdict.UNDECIDED]))
        undecided
    """
    found = set(verdicts)
    return next((one for one in (Verdict.FAILS, Verdict.UNDECIDED) if one in found), Verdict.HOLDS)


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


def share_text(successes: int, runs: int) -> str:
    """A share in per cent with its interval.

    Example:
        >>> share_text(10, 100)
        '10.0% [5.5, 17.4]'
    """
    low, high = (100 * max(0.0, min(1.0, end)) for end in share_interval(successes, runs))
    return f"{100 * successes / runs:.1f}% [{low:.1f}, {high:.1f}]"


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
