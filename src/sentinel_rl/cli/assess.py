"""``sentinel assess``: why a trained agent prefers an action."""

import io
import textwrap
from pathlib import Path

import jax
import numpy as np
import typer

from sentinel_rl.api import Learner
from sentinel_rl.calibration.files import load_recalibration
from sentinel_rl.cli.options import parse_observation
from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import results
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import Decision
from sentinel_rl.storage.atomic import write_file

COLUMNS = 80
KINDS = (".png", ".svg", ".pdf")


def run(
    path: Path,
    obs: str | None,
    seed_index: int,
    plot: Path | None,
    as_json: bool,
    trust: bool = False,
    recalibrate: Path | None = None,
) -> None:
    """Print the explanation of one decision, as a table or as JSON, and draw it where that is asked for."""
    if plot is not None and plot.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {plot}: give a file that ends in {', '.join(KINDS)}")
    run = read_run(path, trust)
    agent = run.policy(seed_index)
    if recalibrate is not None:
        agent = agent.recalibrated(load_recalibration(recalibrate))
    seen = first_observation(agent) if obs is None else parse_observation(obs, agent.spec.obs_size)
    why = agent.assess(seen)
    if as_json:
        typer.echo(why.to_json())
    else:
        show(why, seen)
    if plot is not None:
        draw(why, plot)


def show(why: Decision, obs: np.ndarray) -> None:
    """Print the table of a decision."""
    console = results()
    numbers = ", ".join(f"{number:.4g}" for number in np.ravel(obs))
    console.print(textwrap.fill(f"at the observation ({numbers})", COLUMNS), markup=False, soft_wrap=True)
    console.print(str(why), markup=False, soft_wrap=True)


def draw(why: Decision, path: Path) -> Path:
    """Save the picture of a decision, whole or not at all."""
    content = io.BytesIO()
    why.plot().savefig(content, format=path.suffix[1:].lower(), dpi=150)
    return write_file(path, content.getvalue())


def first_observation(agent: Learner, seed: int = 0) -> np.ndarray:
    """What the agent sees at the beginning of an episode."""
    env = agent.handle.env
    seen = env.reset(jax.random.key(seed))[1] if agent.handle.is_jax else env.reset(seed=seed)[0]
    return np.asarray(seen)
