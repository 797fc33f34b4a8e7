"""The questions of the study of caution, and their answers: what pays, what costs, and what does not separate."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from sentinel_paper.caution_cells import (
    ADDITIVE,
    AS_TRAINED,
    COMPOSITE,
    GAPS,
    HIGHWAY,
    NEUTRAL,
    SMALL,
    Arm,
    World,
    with_prior,
)
from sentinel_paper.caution_numbers import Numbers, Records
from sentinel_paper.caution_verdicts import Outcome, Pays, answer_of, reaches
from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_rl.envs.highway import scenario_names
from sentinel_rl.study import Comparison, compare, summarise
from sentinel_rl.study.statistics import Side

WHERE = "a question of this study"
KNOWN = 0.9
# The setting of a question that nothing was computed for.
NOT_RUN = "not run"
CLAIMS = by_name(
    Claim("pays-in-training", "Cautious agents crash less while they learn to drive.", WHERE),
    Claim("pays-as-trained", "At equal speed, composite risk crashes less in the traffic of training.", WHERE),
    Claim("pays-under-shift", "At equal speed, composite risk crashes less in traffic never seen.", WHERE),
    Claim("additive-pays-under-shift", "At equal speed, additive risk crashes less in traffic never seen.", WHERE),
    Claim("carrier-pays-under-shift", "At equal speed, composite risk with a random prior crashes less there.", WHERE),
    Claim("gap-is-known", "The epistemic penalty tells states that training never showed (AUROC .9).", WHERE),
    Claim("gap-is-avoided", "Composite risk enters a region that training never showed less than additive.", WHERE),
    Claim("tail-is-better", "Composite risk has a better lower tail where the best is known exactly.", WHERE),
    Claim("tightening-helps", "Beginning neutral and tightening alpha gives a better lower tail.", WHERE),
)
_BARE = {one.kind: Arm(one) for one in (NEUTRAL, ADDITIVE, COMPOSITE)}
# Ours, theirs, and the claim on the test scenarios.
DUELS = (
    (_BARE["composite"], _BARE["neutral"], "pays-under-shift"),
    (_BARE["composite"], _BARE["additive"], "pays-under-shift"),
    (_BARE["additive"], _BARE["neutral"], "additive-pays-under-shift"),
    (with_prior(COMPOSITE), _BARE["neutral"], "carrier-pays-under-shift"),
    (with_prior(COMPOSITE), with_prior(NEUTRAL), "carrier-pays-under-shift"),
)


def judged(records: Records) -> list[Finding]:
    """All findings; a question whose cells are not there is undecided."""
    found = [*_training(records), *_driving(records), *_gaps(records), *_small(records)]
    answered = {finding.claim.name for finding in found}
    why = f"Not run yet: {'; '.join(records.missing) or 'its agents'}."
    return [
        *found,
        *(
            Finding(claim, NOT_RUN, Verdict.UNDECIDED, why, NOT_RUN)
            for name, claim in CLAIMS.items()
            if name not in answered
        ),
    ]


def _training(records: Records) -> list[Finding]:
    """Crashes while learning, exploration included."""
    there, theirs = records.arms(HIGHWAY), _BARE["neutral"]
    crashes = {arm: np.asarray(records.of(HIGHWAY, arm).arrays["terminations"], np.float64) for arm in there}
    return [
        _paired("pays-in-training", "learning", "crashes", (ours, crashes[ours]), (theirs, crashes[theirs]), "low", 0)
        for ours in (_BARE["composite"], _BARE["additive"], with_prior(COMPOSITE))
        if ours in there and theirs in there
    ]


def _driving(records: Records) -> list[Finding]:
    """Crash rates at matched speed."""
    there, found = records.arms(HIGHWAY), []
    for ours, theirs, claim in DUELS:
        if ours not in there or theirs not in there:
            continue
        if ours.kind == "composite" and not ours.carrier:
            found += [
                _finding("pays-as-trained", records, ours, theirs, one)
                for one in records.duel(ours, theirs, [AS_TRAINED])
            ]
        found += [
            _finding(claim, records, ours, theirs, one) for one in records.duel(ours, theirs, scenario_names("test"))
        ]
    return found


def _finding(claim: str, records: Records, ours: Arm, theirs: Arm, one: Outcome) -> Finding:
    choices = [records.choices[arm.label] for arm in (ours, theirs)]
    levels = " and ".join(
        f"{arm.label} acting {choice.measures}" for arm, choice in zip((ours, theirs), choices, strict=True)
    )
    unmatched = [
        f" On the calibration scenarios no measures of {arm.label} match the neutral speed; the nearest differ by "
        f"{choice.gap:+.2f} m/s."
        for arm, choice in zip((ours, theirs), choices, strict=True)
        if not choice.is_match
    ]
    return Finding(
        CLAIMS[claim],
        f"{one.world}: {ours.label} against {theirs.label}",
        one.pays.verdict,
        f"{one.pays.capitalize()}{f' ({one.why})' if one.why else ''}. {levels} crash in {100 * one.ours:.1f} and "
        f"{100 * one.theirs:.1f} % of the episodes, a difference of {percent(one.crashes)} (p = "
        f"{one.crashes.p_holm:.2g}, Holm) over {one.crashes.n} runs; mean speeds differ by {told(one.speed, 2)} m/s "
        f"and returns by {told(one.reward, 2)}." + "".join(unmatched),
        f"crashes {percent(one.crashes)}, speed {told(one.speed, 2)} m/s",
    )


def _gaps(records: Records) -> list[Finding]:
    """Whether the gap is told, and whether it is avoided."""
    found = []
    for world in GAPS:
        there = records.arms(world)
        for arm in there:
            if arm.kind == "composite":
                one = summarise(records.look(world, arm, "epistemic"))
                told_one = f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"
                found.append(
                    Finding(
                        CLAIMS["gap-is-known"],
                        f"{world.name}, {arm.label}",
                        reaches(one.low, one.high, KNOWN, one.n),
                        f"The AUROC of the epistemic penalty for states in the gap is {told_one} over {one.n} runs.",
                        f"AUROC {told_one}",
                    )
                )
        found += [
            _paired(
                "gap-is-avoided",
                world.name,
                "% of episodes that enter the gap",
                (ours, 100 * records.look(world, ours, "entered")),
                (theirs, 100 * records.look(world, theirs, "entered")),
                "low",
                1,
                _returns(records, world, ours, theirs),
            )
            for ours, theirs in gap_pairs(there)
        ]
    return found


def gap_pairs(there: list[Arm]) -> list[tuple[Arm, Arm]]:
    """Composite arms with the additive ones of the same carrier, or else the additive one without any."""
    pairs = []
    for ours in there:
        if ours.kind == "composite":
            rivals = [arm for arm in there if arm.kind == "additive"]
            same = [arm for arm in rivals if arm.carrier == ours.carrier]
            pairs += [(ours, theirs) for theirs in (same or rivals)[:1]]
    return pairs


def _returns(records: Records, world: World, ours: Arm, theirs: Arm) -> str:
    one = compare(records.closed_returns(world, ours), {"": records.closed_returns(world, theirs)})[""]
    return f" Returns in the closed world differ by {told(one, 1)}."


def _small(records: Records) -> list[Finding]:
    """The lower tail of the exact law, and what a schedule does to it."""
    found = []
    for world in SMALL:
        there = records.arms(world)
        laws = {arm: records.laws(world, arm)["CVaR .25"] for arm in there}
        plain = [arm for arm in there if not arm.carrier]
        pairs = [("tail-is-better", ours, theirs) for ours in plain for theirs in plain if ours.kind == "composite"]
        pairs += [
            ("tightening-helps", ours, theirs)
            for ours in there
            for theirs in plain
            if ours.carrier and ours.measures == theirs.measures
        ]
        for claim, ours, theirs in pairs:
            if ours != theirs:
                sides = (ours, laws[ours]), (theirs, laws[theirs])
                one = _paired(claim, world.name, "exact CVaR .25", *sides, "high", 2)
                found.append(dataclasses.replace(one, reason=one.reason + records.unlearnt(world)))
    return found


def _paired(
    claim: str,
    where: str,
    quantity: str,
    first: tuple[Arm, Numbers],
    second: tuple[Arm, Numbers],
    better: Side,
    digits: int,
    more: str = "",
) -> Finding:
    """The finding on whether the first arm is better than the second one, paired by seed."""
    (ours, mine), (theirs, others) = first, second
    one = compare(mine, {"": others}, better=better)[""]
    pays = answer_of(one, better)
    means = [f"{np.nanmean(part):.{digits}f}" for part in (mine, others)]
    return Finding(
        CLAIMS[claim],
        f"{where}: {ours.label} against {theirs.label}",
        pays.verdict,
        f"{pays.capitalize()}. {ours.label} has {means[0]} {quantity}, {theirs.label} {means[1]}: a difference of "
        f"{told(one, digits)}, p = {one.p_holm:.2g}, paired by seed over {one.n} runs; {better} is better." + more,
        f"{told(one, digits)} {quantity}",
    )


def told(one: Comparison, digits: int) -> str:
    """A difference with its interval.

    Example:
        >>> told(Comparison(9, -1.0, -2.0, 0.5, 0.5, 1.0, 1.0), 1)
        '-1.0 [-2.0, +0.5]'
    """
    return f"{one.difference:+.{digits}f} [{one.low:+.{digits}f}, {one.high:+.{digits}f}]"


def percent(one: Comparison) -> str:
    """A difference of shares in points of percent with its interval."""
    return told(one._replace(difference=100 * one.difference, low=100 * one.low, high=100 * one.high), 1)


def counted(found: Iterable[Outcome]) -> dict[Pays, list[str]]:
    """The worlds by answer."""
    listed: dict[Pays, list[str]] = {answer: [] for answer in Pays}
    for one in found:
        listed[one.pays].append(one.world)
    return listed
