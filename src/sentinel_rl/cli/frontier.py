"""``sentinel frontier``: risk against gain of one agent with several risk measures, or of several agents."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.api import Learner, Sentinel
from sentinel_rl.cli.outputs import folder_of, parse_numbers, write_rows
from sentinel_rl.cli.runs import Run, read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.errors import UsageError
from sentinel_rl.study.frontier import AXES, Difference, Estimate, Played, difference, dominated, estimate
from sentinel_rl.training.evaluation import evaluate_watched
from sentinel_rl.training.metrics import Episodes
from sentinel_rl.training.population import use_all_cores


@dataclasses.dataclass(frozen=True)
class Point:
    """A policy on the plane of risk and gain."""

    label: str
    risk: Estimate
    gain: Estimate
    is_dominated: bool
    episodes: int
    runs: int


def run(
    paths: Sequence[Path],
    risk: str,
    gain: str,
    alphas: str,
    episodes: int,
    seed: int,
    on: str | None,
    out: Path | None,
    trust: bool = False,
) -> None:
    """Play all policies in the same episodes, print the points and the differences of neighbours, and draw them."""
    levels = parse_numbers("--alphas", alphas, 0.0, 1.0)
    runs = [read_run(path, trust) for path in paths]
    folder = folder_of(runs, out)
    use_all_cores()
    policies = list(_levels(runs[0], levels, on) if len(runs) == 1 else _as_trained(runs, on))
    played = []
    with progress_bar("evaluating") as report:
        for done, (label, agents) in enumerate(policies):
            report(done, len(policies))
            played.append(_play(label, agents, episodes, seed))
        report(len(policies), len(policies))
    points = _points(played, risk, gain)
    pairs = [difference(*pair, risk) for pair in pairwise(played)]
    env = on or runs[0].env
    results().print(_table(f"{env}, {episodes} episodes per seed", risk, gain, points))
    for line in _told(pairs, risk):
        results().print(line, markup=False, soft_wrap=True)
    if folder is None:
        return
    about = {"env": env, "seed": seed, "episodes": episodes, "risk": risk, "gain": gain}
    rows = [_row(point) for point in points]
    neighbours = [{**pair._asdict(), "separated": pair.is_separated} for pair in pairs]
    files = write_rows(folder / "frontier", rows, {**about, "neighbours": neighbours})
    files += _draw(points, risk, gain, env, folder / "frontier")
    results().print(f"files: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def _levels(run: Run, levels: Sequence[float], on: str | None) -> Iterator[tuple[str, list[Learner]]]:
    """The agents of a run, with each level of CVaR."""
    agents = [agent for agent in run.policies(on) if isinstance(agent, Sentinel)]
    if not agents:
        raise UsageError(
            f"{run.path} holds agents of kind {run.kind!r}: only 'sentinel' can be given another risk measure. Give "
            "several runs to compare them as they were trained"
        )
    for alpha in levels:
        level = f"cvar:{alpha:g}"
        yield f"α = {alpha:g}", [agent.with_risk(aleatory=level, epistemic=level) for agent in agents]


def _as_trained(runs: Sequence[Run], on: str | None) -> Iterator[tuple[str, list[Learner]]]:
    if on is None and len({run.env for run in runs}) > 1:
        envs = ", ".join(sorted({run.env for run in runs}))
        raise UsageError(f"the runs were trained on {envs}: name one environment to play all of them in, with --on")
    names = [run.path.stem for run in runs]
    for run, name in zip(runs, names, strict=True):
        yield name if names.count(name) == 1 else str(run.path), run.policies(on or run.env)


def _play(label: str, agents: Sequence[Learner], episodes: int, seed: int) -> Played:
    runs = [evaluate_watched(agent.agent, agent.state, agent.handle, episodes, seed) for agent in agents]
    together = Episodes(*(np.stack(fields) for fields in zip(*(played for played, _ in runs), strict=True)))
    has_speed = all("mean_speed" in told for _, told in runs)
    return Played(label, together, np.stack([told["mean_speed"] for _, told in runs]) if has_speed else None)


def _points(played: Sequence[Played], risk: str, gain: str) -> list[Point]:
    risks, gains = ([estimate(each, axis) for each in played] for axis in (risk, gain))
    places = [(one.value, other.value) for one, other in zip(risks, gains, strict=True)]
    beaten = dominated(places, (AXES[risk].low_is_good, AXES[gain].low_is_good))
    return [
        Point(each.label, one, other, is_beaten, np.size(each.episodes.reward), len(np.asarray(each.episodes.reward)))
        for each, one, other, is_beaten in zip(played, risks, gains, beaten, strict=True)
    ]


def shown(found: Estimate, axis: str, digits: int = 2) -> str:
    """A number with its interval, in the unit of tables."""
    value, low, high = (AXES[axis].factor * number for number in found)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _table(title: str, risk: str, gain: str, points: Sequence[Point]) -> Table:
    over = "runs" if points[0].runs > 1 else "episodes"
    table = Table(title=title, caption=f"95 % intervals over {over}", caption_justify="left")
    for column in ("policy", "episodes", AXES[risk].title, AXES[gain].title, ""):
        table.add_column(column, justify="left" if column in ("policy", "") else "right")
    for point in points:
        numbers = shown(point.risk, risk), shown(point.gain, gain)
        table.add_row(point.label, str(point.episodes), *numbers, "dominated" if point.is_dominated else "")
    return table


def _told(pairs: Sequence[Difference], risk: str) -> Iterator[str]:
    """Whether neighbours differ in their risk, and how many episodes it would take."""
    factor = AXES[risk].factor
    for pair in pairs:
        gap, low, high = (factor * number for number in (pair.difference, pair.low, pair.high))
        size = f"{pair.first} and {pair.second}: {risk} differs by {gap:+.2f} [{low:+.2f}, {high:+.2f}]"
        if pair.is_separated:
            yield f"{size}: separated"
        elif pair.needed is None:
            yield f"{size}: nothing to separate"
        else:
            yield f"{size}: not separated; a difference of this size needs about {pair.needed:,} {pair.unit}"


def _row(point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": point.label, "episodes": point.episodes, "runs": point.runs}
    for name, found in (("risk", point.risk), ("gain", point.gain)):
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return row | {"dominated": point.is_dominated}


def _draw(points: Sequence[Point], risk: str, gain: str, env: str, stem: Path) -> list[Path]:
    """Points with their intervals, hollow where they are dominated; nothing joins them."""
    with plotting.figure(7.2, 5.0) as drawing:
        axes = drawing.subplots()
        for point in points:
            (x, *across), (y, *up) = (
                [AXES[name].factor * number for number in found]
                for name, found in ((gain, point.gain), (risk, point.risk))
            )
            colour = plotting.GREY if point.is_dominated else plotting.COMPOSITE
            wide, tall = [[x - across[0]], [across[1] - x]], [[y - up[0]], [up[1] - y]]
            face = "white" if point.is_dominated else colour
            axes.errorbar(x, y, tall, wide, fmt="o", color=colour, mfc=face, ms=8, lw=1.2, capsize=2)
            axes.annotate(point.label, (x, y), xytext=(7, 6), textcoords="offset points", color=colour, fontsize=11)
        if AXES[risk].low_is_good:
            axes.invert_yaxis()
        title = f"{env}: up and to the right is better"
        axes.set(xlabel=AXES[gain].title, ylabel=AXES[risk].title, title=title)
        axes.plot([], [], "o", color=plotting.GREY, mfc="white", label="dominated")
        axes.plot([], [], "o", color=plotting.COMPOSITE, label="not dominated")
        axes.legend(loc="best")
        return plotting.save(drawing, stem)
