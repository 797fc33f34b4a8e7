"""``sentinel reproduce`` and ``sentinel report``: the paper's experiments, one command each, and all on one page."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sentinel_paper import registry
from sentinel_paper.claims import Finding, Verdict
from sentinel_paper.registry import Experiment, Recipe
from sentinel_rl.console import note, progress_bar, results
from sentinel_rl.storage.atomic import writable_folder

if TYPE_CHECKING:
    from sentinel_paper.trained import GridReport
    from sentinel_rl.study import GridProgress

_COLOURS = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.UNDECIDED: "yellow"}
# Options that mean nothing where nothing is drawn at random.
_RANDOM = ("runs", "seed")


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An experiment, or all of the paper's.")] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List all experiments of the paper, and the presets.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Independent runs; the paper's number if not given.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, max=1_000_000_000, help="Steps of a run; the paper's number if not given.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Which options the agents learn with; --list names all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Make it tiny, to see that all of it works.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2_000_000_000, help="First seed of the runs; a fixed one if not given.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Where agents are trained: local, or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster, with --engine ray.")] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="Only the I-th of N parts of the grid.")] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the trained cells [default: records, beside --out]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files [default: results/NAME, or NAME-PRESET]")
    ] = None,
) -> None:
    """Run an experiment of the paper, or a study beyond it, and judge its claims.

    Writes figures (PNG and SVG), the numbers (CSV) and a page (Markdown and JSON) with the paper's claim, what came out
    and whether it holds. Files of an earlier run in the same folder are replaced. The same seed gives the same numbers.
    Trained cells are kept in a folder of records: one that is there is not computed again, and a stopped command
    continues with those that are missing.

    **Examples**

    - `sentinel reproduce --list`
    - `sentinel reproduce gauss-mix-cvar --runs 4000 --seed 1 --out results/large`
    - `sentinel reproduce table-highway --runs 50`
    - `sentinel reproduce table-ensemble-size --preset literal --runs 100`
    - `sentinel reproduce table-highway --preset tuned --seed 3000`: agents that have learnt to drive
    - `sentinel reproduce caution --shard 1/5`: the first of the five pieces of a study beyond the paper
    - `sentinel reproduce all --quick --out results/quick`: each into a folder of its own, then a report
    """
    if listing:
        results().print(_experiments(), _presets())
        return
    if name is None:
        raise typer.BadParameter("give the NAME of an experiment, or all; --list shows them")
    asked, several = {"runs": runs, "steps": steps, "preset": preset, "seed": seed}, name == "all"
    wanted = [(experiment, _settings(experiment, asked, quick)) for experiment in _chosen(name)]
    base = Path("results") if out is None else out
    nested = out is None or several
    kept = records if records is not None else (base if nested else base.parent) / "records"
    _use_all_cores()
    how = {"store": kept, "engine": engine, "address": address, "shard": shard}
    for experiment, settings in wanted:
        _reproduce_one(experiment, settings, base / _folder(experiment, settings) if nested else base, how)
    if several and shard is None:
        report(base)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where experiments left theirs.")] = Path("results"),
    readme: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put a table and a figure between the markers of a file, too.")
    ] = None,
) -> None:
    """Put all experiments of a folder on one page: report.html, which needs nothing else, and report.md.

    The page begins with every claim of the paper, one row each, and whether it holds under each preset. Only the small
    files of the experiments are read: neither their records nor a GPU are needed.

    **Examples**

    - `sentinel report results`
    - `sentinel report results --readme README.md`: between `<!-- results:begin -->` and `<!-- results:end -->`
    """
    from sentinel_paper.readme import fill
    from sentinel_paper.report import write_report

    files = write_report(folder) + ([] if readme is None else [fill(readme, folder)])
    results().print(*map(str, files), sep="\n", markup=False, soft_wrap=True)


def _use_all_cores() -> None:
    """Before the first experiment uses JAX, so that the others have all cores."""
    from sentinel_rl.training import use_all_cores

    use_all_cores()


def _chosen(name: str) -> tuple[Experiment, ...]:
    """The experiments a name stands for."""
    if name == "all":
        return registry.EXPERIMENTS
    try:
        return (registry.find(name),)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None


def _reproduce_one(experiment: Experiment, settings: Any, out: Path, how: dict[str, Any]) -> None:
    """Run, write and report one experiment; the folder is tried before the work begins."""
    recipe = experiment.load()
    writable_folder(out)
    records = (_grid if experiment.grid else _simple)(experiment, recipe, settings, how)
    if records is None:
        return
    files = recipe.render(records, out)
    console = results()
    console.print(_summary(experiment, recipe.findings(records)))
    console.print(*map(str, files), sep="\n", markup=False, soft_wrap=True)


def _simple(experiment: Experiment, recipe: Recipe, settings: Any, how: dict[str, Any]) -> Any:
    with progress_bar(experiment.name) as report:
        return recipe.run(settings, report)


def _grid(experiment: Experiment, recipe: Recipe, settings: Any, how: dict[str, Any]) -> Any:
    from sentinel_paper.trained import Execution, Unfinished
    from sentinel_rl.study import parse_shard

    shard = None if how["shard"] is None else parse_shard(how["shard"])
    try:
        with _grid_bar(experiment.name) as report:
            return recipe.run(settings, report, Execution(**how | {"shard": shard}))
    except Unfinished as reason:
        note(f"{experiment.name}: {reason}")
        return None


@contextmanager
def _grid_bar(title: str) -> Iterator["GridReport"]:
    """Show the current cell, all cells and the time left: a bar in a terminal, a line per finished cell in a log."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    reported = -1
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=1.0)

        def report(progress: "GridProgress") -> None:
            nonlocal reported
            bar.update(task, completed=progress.finished / progress.cells, description=f"{title}: {progress}")
            if not console.is_terminal and progress.finished != reported:
                reported = progress.finished
                console.print(f"{title}: {progress}", markup=False)

        yield report


