"""Whether caution pays: crash rates at matched speed, paired by seed, and other quantities of paired runs.

A crash rate alone says little, since a car that stands does not crash. Every arm acts with the most cautious measures
of its kind that cost it at most .3 m/s against the neutral arm; these are chosen on the *calibration* scenarios, by
speed alone. In every other world its crashes are then compared with the other's. A verdict needs that the speeds match
there as well, or that the better one is not the slower one.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sentinel_paper.caution_cells import Measures
from sentinel_paper.claims import Verdict
from sentinel_paper.judging import ENOUGH, LEVEL
from sentinel_rl.study import Comparison, compare, holm

# Mean speeds match within so many m/s.
MATCH = 0.3


class Pays(enum.StrEnum):
    """The answer to whether caution pays in a world."""

    PAYS = "pays"
    COSTS = "costs"
    UNDECIDED = "undecided"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim that it pays."""
        return {Pays.PAYS: Verdict.HOLDS, Pays.COSTS: Verdict.FAILS}.get(self, Verdict.UNDECIDED)


class Driven(NamedTuple):
    """What frozen policies did in a world, one number per run.

    Args:
        crashes: share of the episodes that ended in a crash.
        speed: mean over all decisions, in m/s.
        reward: mean return.
    """

    crashes: Float[np.ndarray, " runs"]
    speed: Float[np.ndarray, " runs"]
    reward: Float[np.ndarray, " runs"]


def pooled(worlds: Sequence[Driven]) -> Driven:
    """Several worlds as one, all of them counting the same.

    Example:
        >>> one, two = (Driven(*(np.array([x, x + 1]) for _ in range(3))) for x in (0.0, 4.0))
        >>> pooled([one, two]).speed.tolist()
        [2.0, 3.0]
    """
    return Driven(*(np.mean(parts, axis=0) for parts in zip(*worlds, strict=True)))


class Choice(NamedTuple):
    """The measures that an arm acts with where speeds are matched.

    Args:
        measures: chosen.
        gap: its mean speed minus that of the reference, where it was chosen.
    """

    measures: Measures
    gap: float

    @property
    def is_match(self) -> bool:
        """Whether the speeds match there."""
        return abs(self.gap) <= MATCH


def choose(candidates: Mapping[Measures, Float[np.ndarray, " runs"]], reference: Float[np.ndarray, " runs"]) -> Choice:
    """The most cautious measures whose mean speed matches that of the reference; the nearest where none does.

    Args:
        candidates: speeds by measures, of one kind of risk.
        reference: speeds of the others.

    Example:
        >>> speeds = {Measures(a, a): np.full(3, v) for a, v in ((0.5, 29.9), (0.25, 29.8), (0.1, 25.0))}
        >>> choose(speeds, np.full(3, 30.0)).measures
        Measures(epistemic=0.25, aleatory=0.25)
    """
    gaps = {measures: float(np.nanmean(speed - reference)) for measures, speed in candidates.items()}
    matching = [measures for measures, gap in gaps.items() if abs(gap) <= MATCH]
    if matching:
        best = min(matching, key=lambda measures: (measures.aleatory, measures.epistemic))
    else:
        best = min(gaps, key=lambda measures: abs(gaps[measures]))
    return Choice(best, gaps[best])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One arm against another in one world.

    Args:
        world: its name.
        crashes: difference of the shares of episodes with a crash, ours minus theirs, with its interval and tests.
        speed: difference of the mean speeds.
        reward: difference of the mean returns.
        ours: our mean crash share.
        theirs: theirs.
        pays: the answer.
        why: it is undecided; empty where it is not.
    """

    world: str
    crashes: Comparison
    speed: Comparison
    reward: Comparison
    ours: float
    theirs: float
    pays: Pays
    why: str = ""


def outcomes(ours: Mapping[str, Driven], theirs: Mapping[str, Driven]) -> list[Outcome]:
    """Compare two arms in several worlds, paired by seed; p-values are corrected for the number of worlds (Holm)."""
    crashes = {
        world: compare(driven.crashes, {"": theirs[world].crashes}, better="low")[""] for world, driven in ours.items()
    }
    corrected = holm(np.array([one.p_value for one in crashes.values()]))
    found = []
    for (world, driven), p_holm in zip(ours.items(), corrected, strict=True):
        other = theirs[world]
        crash = crashes[world]._replace(p_holm=float(p_holm))
        speed = compare(driven.speed, {"": other.speed})[""]
        reward = compare(driven.reward, {"": other.reward})[""]
        pays, why = _answer(crash, speed)
        means = float(np.nanmean(driven.crashes)), float(np.nanmean(other.crashes))
        found.append(Outcome(world, crash, speed, reward, *means, pays, why))
    return found


def _answer(crash: Comparison, speed: Comparison) -> tuple[Pays, str]:
    """Whether fewer crashes were had at no less than the speed of the others."""
    if crash.n < ENOUGH:
        return Pays.UNDECIDED, f"{crash.n} runs are too few"
    if not (crash.p_holm < LEVEL and (crash.high < 0 or crash.low > 0)):
        return Pays.UNDECIDED, "the crash rates do not separate"
    fewer, gap = crash.high < 0, speed.difference
    if fewer and gap < -MATCH:
        return Pays.UNDECIDED, f"fewer crashes, but {-gap:.2f} m/s slower"
    if not fewer and gap > MATCH:
        return Pays.UNDECIDED, f"more crashes, but {gap:.2f} m/s faster"
    return (Pays.PAYS if fewer else Pays.COSTS), ""


def answer_of(one: Comparison, better: str) -> Pays:
    """Whether a paired difference, ours minus theirs, is significantly good or bad."""
    if one.n < ENOUGH or not one.p_holm < LEVEL:
        return Pays.UNDECIDED
    good, bad = (one.low > 0, one.high < 0) if better == "high" else (one.high < 0, one.low > 0)
    return Pays.PAYS if good else Pays.COSTS if bad else Pays.UNDECIDED


def reaches(low: float, high: float, threshold: float, runs: int) -> Verdict:
    """Whether a mean with its interval lies above a threshold.

    Example:
        >>> print(reaches(0.91, 0.99, 0.9, 30), reaches(0.5, 0.7, 0.9, 30), reaches(0.8, 0.95, 0.9, 30), sep=", ")
        holds, does not hold, undecided
    """
    if runs < ENOUGH:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if low >= threshold else Verdict.FAILS if high < threshold else Verdict.UNDECIDED
