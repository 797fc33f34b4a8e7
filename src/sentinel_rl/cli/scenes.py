"""``sentinel scenes``: in which scenes a trained agent does what a good driver would, over its training."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import typer
from jaxtyping import Int
from rich.table import Table

from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.cli.assess import KINDS
from sentinel_rl.cli.runs import Run, read_run
from sentinel_rl.console import results
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.storage.run_folder import CHECKPOINTS
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.policy import policy_file
from sentinel_rl.viewer import Scene, choices, load_scenes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Columns of checkpoints that a terminal of 80 has room for; the picture has all of them.
_MOST_COLUMNS = 5


class Trial(NamedTuple):
    """What the seeds of a run do in scenes after so many steps of training.

    Args:
        label: of a column.
        steps: of training, None for a policy that needs none.
        actions: per seed and scene, counted from 0.
    """

    label: str
    steps: int | None
    actions: Int[np.ndarray, "seeds scenes"]

    def passed(self, scenes: Sequence[Scene]) -> np.ndarray:
        """Whether each seed passes each scene."""
        rows = [[scene.passes(int(one)) for scene, one in zip(scenes, row, strict=True)] for row in self.actions]
        return np.array(rows, bool)


def run(path: Path, folder: Path | None, plot: Path | None, as_json: bool) -> None:
    """Try an agent, or all checkpoints of a run, in scenes; print a table, and draw it where that is asked for."""
    if plot is not None and plot.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {plot}: give a file that ends in {', '.join(KINDS)}")
    scenes = load_scenes(folder)
    if str(path) in fixed_names() and not path.exists():
        trials = [_fixed(str(path), scenes)]
    else:
        trials = _of_run(read_run(path), scenes)
    if as_json:
        typer.echo(json.dumps(_plain(scenes, trials), indent=1))
    else:
        results().print(_table(path, scenes, trials))
    if plot is not None:
        content = io.BytesIO()
        draw(scenes, trials).savefig(content, format=plot.suffix[1:].lower(), dpi=150)
        results().print(f"picture: {write_file(plot, content.getvalue())}", markup=False, soft_wrap=True)


def _fixed(name: str, scenes: Sequence[Scene]) -> Trial:
    """A policy that needs no training."""
    handle = resolve_env(scenes[0].env)
    agent = make_agent(name, handle)
    return Trial(name, None, choices(agent, agent.init(handle.spec, jax.random.key(0)), scenes, handle.spec)[None])


def _of_run(run: Run, scenes: Sequence[Scene]) -> list[Trial]:
    """Every checkpoint that is kept, then the policies of the end."""
    found = [] if run.is_file else _checkpoints(run, scenes)
    steps = int(run.request["steps"])
    finished = run.is_file or all(policy_file(run.path, seed).exists() for seed in run.seeds)
    if finished and (not found or found[-1].steps != steps):
        agents = run.policies()
        actions = [choices(agent.agent, agent.state, scenes, agent.spec) for agent in agents]
        found.append(Trial("policy" if run.is_file else f"{steps:,}", steps, np.stack(actions)))
    if not found:
        raise UsageError(f"{run.path} has neither a checkpoint nor a policy yet: train it further")
    return found


def _checkpoints(run: Run, scenes: Sequence[Scene]) -> list[Trial]:
    if not resolve_env(run.env).is_jax:
        return []  # of runs that are stepped from Python only the policies of the end are tried
    training = run.training()
    keeper = Keeper(training, run.path / CHECKPOINTS, monitors=run.path)
    spec: EnvSpec = resolve_env(run.env).spec
    found = []
    for step in keeper.steps():
        keeper.resume_from(step)
        pairs = zip(training.seeds, training.agents, training.agent_states(), strict=True)
        actions = [choices(agent, state, scenes, spec) for seed, agent, state in pairs if seed not in run.failed]
        found.append(Trial(f"{step:,}", step, np.stack(actions)))
    return found


def _table(path: Path, scenes: Sequence[Scene], trials: Sequence[Trial]) -> Table:
    """A row per scene: what passes, and what the agent does; of several seeds, how many pass."""
    shown = list(trials)[-_MOST_COLUMNS:]
    table = Table(title=f"{path}: {len(scenes)} scenes", caption=_caption(trials, shown))
    table.add_column("scene", no_wrap=True)
    table.add_column("a good driver", max_width=22)
    for trial in shown:
        table.add_column(trial.label, justify="right")
    passed = [trial.passed(scenes) for trial in shown]
    for i, scene in enumerate(scenes):
        columns = zip(shown, passed, strict=True)
        cells = [_cell(scene, trial.actions[:, i], fine[:, i], len(shown) == 1) for trial, fine in columns]
        table.add_row(scene.name, scene.wanted, *cells)
    table.add_section()
    totals = [f"{fine.mean(0).sum():.3g} of {len(scenes)}" for fine in passed]
    table.add_row("passed", "", *totals)
    return table


def _cell(scene: Scene, actions: np.ndarray, fine: np.ndarray, roomy: bool) -> str:
    if len(actions) > 1:
        return f"{int(fine.sum())}/{len(fine)}"
    told = "yes" if fine[0] else "NO"
    return f"{told}: {scene.actions[int(actions[0])]}" if roomy else told


def _caption(trials: Sequence[Trial], shown: Sequence[Trial]) -> str | None:
    hidden = len(trials) - len(shown)
    return f"{hidden} earlier checkpoints are not shown; --plot draws all" if hidden else None


def _plain(scenes: Sequence[Scene], trials: Sequence[Trial]) -> dict[str, Any]:
    rows = [
        {"label": trial.label, "steps": trial.steps, "actions": trial.actions.tolist(), "passed": fine.tolist()}
        for trial in trials
        for fine in [trial.passed(scenes)]
    ]
    return {"scenes": [{"name": scene.name, "wanted": scene.wanted} for scene in scenes], "trials": rows}


def draw(scenes: Sequence[Scene], trials: Sequence[Trial]) -> "Figure":
    """The share of seeds that pass every scene over training, and how many scenes they pass."""
    from matplotlib.figure import Figure

    shares = np.stack([trial.passed(scenes).mean(0) for trial in trials], axis=1)
    figure = Figure(figsize=(max(5.0, 3.4 + 0.45 * len(trials)), 2.6 + 0.28 * len(scenes)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, max(2.0, len(scenes) / 4)))
    places = np.arange(len(trials))
    above.plot(places, shares.sum(0), color="#0072B2", marker="o", clip_on=False)
    above.set_ylim(0, len(scenes) + 0.5)
    above.set_ylabel("scenes passed")
    above.grid(axis="y", color="#e2dfd8")
    image = below.imshow(shares, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    below.set_yticks(range(len(scenes)), [scene.name for scene in scenes])
    marked = places if len(places) <= 12 else places[:: -(-len(places) // 12)]
    below.set_xticks(marked, [trials[i].label for i in marked], rotation=45 if len(places) > 4 else 0)
    below.set_xlabel("steps of training")
    figure.colorbar(image, ax=below, label="share of seeds that pass", shrink=0.9)
    return figure
