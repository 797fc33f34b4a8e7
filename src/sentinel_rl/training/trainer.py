"""Training, wired once: `train` is what the classes, the command line and studies are thin faces of."""

import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from sentinel_rl._checks import is_whole
from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import named_options
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.console import note
from sentinel_rl.envs.handle import EnvLike
from sentinel_rl.errors import NumericalError, SentinelWarning, UsageError
from sentinel_rl.storage.run_folder import RunFolder, open_run
from sentinel_rl.training.compiled import BaseTraining, Training
from sentinel_rl.training.evaluation import EVALUATION_SEED
from sentinel_rl.training.host_training import HostTraining, OnStep
from sentinel_rl.training.job import Job, agents_of, checked_plan, evaluation_handle, extended, trainable, upgraded
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.memory import require_memory
from sentinel_rl.training.metrics import Episodes
from sentinel_rl.training.policy import best_file, policy_file, save_policy
from sentinel_rl.training.progress import progress_bar
from sentinel_rl.training.result import Result
from sentinel_rl.training.schedule import PLAN_OPTIONS, require_seeds
from sentinel_rl.training.session import Callback, Evaluator, Reporter, Session
from sentinel_rl.training.signals import Stopper, catch_signals
from sentinel_rl.training.sinks import Logger, Sink

# What a run's folder holds beside configuration, checkpoints and the mark of its end.
ARTIFACTS = (
    "checkpoints/seed_*",
    "seed_*.monitor.csv",
    "policy_seed_*.zip",
    "best_seed_*.zip",
    "curves.csv",
    "eval.json",
    "eval.csv",
    "eval_*",
    "frontier.*",
    "stress.*",
    "assess.*",
    "wandb-runs.json",
    "wandb",
)
# Entries of its configuration in which a run that is extended differs from what it was.
EXTENDED = ("plan.steps", "plan.horizon")


