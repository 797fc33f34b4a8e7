"""What the pages of trained experiments share: figures of tables, the 20-run table, how it was made, the files."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentinel_paper.metrics import Metric, overview, runs, summaries
from sentinel_paper.output import Page, Row, Section, csv_text, publish
from sentinel_paper.trained import Contender, Records
from sentinel_rl import plotting
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study.record import Record

PRINTED_RUNS = 20


def draw_dots(axes: Axes, records: Records, contenders: Sequence[Contender], metric: Metric) -> None:
    """Draw the mean and interval of every contender, and the paper's number as a hollow diamond, rows downwards."""
    told = summaries(records, metric)
    for row, contender in enumerate(contenders):
        summary, paper = told[contender.label], contender.printed.get(metric.name)
        axes.plot([summary.low, summary.high], [row, row], color=plotting.BLUE)
        axes.plot([summary.mean], [row], "o", color=plotting.BLUE, label="ours" if row == 0 else None)
        if paper is not None:
            axes.plot([paper[0] - paper[1], paper[0] + paper[1]], [row + 0.25] * 2, color=plotting.RED, linewidth=1.2)
            mark = "paper" if row == 0 else None
            axes.plot([paper[0]], [row + 0.25], "D", color=plotting.RED, markerfacecolor="white", label=mark)
    axes.set(title=metric.title, ylim=(len(contenders) - 0.4, -0.6))
    axes.set_yticks(range(len(contenders)), [contender.label for contender in contenders])
    axes.legend(loc="best", fontsize=9)


def twenty(records: Records, contenders: Sequence[Contender], metrics: Sequence[Metric]) -> list[Section]:
    """The table of the first 20 runs, as many as the paper has, where there are more."""
    if records.settings.runs <= PRINTED_RUNS:
        return []
    words = f"The first {PRINTED_RUNS} of the {records.settings.runs} runs."
    return [Section("As many runs as the paper", words, overview(records.first(PRINTED_RUNS), contenders, metrics))]


def robust(records: Records, contenders: Sequence[Contender], metrics: Sequence[Metric]) -> Section:
    """What a few bad or good runs cannot change, and what the bad ones are like."""
    rows: list[Row] = []
    told = {metric.name: summaries(records, metric) for metric in metrics}
    for contender in contenders:
        row = {"agent": contender.label}
        for metric in metrics:
            one = told[metric.name][contender.label]
            row[f"{metric.title}: IQM"] = f"{one.iqm:.{metric.digits}f}"
            row[f"{metric.title}: worst quarter"] = f"{one.worst_quarter:.{metric.digits}f}"
        rows.append(row)
    words = "Interquartile means over the runs, and means over their worst quarter."
    return Section("Middle and worst runs", words, rows)


def about(records: Records) -> list[Row]:
    """Where every cell was computed, with what, and how many seconds it took for all its runs together.

    On an accelerator agents are trained side by side: the seconds are those of all ``cells at once``.
    """
    return [{"agent": label, **_circumstances(record)} for label, record in records.found.items()]


def seconds(record: Record) -> float:
    """Seconds of training, all runs together, compiling not counted."""
    return float(record.about.get("seconds", {}).get("training", 0.0))


def _circumstances(record: Record) -> dict[str, str]:
    told, seconds = record.about, record.about.get("seconds", {})
    versions = told.get("versions", {})
    return {
        "runs": str(len(record.cell.seeds) - len(record.failures)),
        **{f"s {phase}": f"{seconds.get(phase, 0.0):.1f}" for phase in ("training", "compiling", "evaluating")},
        "cells at once": str(len(told.get("batch", [""]))),
        "device": str(told.get("device", "")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "revision": str(told.get("revision") or "")[:8],
        "finished": str(told.get("finished", "")),
    }


def write(
    page: Page, drawing: Figure, records: Records, numbers: Sequence[Row], metrics: Sequence[Metric], out: Path
) -> list[Path]:
    """Write the files of every experiment, and the numbers of every run."""
    single = write_file(out / f"{page.name}-runs.csv", csv_text(runs(records, metrics)))
    return [*publish(page, drawing, numbers, out), single]