def _folder(experiment: Experiment, settings: Any) -> str:
    """The folder of an experiment's files; other presets than the default have one of their own."""
    from sentinel_paper.settings import DEFAULT_PRESET

    preset = getattr(settings, "preset", DEFAULT_PRESET)
    return experiment.name if preset == DEFAULT_PRESET else f"{experiment.name}-{preset}"


def _settings(experiment: Experiment, asked: dict[str, Any], quick: bool) -> Any:
    """The paper's settings with the options that were given; says so where an option has no meaning."""
    settings = experiment.load().SETTINGS
    if quick and hasattr(settings, "made_quick"):
        settings = settings.made_quick()
    given = {option: value for option, value in asked.items() if value is not None}
    for option in [option for option in given if not hasattr(settings, option)]:
        why = "is computed exactly, without random draws" if option in _RANDOM else "is not a grid of trained agents"
        if option == "preset" and experiment.name in {study.name for study in registry.STUDIES}:
            why = "has no presets: its agents learn with the library's default learner"
        note(f"{experiment.name} {why}: --{option} {given.pop(option)} has no effect")
    return dataclasses.replace(settings, **given)


def _presets() -> str:
    from sentinel_paper.settings import DEFAULT_PRESET, PRESETS

    told = [f"  {name}{' (default)' * (name == DEFAULT_PRESET)}: {preset.words}" for name, preset in PRESETS.items()]
    return "\n".join(["Presets of the experiments that train agents:", *told])


def _experiments() -> Table:
    table = Table(title="Experiments of the paper, and studies beyond it: sentinel reproduce NAME", box=box.SIMPLE_HEAD)
    for column in ("name", "in the paper", "shows"):
        table.add_column(column, no_wrap=column == "name")
    for experiment in (*registry.EXPERIMENTS, *registry.STUDIES):
        table.add_row(experiment.name, experiment.where, experiment.title)
    return table


def _summary(experiment: Experiment, findings: list[Finding]) -> Table:
    title = f"{experiment.name}: {experiment.title}"
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2, 1, 0)
    )
    table.add_column(no_wrap=True)
    for finding in findings:
        said = Text.assemble((finding.claim.text, "bold"), f"\n{finding.setting}: {finding.reason}")
        table.add_row(Text(finding.verdict, _COLOURS[finding.verdict]), said)
    return table