def train(
    agent: str | Agent | Sequence[Agent],
    env: EnvLike,
    steps: int = 100_000,
    seeds: int | Iterable[int] = (0,),
    *,
    evaluate: int = 0,
    evaluate_every: int | None = None,
    evaluation_env: EnvLike = None,
    evaluation_seed: int = EVALUATION_SEED,
    evaluation_gamma: float | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    sinks: Sequence[Sink] = (),
    folder: str | Path | None = None,
    overwrite: bool = False,
    save_every: int = 20_000,
    keep: int = 2,
    points: int = 200,
    reports: bool = True,
    strict: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Result:
    """Train an agent on an environment, one run per seed.

    On a JAX environment all runs are compiled with it and trained side by side. On a Gymnasium environment they are
    trained one after the other. The same seed gives the same result, bit for bit, also after an interruption.

    Args:
        agent: an agent, one per seed, or the name of a registered one.
        env: a name, a Gymnasium environment (or a vector of them), or a JAX environment.
        steps: environment steps of every run; a run in the folder that had fewer is extended, with the schedules that
            it was planned with.
        seeds: one run each; a number ``n`` means 0 to ``n - 1``.
        evaluate: episodes of every evaluation of the frozen policies; there is one at the end where it is not 0.
        evaluate_every: steps between two evaluations during training; they also choose the best policy of a run.
        evaluation_env: to evaluate in; by default the one to train in, a Gymnasium one made again from its spec.
        evaluation_seed: of the episodes of evaluations.
        evaluation_gamma: discount of the returns that are reported, of training as of evaluations; by default the
            task's own (`EnvSpec.gamma`), whatever the agent learns with, which is its option ``gamma``.
        callbacks: functions of a `Progress`, called after every chunk of steps; False ends the training.
        sinks: take the scalars of the training, see `sentinel_rl.training.sinks`.
        folder: for configuration, checkpoints, episodes, policies and curves; training that was interrupted there is
            resumed, and Ctrl-C saves and stops.
        overwrite: begin anew where the folder holds a run.
        save_every: steps between two checkpoints.
        keep: how many checkpoints to keep, the newest ones.
        points: of the learning curves.
        reports: ask the agents for their reports after every chunk, for curves and sinks.
        strict: a warning of an agent, such as returns outside its support, is an error.
        progress: show a progress bar, or nothing; when None a terminal is told if compiling takes long.
        options: of the plan (``learn_every``, ``warmup``, ``epsilon_start``, ``epsilon_end``, ``epsilon_fraction``),
            and of the agent where it is given by name.

    Raises:
        UsageError: for bad arguments, or a folder that holds something else.
        Stopped: when a stop was requested; with a folder, calling again resumes.
        NumericalError: when every run has failed; one that fails alone is noted in ``failures``.

    Example:
        >>> result = train("sentinel", "CartPole-v1", 400, seeds=2, evaluate=3, k=2, hidden=(8,), capacity=400)
        >>> result.curves["return"].shape, result.episodes.reward.shape
        ((2, 200), (2, 3))
    """
    handle = trainable(env)
    seeds = require_seeds(seeds)
    agents, kind, own = agents_of(agent, handle, len(seeds), options)
    plan = checked_plan(steps, agents[0], options)
    job = Job(
        agents=agents,
        handle=handle,
        plan=plan,
        seeds=seeds,
        gamma=handle.spec.gamma if evaluation_gamma is None else evaluation_gamma,
        points=points,
        evaluate=evaluate,
        evaluate_every=evaluate_every,
        evaluation_env=evaluation_env,
        evaluation_seed=evaluation_seed,
        reports=reports,
        strict=strict,
        kind=kind,
        options={**own, **{name: value for name, value in options.items() if name in PLAN_OPTIONS}},
    )
    return run_job(job, folder, overwrite, save_every, callbacks, sinks, progress, keep=keep)


def run_job(
    job: Job,
    folder: str | Path | None = None,
    overwrite: bool = False,
    save_every: int = 20_000,
    callbacks: Callback | Sequence[Callback] = (),
    sinks: Sequence[Sink] = (),
    progress: bool | None = None,
    loggers: Sequence[Logger] | None = None,
    on_step: OnStep | None = None,
    stopper: Stopper | None = None,
    watch: Callable[[BaseTraining], None] = lambda training: None,
    log_interval: int | None = None,
    keep: int = 2,
) -> Result:
    """Train as a job says; the arguments are those of `train`, and those that the classes add.

    Args:
        job: what to train.
        folder: see `train`.
        overwrite: see `train`.
        save_every: see `train`.
        callbacks: see `train`.
        sinks: see `train`.
        progress: see `train`.
        loggers: one per seed, in place of fresh ones for the sinks.
        on_step: called after every step, which is then made from Python, also in a JAX environment.
        stopper: tells when to stop; by default signals are caught where there is a folder.
        watch: is handed every training before its first step.
        log_interval: episodes between two entries of a log, at least.
        keep: see `train`.
    """
    if not is_whole(save_every, 1):
        raise UsageError(f"save_every must be a whole number of steps of at least 1, got {save_every!r}")
    if isinstance(folder, str) and not folder:
        raise UsageError('folder="" names no folder: give a name ("." is the current folder), or None')
    use_compilation_cache()
    together = job.handle.is_jax and on_step is None
    require_memory(job.agents if together else job.agents[:1], job.handle.spec)
    given = [callbacks] if callable(callbacks) else list(callbacks)
    loggers = [Logger(sinks, seed) for seed in job.seeds] if loggers is None else list(loggers)
    with ExitStack() as stack:
        for sink in {id(sink): sink for logger in loggers for sink in logger.sinks}.values():
            stack.callback(sink.close)
        stopper = stack.enter_context(_signals(folder)) if stopper is None else stopper
        opened = None
        if folder is not None:
            if not overwrite:
                job = extended(job, folder)
            upgrade = functools.partial(upgraded, job)
            extend = () if job.plan.horizon is None else EXTENDED
            arguments = job.configuration(), overwrite, ARTIFACTS, job.about(), upgrade, extend
            opened = stack.enter_context(open_run(folder, *arguments))
        show = stack.enter_context(progress_bar(job.plan.steps, len(job.seeds), progress))
        sessions = _sessions(job, opened, save_every, keep, stopper, on_step)
        parts: list[Result] = []
        for number, session in enumerate(sessions):
            (training,) = session.trainings
            own = loggers if isinstance(training, Training) else [loggers[number]]
            resumed = opened is not None and opened.resumed
            session.reporters = [Reporter(own, job.strict, job.reports, log_interval, resumed, job.about())]
            session.callbacks = [show, *given]
            watch(training)
            parts.append(_run(job, session, opened, sum(len(part.failures) for part in parts)))
            if session.stopped_early:
                break
        result = Result.join(parts)
        if opened is not None:
            result.write_curves(opened.path / "curves.csv")
            opened.finish({"steps": result.steps, "seeds": result.lines()})
    return result


def _sessions(
    job: Job, folder: RunFolder | None, save_every: int, keep: int, stopper: Stopper, on_step: OnStep | None
) -> Iterator[Session]:
    """All runs at once where they are compiled with their environment, else one session after the other."""
    compiled = job.handle.is_jax and on_step is None
    if on_step is not None and len(job.seeds) > 1:
        raise UsageError("a callback that is called after every step trains one seed at a time: give one seed")
    if on_step is not None and job.handle.is_jax:
        note(
            f"a callback that sees every step leaves the compiled path: {job.handle.spec.name} is stepped from Python, "
            "which is many times slower. sentinel_rl.train(callbacks=...) calls after every chunk of steps instead"
        )
    for part in [job.seeds] if compiled else [[seed] for seed in job.seeds]:
        evaluator = None
        if job.evaluate:
            evaluator = Evaluator(evaluation_handle(job), job.evaluate, job.evaluation_seed, job.gamma)
        training: Training | HostTraining
        if compiled:
            training = Training(job.agents, job.handle.env, job.plan, part, job.points, job.gamma, job.start)
        else:
            own = job.agents[job.seeds.index(part[0])]
            training = HostTraining(own, job.handle, job.plan, part[0], job.points, job.gamma, on_step, job.start)
        keepers = []
        if folder is not None:
            place = folder.checkpoints / ("" if compiled else f"seed_{part[0]}")
            keepers = [Keeper(training, place, save_every, folder.path, job.handle.spec.name, keep=keep)]
        yield Session([training], evaluator, job.evaluate_every, stopper, keepers, target=save_every)


def _run(job: Job, session: Session, folder: RunFolder | None, failed_before: int) -> Result:
    """Train a session to its end; one run of several may fail."""
    (training,) = session.trainings
    final: tuple[Episodes, Mapping[str, np.ndarray]] | None = None
    try:
        session.run()
        final = session.evaluate_finally()
    except NumericalError as error:
        if isinstance(training, Training) or failed_before + 1 == len(job.seeds):
            raise
        training.failures[0] = str(error)
        warnings.warn(f"{error}; the other seeds go on", SentinelWarning, stacklevel=4)
        if job.evaluate:
            final = Episodes(*[np.full((1, job.evaluate), np.nan)] * 4), {}
    if folder is not None:
        _save_policies(job, session, folder.path)
    episodes, diagnostics = (None, {}) if final is None else final
    return Result(
        agents=list(training.agents),
        handle=job.handle,
        seeds=list(training.seeds),
        steps=training.t,
        curves=training.history.curves(),
        totals=training.history.totals(),
        table=training.history.table(),
        episodes=episodes,
        diagnostics=diagnostics,
        evaluations=training.history.evaluations(),
        best=[best if np.isfinite(best.score) else None for best in training.best],
        failures={training.seeds[run]: why for run, why in training.failures.items()},
        agent_states=training.agent_states(),
    )


def _save_policies(job: Job, session: Session, folder: Path) -> None:
    """Save the policies of the runs that did not fail, and the best ones of their evaluations."""
    about = job.about()
    if about["agent"] is None:
        warnings.warn(
            f"{type(job.agents[0]).__name__} has no registered name, and its policies are not saved as files: give it "
            "one with register_agent. Checkpoints are kept",
            SentinelWarning,
            stacklevel=5,
        )
        return
    (training,) = session.trainings
    options = job.options if job.kind is not None else (named_options(job.agents[0]) or ("", {}))[1] | dict(job.options)
    for run, (seed, state) in enumerate(zip(training.seeds, training.agent_states(), strict=True)):
        if run in training.failures:
            continue
        agent = training.agents[run]
        saved = functools.partial(save_policy, agent=agent, handle=job.handle, kind=about["agent"], options=options)
        saved(policy_file(folder, seed), state=state, seed=seed, steps=training.t)
        if training.best:
            best = training.best[run]
            saved(best_file(folder, seed), state=agent.with_policy(best.policy), seed=seed, steps=best.step)


def _signals(folder: str | Path | None) -> AbstractContextManager[Stopper]:
    """Catch signals where there is something to save, and where Python can: in the main thread."""
    if folder is not None and threading.current_thread() is threading.main_thread():
        return catch_signals()
    return nullcontext(Stopper(active=False))
