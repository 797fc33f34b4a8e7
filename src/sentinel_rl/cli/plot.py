"""``sentinel plot``: the learning curves of runs in one picture, with intervals over their seeds."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.console import results
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study.learning_curves import Curves, band, held, read_curves

KINDS = (".png", ".svg", ".html")
_COLOURS = (
    *(plotting.BLUE, plotting.RED, plotting.GREEN, plotting.ORANGE, plotting.PURPLE, plotting.SKY),
    *(plotting.BLACK, plotting.GREY),
)
_TITLES = {"return": "return of an episode", "terminations": "terminations so far"}
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --paper: #fff; --ink: #222; --line: #ddd; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem;
  background: var(--paper); color: var(--ink); }}
h1 {{ font-size: 1.4rem; line-height: 1.25; }}
img {{ display: block; width: 100%; }}
div {{ overflow-x: auto; margin: 1rem 0; }}
table {{ border-collapse: collapse; min-width: 60%; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .25rem .8rem; text-align: right; border-bottom: 1px solid var(--line); }}
td:first-child, th:first-child {{ text-align: left; padding-left: 0; overflow-wrap: anywhere; }}
@media (max-width: 40rem) {{ table {{ width: 100%; font-size: .85rem; }} td, th {{ padding: .25rem 0 .25rem .5rem; }} }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #14161a; --ink: #e4e6ea; --line: #3a3f47; }}
  img {{ filter: invert(.92) hue-rotate(180deg); }}
}}
</style></head>
<body><h1>{title}</h1>
<img alt="{title}: mean over seeds, with 95 % bootstrap intervals" src="data:image/svg+xml;base64,{image}">
<div><table><tr>{head}</tr>
{rows}
</table></div>
<p>Lines are means over the seeds, bands are 95 % bootstrap intervals of the mean. A seed in which no
episode ended between two points keeps its value. The table has the last point.</p>
</body></html>
"""

Row = tuple[str, str, str, str, str]
_HEAD: Row = ("run", "seeds", "steps", "mean", "95 % interval")


def run(paths: Sequence[Path], out: Path, metric: str) -> None:
    """Draw one curve of every run, write the file, and print where the curves end."""
    if out.suffix.lower() not in KINDS:
        raise UsageError(f"--out {out}: give a file that ends in {', '.join(KINDS)}")
    found = [read_curves(path) for path in paths]
    for path, curves in zip(paths, found, strict=True):
        if metric not in curves.values:
            raise UsageError(f"--metric {metric}: {path} has {', '.join(sorted(curves.values))}")
    labels = _labels(paths)
    title = _TITLES.get(metric, metric.replace("_", " "))
    rows = [_row(label, curves, metric) for label, curves in zip(labels, found, strict=True)]
    envs = sorted({str(curves.about.get("env", "")) for curves in found})
    write_file(out, _content(out.suffix.lower(), labels, found, metric, title, envs, rows))
    table = Table(title=f"{title}, {', '.join(envs)}: the last point")
    for column in _HEAD:
        table.add_column(column, justify="left" if column == "run" else "right")
    for row in rows:
        table.add_row(*row)
    results().print(table)
    if not all(curves.finished for curves in found):
        unfinished = ", ".join(label for label, curves in zip(labels, found, strict=True) if not curves.finished)
        results().print(f"not finished: {unfinished}", markup=False, soft_wrap=True)
    results().print(f"picture: {out}", markup=False, soft_wrap=True)


def _labels(paths: Sequence[Path]) -> list[str]:
    """The names of the folders; their whole paths where two are named alike."""
    names = [path.resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _row(label: str, curves: Curves, metric: str) -> Row:
    values = curves.values[metric]
    mean, low, high = band(held(values))
    known = np.flatnonzero(np.isfinite(mean))
    if not known.size:
        return label, str(len(values)), "0", "none", ""
    last = int(known[-1])
    interval = f"{low[last]:.4g} to {high[last]:.4g}" if len(values) > 1 else "one seed"
    return label, str(len(values)), f"{int(curves.steps[last]):,}", f"{mean[last]:.4g}", interval


def _content(
    kind: str,
    labels: Sequence[str],
    found: Sequence[Curves],
    metric: str,
    title: str,
    envs: Sequence[str],
    rows: Sequence[Row],
) -> bytes:
    """The bytes of the picture, or of a page with it."""
    with plotting.figure(8.0, 4.8) as drawing:
        axes = drawing.subplots()
        for place, (label, curves) in enumerate(zip(labels, found, strict=True)):
            colour = _COLOURS[place % len(_COLOURS)]
            mean, low, high = band(held(curves.values[metric]))
            known = np.isfinite(mean)
            steps = curves.steps[known]
            seeds = len(curves.values[metric])
            axes.plot(steps, mean[known], color=colour, label=f"{label} ({seeds} {'seed' if seeds == 1 else 'seeds'})")
            axes.fill_between(steps, low[known], high[known], color=colour, alpha=0.2, linewidth=0)
        axes.set(xlabel="steps", ylabel=title, title="" if kind == ".html" else ", ".join(envs))
        axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
        axes.legend()
        buffer = io.BytesIO()
        if kind == ".png":
            drawing.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
        else:
            # A page has a background of its own.
            drawing.savefig(buffer, format="svg", transparent=kind == ".html", metadata={"Date": None})
    if kind != ".html":
        return buffer.getvalue()
    cells = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return _PAGE.format(
        title=html.escape(f"{title[:1].upper()}{title[1:]}, {', '.join(envs)}"),
        image=base64.b64encode(buffer.getvalue()).decode(),
        head="".join(f"<th>{column}</th>" for column in _HEAD),
        rows="\n".join(cells),
    ).encode()
