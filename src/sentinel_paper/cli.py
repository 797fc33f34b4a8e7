"""``sentinel reproduce``: the paper's experiments, one command each."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from sentinel_paper import registry
from sentinel_paper.claims import Finding, Verdict
from sentinel_paper.registry import EXPERIMENTS, Experiment
from sentinel_rl.cli.console import note, progress_bar, results
from sentinel_rl.cli.files import writable_folder

_COLOURS = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.UNDECIDED: "yellow"}


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An experiment, or all.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List all experiments of the paper and exit.")] = False,
    runs: Annotated[int | None, typer.Option(min=1, help="Independent runs; the paper's number if not given.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers; 0 if not given.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files [default: results/NAME]")
    ] = None,
) -> None:
    """Run an experiment of the paper and judge its claims.

    Writes a figure (PNG and SVG), the numbers (CSV) and a page (Markdown) with the paper's claim, what came out and
    whether it holds. Files of an earlier run in the same folder are replaced. The same seed gives the same numbers.

    **Examples**

    - `sentinel reproduce --list`
    - `sentinel reproduce gauss-mix-cvar`
    - `sentinel reproduce gauss-mix-cvar --runs 4000 --seed 1 --out results/large`
    - `sentinel reproduce all`: each into a folder of its own
    """
    if listing:
        results().print(_list())
        return
    if name is None:
        raise typer.BadParameter("give the NAME of an experiment, or all; --list shows them")
    base = Path("results") if out is None else out
    for experiment in _chosen(name):
        nested = out is None or name == "all"
        _reproduce_one(experiment, {"runs": runs, "seed": seed}, base / experiment.name if nested else base)


def _chosen(name: str) -> tuple[Experiment, ...]:
    """The experiments a name stands for."""
    if name == "all":
        return registry.available()
    try:
        return (registry.find(name),)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None


def _reproduce_one(experiment: Experiment, asked: dict[str, int | None], out: Path) -> None:
    """Run, write and report one experiment; the folder is tried before the work begins."""
    recipe = experiment.load()
    settings = _override(experiment, recipe.SETTINGS, asked)
    writable_folder(out)
    with progress_bar(experiment.name) as report:
        records = recipe.run(settings, report)
        files = recipe.render(records, out)
    console = results()
    console.print(_summary(experiment, recipe.findings(records)))
    console.print(*map(str, files), sep="\n", markup=False, soft_wrap=True)


def _override(experiment: Experiment, settings: Any, asked: dict[str, int | None]) -> Any:
    """The paper's settings with the options that were given; says so where an option has no meaning."""
    given = {option: value for option, value in asked.items() if value is not None}
    for option in [option for option in given if not hasattr(settings, option)]:
        note(f"{experiment.name} is computed exactly, without chance: --{option} {given.pop(option)} has no effect")
    return dataclasses.replace(settings, **given)


def _list() -> Table:
    table = Table(title="Experiments of the paper: sentinel reproduce NAME", box=box.SIMPLE_HEAD)
    for column in ("name", "status", "in the paper", "shows"):
        table.add_column(column, no_wrap=column in ("name", "status"))
    for experiment in EXPERIMENTS:
        status = "[green]available[/]" if experiment.available else "[dim]still to come[/]"
        table.add_row(experiment.name, status, experiment.where, experiment.title)
    return table


def _summary(experiment: Experiment, findings: list[Finding]) -> Table:
    title = f"{experiment.name}: {experiment.title}"
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2, 1, 0)
    )
    table.add_column(no_wrap=True)
    for finding in findings:
        said = f"[bold]{escape(finding.claim.text)}[/]\n{escape(finding.setting)}: {escape(finding.reason)}"
        table.add_row(f"[{_COLOURS[finding.verdict]}]{finding.verdict}[/]", said)
    return table
