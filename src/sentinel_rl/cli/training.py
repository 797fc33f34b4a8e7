"""``sentinel train``: a run per seed, saved, resumed and stopped on request."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sentinel_rl.cli.console import note, results
from sentinel_rl.cli.runs import ARTIFACTS, jax_env, make_agent, make_training, plan_of, policy_file
from sentinel_rl.errors import Stopped
from sentinel_rl.learner import Sentinel
from sentinel_rl.runners.episodes import EpisodeLog
from sentinel_rl.runners.folder import RunFolder, open_run
from sentinel_rl.runners.population import use_all_cores
from sentinel_rl.runners.progress import progress_bar
from sentinel_rl.runners.signals import Stopper, catch_signals
from sentinel_rl.runners.support_doctor import SupportDoctor
from sentinel_rl.runners.train import Progress, monitor_file, train
from sentinel_rl.runners.watch import state_of


def configuration_of(env: str, steps: int, seeds: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """All that makes a run what it is. How often it is saved does not."""
    return {"env": env, "steps": steps, "seeds": seeds, "options": options}


def run(
    configuration: dict[str, Any], out: Path, save_every: int = 20_000, overwrite: bool = False, quiet: bool = False
) -> None:
    """Train, resuming what is there, and print the summary.

    Raises:
        Stopped: on Ctrl-C or SIGTERM, after saving.
    """
    use_all_cores()
    agent = make_agent(configuration)
    plan_of(agent, configuration)  # says what is wrong before anything is written
    with catch_signals() as stopper, open_run(out, configuration, overwrite, ARTIFACTS) as folder:
        compiled = jax_env(agent) is not None
        logs = _fused(agent, folder, stopper, save_every, quiet) if compiled else _host(folder, stopper, quiet)
        summary = {"seeds": [_line(seed, log) for seed, log in zip(configuration["seeds"], logs, strict=True)]}
        folder.finish({"steps": configuration["steps"], **summary})
    if not quiet:
        results().print(_table(configuration, summary["seeds"]))
        results().print(f"run: {out}\nnext: sentinel eval {out}", markup=False, soft_wrap=True)


def _fused(agent: Sentinel, folder: RunFolder, stopper: Stopper, save_every: int, quiet: bool) -> list[EpisodeLog]:
    """All seeds at once, compiled with their environment."""
    training = make_training(agent, folder.configuration)
    doctor = SupportDoctor(agent.agent.support, float(agent.agent.gamma))
    with progress_bar(training.plan.steps, len(training.seeds), not quiet) as show:

        def report(progress: Progress) -> None:
            show(progress)
            for run, clipped in enumerate(_clipped(progress)):
                if doctor.suspects(*clipped):
                    doctor.examine(*clipped, state_of(training.groups, run).replay, progress.t)

        train(training, folder, stopper, save_every, report)
    for seed, state in zip(training.seeds, training.agent_states(), strict=True):
        agent.seed, agent.state, agent.num_timesteps = seed, state, training.t
        agent.save(policy_file(folder.path, seed))
    return training.logs


def _clipped(progress: Progress) -> list[tuple[float, float]]:
    """Per run, the share of the targets' mass that the chunk's updates lost at the lower and the upper edge."""
    sides = [np.asarray(progress.metrics.get(name, np.zeros((0, 0)))) for name in ("clip_low", "clip_high")]
    return [
        tuple(float(np.nanmean(side)) if np.isfinite(side).any() else 0.0 for side in pair)  # type: ignore[misc]
        for pair in zip(*sides, strict=True)
    ]


def _host(folder: RunFolder, stopper: Stopper, quiet: bool) -> list[EpisodeLog]:
    """One seed after the other, the environment in Python; what resumes is the seed, from its beginning."""
    if not quiet:
        note("this environment has no JAX form: seeds are trained one by one, and one that is stopped begins anew")
    return [_host_seed(folder, seed, stopper, quiet) for seed in folder.configuration["seeds"]]


def _host_seed(folder: RunFolder, seed: int, stopper: Stopper, quiet: bool) -> EpisodeLog:
    log, place = EpisodeLog(), policy_file(folder.path, seed)
    steps, name = folder.configuration["steps"], folder.configuration["env"]
    if place.exists():
        log.load(monitor_file(folder.path, seed), steps)
        return log

    def watch(local: dict[str, Any], _: dict[str, Any]) -> bool:
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in local["infos"]])
        log.extend(local["rewards"], local["dones"] & ~cut, cut)
        return not stopper.requested

    agent = make_agent({**folder.configuration, "seeds": [seed]})
    agent.learn(steps, callback=watch, progress_bar=not quiet)
    if agent.num_timesteps < steps:
        raise Stopped(
            f"stopped after {agent.num_timesteps} of {steps} steps of seed {seed}: the seeds before it are saved, "
            f"and this one will begin anew"
        )
    log.save(monitor_file(folder.path, seed), name)
    agent.save(place)
    return log


def _line(seed: int, log: EpisodeLog) -> dict[str, Any]:
    recent = log.recent() if log.episodes else None
    return {"seed": seed, "episodes": len(log.episodes), "return": recent, "terminations": log.terminations}


def _table(configuration: dict[str, Any], lines: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{configuration['env']}, {configuration['steps']:,} steps")
    for column in ("seed", "episodes", "terminations", "mean return of the last 100"):
        table.add_column(column, justify="right")
    for line in lines:
        recent = "none ended" if line["return"] is None else f"{line['return']:.1f}"
        table.add_row(str(line["seed"]), str(line["episodes"]), str(line["terminations"]), recent)
    known = [line["return"] for line in lines if line["return"] is not None]
    if len(lines) > 1 and known:
        table.add_section()
        falls = np.mean([line["terminations"] for line in lines])
        table.add_row(f"mean of {len(lines)}", "", f"{falls:.1f}", f"{np.mean(known):.1f}")
    return table
