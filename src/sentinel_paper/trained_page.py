"""What the pages of trained experiments share: figures of tables, the 20-run table, how it was computed, the files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentinel_paper.claims import Finding
from sentinel_paper.curves import curve_rows
from sentinel_paper.metrics import Metric, numbers, overview, runs, summaries
from sentinel_paper.output import Page, Row, Section, csv_text, publish
from sentinel_paper.trained import Contender, Records
from sentinel_rl import plotting
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study import Record

PRINTED_RUNS = 20
MEASURED_ONCE = "one measurement, without interval"


def draw_dots(
    axes: Axes, records: Records, contenders: Sequence[Contender], metric: Metric, ceiling: str | None = None
) -> None:
    """Draw the mean and interval of every contender, and the paper's number as a hollow diamond, rows downwards.

    The mean of `ceiling` is a line that all others can be compared with.
    """
    told = summaries(records, metric)
    if ceiling is not None:
        axes.axvline(told[ceiling].mean, color=plotting.BLACK, linewidth=1, linestyle="--", label=ceiling)
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
    return about_cells(records.found)


def about_cells(found: Mapping[str, Record]) -> list[Row]:
    """`about`, of records by what tables call them."""
    return [{"agent": label, **_circumstances(record)} for label, record in found.items()]


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


def publish_grid(
    name: str,
    records: Records,
    contenders: Sequence[Contender],
    metrics: Sequence[Metric],
    drawing: Figure,
    out: Path,
    *,
    setup: str,
    findings: Sequence[Finding],
    words: str,
    sections: Sequence[Section] = (),
    columns: Sequence[Row] = (),
    statistics: Sequence[Metric] | None = None,
    single_runs: Sequence[Metric] | None = None,
    more: Sequence[Records] = (),
) -> list[Path]:
    """Write the page of a grid: the table of its results and all that every such page has are made here.

    Args:
        name: of the experiment.
        records: of all contenders.
        contenders: the rows of its table.
        metrics: the columns.
        drawing: its figure.
        out: folder for the files.
        setup: what was computed.
        findings: on its claims.
        words: what the results mean.
        sections: of its own, before those that every grid has.
        columns: further cells of the table, a row for every contender.
        statistics: metrics whose statistics go into the CSV; those of the table if None.
        single_runs: metrics that are listed for every run; those of the statistics if None.
        more: further records, whose learning curves and circumstances the page has too.
    """
    statistics = metrics if statistics is None else statistics
    single_runs = statistics if single_runs is None else single_runs
    table = overview(records, contenders, metrics)
    page = Page(
        name,
        records.settings,
        setup,
        [{**row, **cells} for row, cells in zip(table, columns, strict=True)] if columns else table,
        findings,
        words,
        [*sections, robust(records, contenders, metrics), *twenty(records, contenders, metrics)],
        [row for part in (records, *more) for row in about(part)],
    )
    curves = [row for part in (records, *more) for row in curve_rows(part)]
    return [
        *publish(page, drawing, numbers(records, contenders, statistics), out),
        write_file(out / f"{name}-runs.csv", csv_text(runs(records, single_runs))),
        write_file(out / f"{name}-curves.csv", csv_text(curves)),
    ]
