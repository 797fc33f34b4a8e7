"""``sentinel stress``: drivers in all scenarios of the highway, one table and one figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.cli.frontier import shown
from sentinel_rl.cli.outputs import folder_of, parse_numbers, write_rows
from sentinel_rl.cli.runs import Run, read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.highway import scenario_names
from sentinel_rl.envs.highway.scenarios import STRONGEST, Split
from sentinel_rl.study.frontier import AXES, Played, estimate
from sentinel_rl.study.scenarios import AS_TRAINED, Stressed, situations, stress
from sentinel_rl.training.population import use_all_cores

_ENV = "sentinel/highway-v1"
_SHOWN = ("crash", "return", "tail", "speed")
_COLOURS = (plotting.NEUTRAL, plotting.COMPOSITE, plotting.ORANGE, plotting.GREEN, plotting.PURPLE, plotting.SKY)


def run(paths: Sequence[Path], split: str, strengths: str, episodes: int, seed: int, out: Path | None) -> None:
    """Let all drivers drive in the same episodes of all scenarios, print the table and draw the crashes."""
    levels = parse_numbers("--strengths", strengths, 0.0, STRONGEST)
    sides: dict[str, Split | None] = {"all": None, "calibration": "calibration", "test": "test"}
    names = scenario_names(sides[split])
    found = [_drivers(path) for path in paths]
    folder = folder_of([run for _, run, _ in found], out)
    use_all_cores()
    total, stressed = len(found) * len(situations(names, levels)), []
    with progress_bar("driving") as report:
        for label, _, drivers in found:
            for each in stress(drivers, label, names, levels, episodes, seed):
                stressed.append(each)
                report(len(stressed), total)
    for table in _tables(stressed, episodes):
        results().print(table)
    if folder is None:
        return
    rows = [_row(each) for each in stressed]
    files = write_rows(folder / "stress", rows, {"seed": seed, "episodes": episodes, "split": split})
    files += _draw(stressed, names, folder / "stress")
    results().print(f"files: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def _drivers(path: Path) -> tuple[str, Run | None, list[tuple[Agent, Any]]]:
    """What a driver is called, its run where it has one, and its agents with their states."""
    if str(path) in fixed_names():
        handle = resolve_env(_ENV)
        agent = make_agent(str(path), handle)
        return str(path), None, [(agent, agent.init(handle.spec, jax.random.key(0)))]
    run = read_run(path)
    return run.path.stem, run, [(learner.agent, learner.state) for learner in run.policies(_ENV)]


def _tables(stressed: Sequence[Stressed], episodes: int) -> list[Table]:
    """The traffic of training, the calibration scenarios and the test scenarios, each on its own."""
    tables = []
    titles = {"": "traffic as trained", "calibration": "calibration scenarios", "test": "test scenarios"}
    for split, title in titles.items():
        rows = [each for each in stressed if each.split == split]
        if not rows:
            continue
        table = Table(title=f"{title}, {episodes} episodes per seed", caption_justify="left")
        for column in ("scenario", "strength", "driver"):
            table.add_column(column, justify="left")
        for name in _SHOWN:
            table.add_column(AXES[name].title if name != "tail" else "worst 25%", justify="right")
        for each in sorted(rows, key=lambda each: _order(each, rows)):
            numbers = (shown(estimate(each.played, name), name, 1) for name in _SHOWN)
            table.add_row(each.scenario, f"{each.strength:g}", each.played.label, *numbers)
        tables.append(table)
    tables[-1].caption = "95 % intervals over runs where there are several, else over episodes"
    return tables


def _order(each: Stressed, rows: Sequence[Stressed]) -> tuple[int, float]:
    """Scenario by scenario, and the drivers side by side."""
    return list(dict.fromkeys(row.scenario for row in rows)).index(each.scenario), each.strength


def _row(each: Stressed) -> dict[str, Any]:
    row: dict[str, Any] = {"driver": each.played.label, "scenario": each.scenario, "split": each.split}
    row |= {"strength": each.strength, "episodes": np.size(each.played.episodes.reward)}
    for name in _SHOWN:
        found = estimate(each.played, name)
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return row


def _draw(stressed: Sequence[Stressed], names: Sequence[str], stem: Path) -> list[Path]:
    """Crashes over strength, a panel for every scenario; strength 0 is the traffic of training."""
    labels = list(dict.fromkeys(each.played.label for each in stressed))
    rows = -(-len(names) // 3)
    with plotting.figure(10.5, 0.8 + 3.3 * rows) as drawing:
        panels = drawing.subplots(rows, 3, sharex=True, sharey=True, squeeze=False).ravel()
        for name, axes in zip(names, panels, strict=True):
            split = next(each.split for each in stressed if each.scenario == name)
            for i, label in enumerate(labels):
                _line(axes, [each for each in stressed if each.played.label == label], name, i, len(labels))
            axes.set_title(f"{name} ({split})")
        for axes in panels[::3]:
            axes.set_ylabel("episodes with a crash (%)")
        for axes in panels[-3:]:
            axes.set_xlabel("strength")
        panels[0].legend(loc="upper left")
        panels[0].set_ylim(-1.5, None)
        return plotting.save(drawing, stem)


def _line(axes: Any, stressed: Sequence[Stressed], name: str, place: int, drivers: int) -> None:
    """The points of one driver in one scenario, beside those of the others."""
    points: list[tuple[float, Played]] = [
        (each.strength, each.played) for each in stressed if each.scenario in (AS_TRAINED, name)
    ]
    found = [estimate(played, "crash") for _, played in points]
    shift = 0.07 * (place - (drivers - 1) / 2)
    bars = [[100 * (each.value - each.low) for each in found], [100 * (each.high - each.value) for each in found]]
    x, y = [strength + shift for strength, _ in points], [100 * each.value for each in found]
    colour = _COLOURS[place % len(_COLOURS)]
    axes.errorbar(x, y, yerr=bars, fmt="o", ms=6, lw=1.4, capsize=2, color=colour, label=points[0][1].label)
    axes.plot(x, y, ":", lw=1.0, color=colour)
