"""The tables of the study of caution: what its page shows, and every number of every run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentinel_paper.caution_cells import (
    AS_TRAINED,
    GAPS,
    HIGHWAY,
    SMALL,
    Arm,
    World,
    levels,
    situations,
)
from sentinel_paper.caution_findings import DUELS, percent, told
from sentinel_paper.caution_looks import SCORES
from sentinel_paper.caution_numbers import Records, optima
from sentinel_paper.caution_verdicts import Driven, Outcome, outcomes
from sentinel_paper.output import Row
from sentinel_rl.envs.highway import scenario_names
from sentinel_rl.study import summarise
from sentinel_rl.study.statistics import Side

# As CeSoR's authors print them for their maze: mean and CVaR .05.
CESOR: Mapping[str, tuple[float, float]] = {
    "printed: neutral policy gradient": (4.2, -63.3),
    "printed: CVaR policy gradient": (-32.0, -32.0),
    "printed: CeSoR": (2.0, -6.7),
}


def results(records: Records, splits: Sequence[str] = ("test", "as trained")) -> list[Row]:
    """The verdict of every comparison in the highway's worlds of these sides of the split, strengths together."""
    there = records.arms(HIGHWAY)
    rows: list[Row] = []
    for ours, theirs, _ in DUELS:
        if ours in there and theirs in there:
            for split in splits:
                found = records.duel(ours, theirs, _WORLDS[split])
                rows += [_row(records, ours, theirs, split, one) for one in found]
    return rows


# Worlds whose p-values are corrected together.
_WORLDS: Mapping[str, Sequence[str]] = {
    "test": scenario_names("test"),
    "as trained": [AS_TRAINED],
    "calibration": scenario_names("calibration"),
}


def _row(records: Records, ours: Arm, theirs: Arm, split: str, one: Outcome) -> Row:
    choices = [records.choices[arm.label] for arm in (ours, theirs)]
    return {
        "comparison": f"{ours.label} against {theirs.label}",
        "world": one.world,
        "split": split,
        "verdict": f"{one.pays}" + (f" ({one.why})" if one.why else ""),
        "crashes (%)": f"{100 * one.ours:.1f} against {100 * one.theirs:.1f}",
        "difference": percent(one.crashes),
        "p, Holm": f"{one.crashes.p_holm:.2g}",
        "speed (m/s)": told(one.speed, 2),
        "return": told(one.reward, 2),
        "acting": " against ".join(str(choice.measures) for choice in choices),
    }


def highway_numbers(records: Records) -> list[Row]:
    """All means on the highway with intervals: a row for each arm, pair of measures, situation and metric."""
    rows: list[Row] = []
    for arm in records.arms(HIGHWAY):
        for measures in levels(records.settings):
            for place in situations(records.settings):
                driven = records.driven(arm, measures, [place])
                for metric, values, worse in _metrics(driven):
                    row: dict[str, Any] = {"agent": arm.label, "acting": str(measures), "scenario": place.scenario}
                    row |= {"strength": place.strength, "split": place.split, "metric": metric}
                    rows.append(row | summarise(values, worse=worse)._asdict())
    return rows


def _metrics(driven: Driven) -> tuple[tuple[str, np.ndarray, Side], ...]:
    return ("crashes", driven.crashes, "high"), ("speed", driven.speed, "low"), ("return", driven.reward, "low")


def single_drives(records: Records) -> list[Row]:
    """Crash rate and speed of every run in every situation, a row for each arm, pair of measures and seed."""
    places = situations(records.settings)
    rows: list[Row] = []
    for arm in records.arms(HIGHWAY):
        for measures in levels(records.settings):
            driven = {place.label: records.driven(arm, measures, [place]) for place in places}
            crashes = np.asarray(records.of(HIGHWAY, arm).arrays["terminations"], np.float64)
            for run, seed in enumerate(records.settings.seeds):
                row: dict[str, Any] = {"agent": arm.label, "acting": str(measures), "seed": seed}
                row["crashes in training"] = float(crashes[run])
                for label, one in driven.items():
                    row[f"crashes, {label}"] = round(float(one.crashes[run]), 4)
                    row[f"speed, {label}"] = round(float(one.speed[run]), 3)
                    row[f"return, {label}"] = round(float(one.reward[run]), 3)
                rows.append(row)
    return rows


