"""The page of the study of caution: what an engineer reads first, its sections and its files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sentinel_paper.caution_cells import (
    ALPHA,
    AS_TRAINED,
    FIRST_SEED,
    GAPS,
    HIGHWAY,
    LOG_UPDATES,
    SMALL,
    levels,
    situations,
)
from sentinel_paper.caution_figures import draw_frontiers, draw_gaps, draw_small
from sentinel_paper.caution_findings import CLAIMS, DUELS, KNOWN, NOT_RUN, counted, percent
from sentinel_paper.caution_looks import SCORES
from sentinel_paper.caution_numbers import Records
from sentinel_paper.caution_tables import (
    by_strength,
    crossed,
    gap_rows,
    highway_numbers,
    learning,
    results,
    single_drives,
    single_looks,
    small_rows,
)
from sentinel_paper.caution_verdicts import MATCH
from sentinel_paper.claims import Finding, Verdict
from sentinel_paper.output import Page, Section, csv_text, publish
from sentinel_paper.trained_page import about_cells
from sentinel_rl import plotting
from sentinel_rl.envs.highway import scenario_names
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study import summarise


def publish_study(name: str, records: Records, findings: Sequence[Finding], out: Path) -> list[Path]:
    """Write the page with all its figures and files."""
    sections, files = _sections(name, records, out)
    page = Page(
        name,
        records.settings,
        setup(records),
        results(records),
        findings,
        words(records, findings),
        sections,
        about_cells({f"{world}: {arm}": record for (world, arm), record in records.found.items()}),
        advice(findings),
    )
    with plotting.figure(13, 9) as drawing:
        draw_frontiers(drawing, records, (AS_TRAINED, *scenario_names("test")))
        files = [*publish(page, drawing, highway_numbers(records), out), *files]
    files.append(write_file(out / f"{name}-runs.csv", csv_text(single_drives(records))))
    rows = single_looks(records)
    return [*files, write_file(out / f"{name}-looks.csv", csv_text(rows))] if rows else files


def setup(records: Records) -> str:
    """What was computed, and by which rules."""
    settings = records.settings
    missing = f" Not run yet: {'; '.join(records.missing)}." if records.missing else ""
    return (
        f"Not a claim of the paper: a study of when composite risk (CVaR {ALPHA:g} of CVaR {ALPHA:g}) pays against "
        f"additive (CVaR {ALPHA:g} of each member's law, their mean) and neutral. Every arm is SENTINEL-4 with the "
        f"library's default learner, {settings.runs} runs each with the seeds from {settings.seed} (nothing was chosen "
        f"on seeds from {FIRST_SEED} on), {settings.steps} decisions on the highway, half of them where it has a gap, "
        f"{settings.small_steps} steps in the small worlds and {min(LOG_UPDATES, settings.small_steps)} updates from "
        "the log of the maze.\n\n"
        f"On the highway every trained agent acts with each of {len(levels(settings))} pairs of measures, without "
        f"training again, in {len(situations(settings))} kinds of traffic, {settings.episodes} episodes a run. Speeds "
        "are matched: every arm acts with the most cautious measures of its kind whose mean speed is within "
        f"{MATCH:g} m/s of the neutral arm's on the calibration scenarios. The test scenarios choose nothing. "
        "Differences are paired by seed. Caution pays in a world if crashes are significantly fewer (95 % bootstrap "
        "interval, and Wilcoxon's test after Holm over the worlds of a comparison) without being slower there by more "
        f"than {MATCH:g} m/s; it costs if they are more without being faster by as much. All else is undecided."
        + missing
    )


def words(records: Records, findings: Sequence[Finding]) -> str:
    """The result for an engineer: every sentence follows from the numbers."""
    there = records.arms(HIGHWAY)
    parts = []
    for ours, theirs, _ in DUELS:
        if ours not in there or theirs not in there:
            continue
        unseen = counted(records.duel(ours, theirs, scenario_names("test")))
        seen = records.duel(ours, theirs, [AS_TRAINED])[0]
        answers = "; ".join(f"{answer} in {_listed(worlds)}" for answer, worlds in unseen.items() if worlds)
        parts.append(
            f"{_capital(ours.label)} against {theirs.label}, at matched speed: as trained {seen.pays} "
            f"({percent(seen.crashes)} points of crashes); in traffic never seen {answers}."
        )
    chosen = [f"{label} acts {one.measures} ({one.gap:+.2f} m/s)" for label, one in records.choices.items()]
    parts.append(
        f"Matched measures, with the speed against the neutral arm on the calibration scenarios: {'; '.join(chosen)}."
    )
    others = ("pays-in-training", "gap-is-known", "gap-is-avoided", "tail-is-better", "tightening-helps")
    parts += [_answered(name, findings) for name in others]
    return "\n\n".join([*parts, *best_scores(records)])


def advice(findings: Sequence[Finding]) -> str:
    """What to do, as far as the verdicts say so."""
    judged = [one for one in findings if one.setting != NOT_RUN]
    by_claim = {name: [one.verdict for one in judged if one.claim.name == name] for name in CLAIMS}
    driving = [
        verdict
        for name in ("pays-under-shift", "additive-pays-under-shift", "carrier-pays-under-shift")
        for verdict in by_claim[name]
    ]
    good, bad = driving.count(Verdict.HOLDS), driving.count(Verdict.FAILS)
    if good and not bad:
        said = "At equal speed, caution pays in some traffic that was never seen and costs nowhere"
    elif good:
        said = "At equal speed, caution pays in some traffic that was never seen and costs in other"
    elif bad:
        said = "At equal speed, caution pays in no traffic that was never seen, and costs in some"
    else:
        said = (
            "At equal speed, caution neither pays nor costs in traffic that was never seen, as far as these runs tell"
        )
    training = by_claim["pays-in-training"]
    while_learning = (
        "it does save crashes while learning"
        if Verdict.HOLDS in training and Verdict.FAILS not in training
        else "that it saves crashes while learning is not shown here"
    )
    known = by_claim["gap-is-known"]
    tells = (
        "the epistemic penalty tells a state that training never showed in every world that was tried"
        if known and all(one == Verdict.HOLDS for one in known)
        else "do not take the epistemic penalty alone for a sign of a state that training never showed"
    )
    return (
        f"{said} ({good} of {len(driving)} comparisons pay, {bad} cost); {while_learning}; {tells}. Choose alpha by "
        "the frontier of your own calibration scenarios, not by what is called cautious."
    )


def best_scores(records: Records) -> list[str]:
    """Which score tells each gap best, and by which arm, in one sentence."""
    told_worlds = []
    for world in GAPS:
        means = {
            (score, arm.label): summarise(records.look(world, arm, score)).mean
            for arm in records.arms(world)
            for score in SCORES
            if np.isfinite(records.look(world, arm, score)).any()
        }
        if means:
            (score, arm), area = max(means.items(), key=lambda pair: pair[1])
            told_worlds.append(f"{world.name}: `{score}` of {arm} ({area:.2f})")
    return [f"What tells a gap best, by mean AUROC: {'; '.join(told_worlds)}."] if told_worlds else []


_DECIDED = (Verdict.HOLDS, Verdict.FAILS)


def _answered(name: str, findings: Sequence[Finding]) -> str:
    """A question with its answers, and the settings of those that are decided."""
    own = [one for one in findings if one.claim.name == name]
    answers = [
        f"{verdict} in {sum(one.verdict == verdict for one in own)} of {len(own)}"
        + (f" ({'; '.join(one.setting for one in own if one.verdict == verdict)})" if verdict in _DECIDED else "")
        for verdict in Verdict
        if any(one.verdict == verdict for one in own)
    ]
    return f'"{CLAIMS[name].text}" {_capital("; ".join(answers))}.'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _sections(name: str, records: Records, out: Path) -> tuple[list[Section], list[Path]]:
    """The further parts of the page, and the files of their figures."""
    sections, files = [], []
    with plotting.figure(13, 4.8) as drawing:
        draw_frontiers(drawing, records, scenario_names("calibration"))
        files += plotting.save(drawing, out / f"{name}-calibration")
    sections.append(
        Section(
            "Calibration scenarios",
            "They were looked at before, and matched speeds were chosen on them.",
            results(records, ["calibration"]),
            f"{name}-calibration",
        )
    )
    sections.append(Section("By strength", "Test scenarios, composite against neutral.", by_strength(records)))
    sections.append(
        Section(
            "Trained with one measure, acting with another",
            "Crashes in percent and mean speed in m/s over all strengths of the test scenarios.",
            crossed(records),
        )
    )
    sections.append(Section("Crashes while learning, and as trained", "", learning(records)))
    small = [world for world in SMALL if records.arms(world)]
    if small:
        with plotting.figure(13, 5.2) as drawing:
            draw_small(drawing, records, small)
            files += plotting.save(drawing, out / f"{name}-small")
        sections.append(
            Section(
                "Small worlds with known answers",
                "Mean and lower tails of the exact law of the return of the greedy policy of every run, means over the "
                "runs with 95 % intervals, beside the best that any policy can do and what was printed for CeSoR's "
                "maze, which is not the same world: it walks on a continuous plane. *CVaR .25 at every step, exact* is "
                "what the cautious agents try to learn: the policy that prefers in every state the larger CVaR of what "
                "is still to come, with all laws known, the time known too, and without their discount."
                + "".join(records.unlearnt(world) for world in small),
                small_rows(records, small),
                f"{name}-small",
            )
        )
    gaps = [world for world in GAPS if records.arms(world)]
    if gaps:
        with plotting.figure(13, 1.6 + 0.62 * sum(len(records.arms(world)) for world in gaps)) as drawing:
            draw_gaps(drawing, records, gaps)
            files += plotting.save(drawing, out / f"{name}-gaps")
        sections.append(
            Section(
                "Coverage gaps",
                f"AUROC of every score for states in a region that training never showed (.5 tells nothing, {KNOWN:g} "
                "is what was asked for), and what the frozen policies do: percent of the episodes from outside that "
                "enter it, and returns in the closed and the open world. Where the world is closed while the agent "
                "acts, an action that would enter was tried and was harmless; in the logged maze it was never seen.",
                gap_rows(records, gaps),
                f"{name}-gaps",
            )
        )
    return sections, files
