"""``sentinel eval`` and ``sentinel frontier``: what the trained policies of a run earn, and what their tails cost."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.api.classes import Learner, Sentinel
from sentinel_rl.cli.runs import jax_env, read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.training.evaluate import Episodes, Summary, evaluate, evaluate_gymnasium, pooled, summarise
from sentinel_rl.training.population import use_all_cores

ALPHA = 0.25
ALPHAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
_TITLES = {
    "episodes": "episodes",
    "mean_return": "mean return",
    "mean_discounted": "discounted",
    "tail_discounted": f"worst {ALPHA:.0%}",
    "terminations_per_1000": "terminations per 1000",
}


def run(path: Path, episodes: int, seed: int, on: str | None = None) -> None:
    """Evaluate every seed's policy, print the table and write ``eval.json`` and ``eval.csv``.

    On another environment than the one it was trained on, the files have its name in theirs.
    """
    use_all_cores()
    run = read_run(path)
    played, agents = [], run.policies(on)
    stem = run.path / ("eval" if on is None else f"eval_{on.replace('/', '_').replace(':', '_')}")
    with progress_bar("evaluating") as report:
        for done, agent in enumerate(agents):
            report(done, len(agents))
            played.append(_play(agent, episodes, seed))
        report(len(agents), len(agents))
    names = [*map(str, run.seeds), "all"]
    rows = dict(zip(names, map(summarise, [*played, pooled(played)]), strict=True))
    files = stem.with_suffix(".json"), stem.with_suffix(".csv")
    _write(*files, rows, {"env": on or run.configuration["env"], "seed": seed, "alpha": ALPHA})
    where = run.configuration["env"] if on is None else f"trained on {run.configuration['env']}, played on {on}"
    results().print(_table(f"{where}, greedy policies", "seed", rows))
    results().print(f"numbers: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def frontier(path: Path, episodes: int, seed: int) -> None:
    """Evaluate the same agents with other risk levels, print the table and draw mean against tail."""
    use_all_cores()
    run = read_run(path)
    agents, rows = [agent for agent in run.policies() if isinstance(agent, Sentinel)], {}
    if not agents:
        raise UsageError(f"{path} holds agents of kind {run.kind!r}: the risk of only 'sentinel' can be chosen anew")
    with progress_bar("evaluating") as report:
        for done, alpha in enumerate(ALPHAS):
            report(done, len(ALPHAS))
            measure = f"cvar:{alpha:g}"
            chosen = [agent.with_risk(aleatory=measure, epistemic=measure) for agent in agents]
            rows[f"{alpha:g}"] = summarise(pooled([_play(agent, episodes, seed) for agent in chosen]), ALPHA)
        report(len(ALPHAS), len(ALPHAS))
    _write(run.path / "frontier.json", run.path / "frontier.csv", rows, {"seed": seed, "alpha": ALPHA})
    results().print(_table(f"{run.configuration['env']}, risk chosen after training", "CVaR alpha", rows))
    files = _draw(rows, run.path / "frontier")
    results().print(f"picture: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def _play(agent: Learner, episodes: int, seed: int) -> Episodes:
    gamma = float(agent.agent.gamma)
    if (env := jax_env(agent)) is not None:
        return evaluate(agent.agent, agent.state, env, episodes, seed, gamma)
    return evaluate_gymnasium(agent.place.env, lambda obs: agent.predict(obs)[0], episodes, seed, gamma)


def _write(json_file: Path, csv_file: Path, rows: dict[str, Summary], about: dict[str, Any]) -> None:
    content = about | {"rows": {name: row._asdict() for name, row in rows.items()}}
    write_file(json_file, json.dumps(content, indent=1) + "\n")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", *Summary._fields])
    writer.writerows([name, *row] for name, row in rows.items())
    write_file(csv_file, text.getvalue())


def _table(title: str, first: str, rows: dict[str, Summary]) -> Table:
    table = Table(title=title)
    for column in (first, *_TITLES.values()):
        table.add_column(column, justify="right")
    for name, row in rows.items():
        if name == "all":
            table.add_section()
        table.add_row(name, str(row.episodes), *(f"{number:.2f}" for number in row[1:]))
    return table


def _draw(rows: dict[str, Summary], stem: Path) -> list[Path]:
    with plotting.figure(6.4, 4.6) as drawing:
        axes = drawing.subplots()
        tails, means = (
            [getattr(row, name) for row in rows.values()] for name in ("tail_discounted", "mean_discounted")
        )
        axes.plot(tails, means, "o-", color=plotting.COMPOSITE)
        for name, tail, mean in zip(rows, tails, means, strict=True):
            axes.annotate(f"α = {name}", (tail, mean), xytext=(6, 4), textcoords="offset points")
        axes.set(xlabel=f"mean of the worst {ALPHA:.0%} of discounted returns", ylabel="mean discounted return")
        return plotting.save(drawing, stem)