def single_looks(records: Records) -> list[Row]:
    """What every run in the small worlds and in the gaps was asked: one row for each number."""
    rows: list[Row] = []
    for world in (*SMALL, *GAPS):
        for arm in records.arms(world):
            if world in SMALL:
                found = records.laws(world, arm)
            else:
                found = {name: records.look(world, arm, name) for name in (*SCORES, *_DONE)}
                found["return_closed"] = records.closed_returns(world, arm)
            rows += [
                {"world": world.name, "agent": arm.label, "seed": seed, "number": name, "value": float(values[run])}
                for name, values in found.items()
                for run, seed in enumerate(records.settings.seeds)
            ]
    return rows


_DONE = ("entered", "inside", "return_open")


def by_strength(records: Records) -> list[Row]:
    """The first comparison for every strength of the test scenarios."""
    ours, theirs, _ = DUELS[0]
    mine, others = records.matched(ours, strengths=True), records.matched(theirs, strengths=True)
    tested = [place.label for place in situations(records.settings) if place.split == "test"]
    found = outcomes({name: mine[name] for name in tested}, {name: others[name] for name in tested})
    return [_row(records, ours, theirs, "test", one) for one in found]


def crossed(records: Records) -> list[Row]:
    """Every arm acting with every pair of measures, over the test scenarios."""
    places = [place for place in situations(records.settings) if place.split == "test"]
    rows: list[Row] = []
    for arm in records.arms(HIGHWAY):
        row: dict[str, Any] = {"trained": arm.label}
        for measures in levels(records.settings):
            driven = records.driven(arm, measures, places)
            crashes, speed = summarise(100 * driven.crashes, worse="high"), float(np.nanmean(driven.speed))
            row[f"acting {measures}"] = f"{crashes.mean:.1f} [{crashes.low:.1f}, {crashes.high:.1f}] at {speed:.1f}"
        rows.append(row)
    return rows


def learning(records: Records) -> list[Row]:
    """Every arm acting as it was trained, in the traffic of training."""
    place = situations(records.settings)[0]
    rows: list[Row] = []
    for arm in records.arms(HIGHWAY):
        training = np.asarray(records.of(HIGHWAY, arm).arrays["terminations"], np.float64)
        row: dict[str, Any] = {"trained": arm.label, "crashes in training": _mean(training, 0, "high")}
        if arm.measures in levels(records.settings):
            driven = records.driven(arm, arm.measures, [place])
            row |= {"crashes (%)": _mean(100 * driven.crashes, 2, "high")}
            row |= {"speed (m/s)": _mean(driven.speed, 2), "return": _mean(driven.reward, 2)}
        else:
            row |= dict.fromkeys(("crashes (%)", "speed (m/s)", "return"), "")
        rows.append(row)
    return rows


def _mean(values: np.ndarray, digits: int, worse: Side = "low") -> str:
    one = summarise(values, worse=worse)
    return f"{one.mean:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"


def small_rows(records: Records, worlds: Sequence[World]) -> list[Row]:
    """Our agents beside the exact optima and the printed numbers."""
    rows: list[Row] = []
    for world in worlds:
        for label, (mean, tail, deep) in optima(world).items():
            rows.append(_exact(world, label, f"{mean:.2f}", f"{tail:.2f}", f"{deep:.2f}"))
        if world == SMALL[0]:
            rows += [_exact(world, label, f"{mean:g}", "", f"{deep:g}") for label, (mean, deep) in CESOR.items()]
        for arm in records.arms(world):
            found = records.laws(world, arm)
            rows.append(_exact(world, arm.label, *(_mean(found[name], 2) for name in ("mean", "CVaR .25", "CVaR .05"))))
    return rows


def _exact(world: World, agent: str, mean: str, tail: str, deep: str) -> Row:
    return {"world": world.name, "agent": agent, "mean": mean, "CVaR .25": tail, "CVaR .05": deep}


def gap_rows(records: Records, worlds: Sequence[World]) -> list[Row]:
    """Scores and deeds in the gaps."""
    rows: list[Row] = []
    for world in worlds:
        for arm in records.arms(world):
            row: dict[str, Any] = {"world": world.name, "agent": arm.label}
            row |= {score: _mean(records.look(world, arm, score), 2) for score in SCORES}
            row["entered (%)"] = _mean(100 * records.look(world, arm, "entered"), 1, "high")
            row["return, closed"] = _mean(records.closed_returns(world, arm), 1)
            row["return, open"] = _mean(records.look(world, arm, "return_open"), 1)
            rows.append(row)
    return rows
