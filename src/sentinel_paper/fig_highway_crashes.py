"""Figure 3: crashes on the highway over the training; the caption says 1e6 steps, the text 1e5: both."""

import dataclasses
from pathlib import Path

import numpy as np

from sentinel_paper import judging, trained
from sentinel_paper.claims import Claim, Finding, by_name
from sentinel_paper.curves import draw_bands
from sentinel_paper.highway_agents import (
    ADDITIVE,
    AGENTS,
    BRAKE,
    CEILING,
    COMPOSITE,
    REFERENCE_WORDS,
    REFERENCES,
    RIVALS,
    RULE,
    evaluations,
)
from sentinel_paper.metrics import CRASHES, TRAINING_TAIL, TRAINING_VALUE, overview, runs, summaries
from sentinel_paper.output import Row, Section, csv_text
from sentinel_paper.settings import HIGHWAY, PRESETS
from sentinel_paper.trained import Execution, GridReport, Settings
from sentinel_paper.trained_page import publish_grid
from sentinel_rl import plotting
from sentinel_rl.storage.atomic import write_file

NAME = "fig-highway-crashes"
LONGER = 10
LONG_RUNS = 10
LABELS = (COMPOSITE, *RIVALS)
CONTENDERS = (*AGENTS, *REFERENCES)
# Lines beside the learning curves; a random driver crashes too often to be shown.
LINES = {BRAKE: ":", RULE: "-.", CEILING: "--"}
METRICS = (CRASHES, TRAINING_VALUE, TRAINING_TAIL)
SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "least-crashes",
        "SENTINEL-4 with composite risk causes the least number of crashes.",
        "section 6, figure 3 and summary",
    ),
)


@dataclasses.dataclass(frozen=True)
class Records:
    """The records at both horizons."""

    short: trained.Records
    long: trained.Records

    @property
    def settings(self) -> Settings:
        """Those of the short horizon; the long one follows from them."""
        return self.short.settings


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train all agents for the steps of the table, whose cells these are, and fewer runs for ten times as many.

    Quickly, both horizons are the same: another one would be compiled anew.
    """
    short = trained.run(HIGHWAY, CONTENDERS, settings, report, execution, evaluations(settings))
    return Records(short, trained.run(HIGHWAY, CONTENDERS, longer(settings), report, execution))


def longer(settings: Settings) -> Settings:
    """The settings of the long horizon."""
    steps = settings.steps * (1 if settings.quick else LONGER)
    return dataclasses.replace(settings, runs=min(settings.runs, LONG_RUNS), steps=steps)


def findings(records: Records) -> list[Finding]:
    """Judge the claim at both horizons."""
    return [
        judging.best(PAPER["least-crashes"], part, CRASHES, COMPOSITE, RIVALS, _size(part))
        for part in (records.short, records.long)
    ]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    short, long = records.short, records.long
    setup = (
        f"Every agent learns with {PRESETS[records.settings.preset].learning}. Shown are the crashes of the ego, added "
        "up over the training, exploration included. The paper's caption says 1e6 steps, its text and its table 1e5: "
        "both are shown. Epsilon declines over a share of all steps, so that a longer training "
        f"explores longer. Bands are 95 % bootstrap intervals of the mean over runs. {REFERENCE_WORDS}"
    )
    longer = Section(
        f"{long.settings.steps} steps",
        f"{long.settings.runs} runs each.",
        _unprinted(overview(long, CONTENDERS, METRICS)),
    )
    with plotting.figure(13, 5.4) as drawing:
        for axes, part in zip(drawing.subplots(1, 2), (short, long), strict=True):
            draw_bands(axes, part, "terminations_curve", LABELS)
            for label, style in LINES.items():
                driven = part.found[label].arrays
                mean = np.mean(np.asarray(driven["terminations_curve"], np.float64), axis=0)
                axes.plot(driven["steps"], mean, style, color=plotting.BLACK, linewidth=1, label=label)
            axes.set(title=_size(part), ylabel="crashes")
        axes.legend(fontsize=9)
        files = publish_grid(
            *(NAME, short, CONTENDERS, METRICS, drawing, out),
            setup=setup,
            findings=findings(records),
            words=_words(records),
            sections=[longer],
            more=[long],
        )
    return [*files, write_file(out / f"{NAME}-long-runs.csv", csv_text(runs(long, METRICS)))]


def _size(part: trained.Records) -> str:
    return f"{part.settings.steps} steps, {part.settings.runs} runs"


def _unprinted(rows: list[Row]) -> list[Row]:
    """Rows without the paper's numbers, which are of the other horizon."""
    return [{column: cell for column, cell in row.items() if not column.startswith("paper")} for row in rows]


def _words(records: Records) -> str:
    told = []
    for part in (records.short, records.long):
        crashes = summaries(part, CRASHES)
        least = min(LABELS, key=lambda label: crashes[label].mean)
        told.append(
            f"within {part.settings.steps} steps {least} crashes least ({crashes[least].mean:.0f}), composite "
            f"{crashes[COMPOSITE].mean:.0f} times, additive {crashes[ADDITIVE].mean:.0f}"
        )
    words = "; ".join(told)
    return (
        f"{words[0].upper()}{words[1:]}. Most crashes happen while epsilon is large, so that the count depends mostly "
        "on the schedule of exploration."
    )
