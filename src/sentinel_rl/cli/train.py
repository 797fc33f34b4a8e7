"""``sentinel train``: a run per seed, saved, resumed and stopped on request."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sentinel_rl.api.classes import Learner
from sentinel_rl.cli.runs import ARTIFACTS, jax_env, make_agent, make_training, plan_of, policy_file
from sentinel_rl.console import note, results
from sentinel_rl.errors import NumericalError, PartialFailure
from sentinel_rl.storage.run_folder import RunFolder, open_run
from sentinel_rl.training.environment import host_world
from sentinel_rl.training.episodes import EpisodeLog
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_loop import HostKeeper, train_on_host
from sentinel_rl.training.loop import Progress, train
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.progress import progress_bar
from sentinel_rl.training.signals import Stopper, catch_signals
from sentinel_rl.training.watch import Reports, looking, state_of

# The episodes of every seed, and what went wrong by seed.
Outcome = tuple[list[EpisodeLog], dict[int, str]]
Attention = Callable[[Callable[[int], Any]], Callable[[Progress], None]]


def configuration_of(
    env: str, steps: int, seeds: list[int], options: dict[str, Any], agent: str = "sentinel"
) -> dict[str, Any]:
    """All that makes a run what it is. How often it is saved does not."""
    return {"env": env, "agent": agent, "steps": steps, "seeds": seeds, "options": options}


@dataclasses.dataclass(frozen=True)
class Habits:
    """How a run is attended; what comes out does not depend on it.

    Args:
        save_every: steps between two checkpoints.
        quiet: no bar and no table.
        tensorboard: folder for TensorBoard's scalars.
        strict_support: stop where returns do not fit into the support.
    """

    save_every: int = 20_000
    quiet: bool = False
    tensorboard: Path | None = None
    strict_support: bool = False

    @contextmanager
    def attending(self, agent: Learner, seeds: list[int], logs: list[EpisodeLog], steps: int) -> Iterator[Attention]:
        """Watch runs and show their progress; yields a function of their states that makes the one to call."""
        reports = Reports(self.tensorboard, strict_support=self.strict_support, label=type(agent).__name__)
        with (
            reports.watching(agent.agent, agent.spec.name, seeds, logs) as watches,
            progress_bar(steps, len(seeds), not self.quiet) as show,
        ):
            yield lambda state: looking(show, watches, state)


_USUAL = Habits()


def run(configuration: dict[str, Any], out: Path, overwrite: bool = False, habits: Habits = _USUAL) -> None:
    """Train, resuming what is there, and print the summary.

    Raises:
        Stopped: on Ctrl-C or SIGTERM, after saving.
        PartialFailure: when numbers were not finite in some of the runs; the others are finished.
    """
    use_all_cores()
    agent = make_agent(configuration)
    plan_of(agent, configuration)  # says what is wrong before anything is written
    with catch_signals() as stopper, open_run(out, configuration, overwrite, ARTIFACTS) as folder:
        train_seeds = _fused if jax_env(agent) is not None else _host
        logs, failures = train_seeds(agent, folder, stopper, habits)
        lines = [_line(seed, log, failures) for seed, log in zip(configuration["seeds"], logs, strict=True)]
        folder.finish({"steps": configuration["steps"], "seeds": lines})
    if not habits.quiet:
        results().print(_table(configuration, lines))
        results().print(f"run: {out}\nnext: sentinel eval {out}", markup=False, soft_wrap=True)
    if failures:
        raise PartialFailure(
            f"{len(failures)} of {len(lines)} runs failed, the others are finished:\n" + "\n".join(failures.values())
        )


def _fused(agent: Learner, folder: RunFolder, stopper: Stopper, habits: Habits) -> Outcome:
    """All seeds at once, compiled with their environment."""
    training = make_training(agent, folder.configuration)
    with habits.attending(agent, training.seeds, training.logs, training.plan.steps) as attend:
        report = attend(partial(state_of, training.groups))
        train(training, folder, stopper, habits.save_every, report)
    for run, state in enumerate(training.agent_states()):
        if run not in training.failures:
            agent.seed, agent.state, agent.num_timesteps = training.seeds[run], state, training.t
            agent.save(policy_file(folder.path, agent.seed))
    return training.logs, {training.seeds[run]: failure for run, failure in training.failures.items()}


def _host(agent: Learner, folder: RunFolder, stopper: Stopper, habits: Habits) -> Outcome:
    """One seed after the other, the environment in Python."""
    if not habits.quiet:
        note("this environment has no JAX form: seeds are trained one by one, and saved at the end of episodes")
    logs, failures = [], {}
    for seed in folder.configuration["seeds"]:
        logs.append(EpisodeLog())
        try:
            _host_seed(agent, folder, seed, HostKeeper(folder, seed, habits.save_every, stopper), logs[-1], habits)
        except NumericalError as error:
            failures[seed] = str(error)
            if len(failures) == len(folder.configuration["seeds"]):
                raise
            note(f"{error}; the other seeds go on")
    return logs, failures


def _host_seed(
    agent: Learner, folder: RunFolder, seed: int, keeper: HostKeeper, log: EpisodeLog, habits: Habits
) -> None:
    if policy_file(folder.path, seed).exists():
        log.load(keeper.monitor, folder.configuration["steps"])
        return
    plan = plan_of(agent, folder.configuration)
    run = HostRun(agent.agent, host_world(agent.place, seed), plan, seed)
    keeper.resume(run, log)
    with habits.attending(agent, [seed], [log], plan.steps) as attend:
        train_on_host(run, log, attend(lambda _: run.state), keeper=keeper)
    log.save(keeper.monitor, agent.spec.name)
    agent.seed, agent.state, agent.num_timesteps = seed, run.state, run.t
    agent.save(policy_file(folder.path, seed))


def _line(seed: int, log: EpisodeLog, failures: Mapping[int, str]) -> dict[str, Any]:
    recent = log.recent() if log.episodes else None
    line = {"seed": seed, "episodes": len(log.episodes), "return": recent, "terminations": log.terminations}
    return line | ({"failed": failures[seed]} if seed in failures else {})


def _table(configuration: dict[str, Any], lines: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{configuration['agent']} on {configuration['env']}, {configuration['steps']:,} steps")
    for column in ("seed", "episodes", "terminations", "mean return of the last 100"):
        table.add_column(column, justify="right")
    for line in lines:
        recent = "none ended" if line["return"] is None else f"{line['return']:.1f}"
        recent = "failed" if "failed" in line else recent
        table.add_row(str(line["seed"]), str(line["episodes"]), str(line["terminations"]), recent)
    whole = [line for line in lines if line["return"] is not None and "failed" not in line]
    if len(whole) > 1:
        table.add_section()
        falls, recent = (np.mean([line[name] for line in whole]) for name in ("terminations", "return"))
        table.add_row(f"mean of {len(whole)}", "", f"{falls:.1f}", f"{recent:.1f}")
    return table
