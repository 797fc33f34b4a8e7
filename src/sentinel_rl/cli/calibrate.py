"""``sentinel calibrate``: are the predicted laws of a trained agent right, and what corrects them?"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.api import Learner
from sentinel_rl.calibration import Calibration, calibrate, draw_calibration, save_calibration
from sentinel_rl.calibration.calibrate import TAILS, LawScore
from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import results
from sentinel_rl.storage.atomic import make_folder, write_file


def run(
    path: Path,
    episodes: int,
    seed: int,
    on: str | None,
    seed_index: int,
    out: Path | None,
    trust: bool = False,
) -> None:
    """Judge the laws of one policy, print the table, and write the numbers, the map and the figure."""
    agent, stem = chosen(path, seed_index, out, "calibration", trust)
    told = calibrate(agent, episodes=episodes, seed=seed, on=on)
    console = results()
    console.print(_table(told))
    console.print(_words(told), markup=False, soft_wrap=True)
    files = [save_calibration(told, stem.with_name(f"{stem.name}.json")), write_rows(stem, told.rows())]
    with plotting.figure(12.0, 4.4) as drawing:
        draw_calibration(drawing, told)
        files += plotting.save(drawing, stem)
    console.print(f"files: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def chosen(path: Path, seed_index: int, out: Path | None, name: str, trust: bool) -> tuple[Learner, Path]:
    """The agent of one seed, and where its files go, without an ending."""
    run = read_run(path, trust)
    agent = run.policy(seed_index)
    stem = f"{run.path.stem}_{name}" if run.is_file else f"{name}_seed_{run.seeds[seed_index]}"
    folder = out if out is not None else Path() if run.is_file else run.path
    return agent, make_folder(folder) / stem


def write_rows(stem: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write_file(stem.with_name(f"{stem.name}.csv"), text.getvalue())


def _table(told: Calibration) -> Table:
    table = Table(title=f"{told.tested_on}, {told.episodes} held-out episodes")
    table.add_column("laws")
    table.add_column("of")
    for level in TAILS:
        table.add_column(f"below {level:.0%}", justify="right")
    for name in ("error", "CRPS"):
        table.add_column(name, justify="right")
    for when, scores in (("predicted", told.before), ("recalibrated", told.after)):
        table.add_section()
        for score in scores:
            table.add_row(*_row(when, score))
    return table


def _row(when: str, score: LawScore) -> list[str]:
    shares = [f"{100 * share.share:.1f} ({100 * share.low:.1f} to {100 * share.high:.1f}) %" for share in score.below]
    return [when, score.name, *shares, f"{score.error:.3f}", f"{score.crps:.4g}"]


def _words(told: Calibration) -> str:
    past = ", played on past the time limit" if told.time_limit == "bootstrap" else ""
    lost = f"; {told.unknown} decisions left out, their return is not known" if told.unknown else ""
    return f"{told.decisions} decisions, returns discounted with {told.gamma:g}{past}{lost}"
