"""The training loop: chunks of steps, and between them reports, callbacks, checkpoints, evaluations and stops."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.errors import SentinelWarning, Stopped, UsageError
from sentinel_rl.training.compiled import BaseTraining, Progress, Training, chunks_together
from sentinel_rl.training.evaluation import evaluate_run
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.keeper import Keeper, common_step
from sentinel_rl.training.laws import law_report
from sentinel_rl.training.metrics import Episodes
from sentinel_rl.training.population_evaluation import Evaluation, evaluate_population
from sentinel_rl.training.signals import Stopper
from sentinel_rl.training.sinks import RETURN, TAGS, Logger

# How often in a training sinks are told of the laws of returns.
_LAW_REPORTS = 20

# Called after every chunk of steps; False ends the training.
Callback = Callable[[Progress], Any]


class Evaluator:
    """Plays episodes with the frozen policies of a training.

    Args:
        handle: the environment to play in.
        episodes: of every run.
        seed: of the episodes; every run has its own, the same whatever its agent is.
        gamma: discount.
    """

    def __init__(self, handle: EnvHandle, episodes: int, seed: int, gamma: float):
        self.handle, self.episodes, self.seed, self.gamma = handle, episodes, seed, gamma

    def __call__(self, training: BaseTraining) -> tuple[Episodes, dict[str, np.ndarray]]:
        """Episodes ``[runs, E]``, and means of diagnostics over their decisions where these are compiled.

        All numbers of a run that has failed are NaN.
        """
        played, told = self._play(training)
        if training.failures:
            failed = np.isin(np.arange(len(training.seeds)), list(training.failures))
            played, told = jax.tree.map(lambda values: _without(values, failed), (played, told))
        return played, told

    def _play(self, training: BaseTraining) -> tuple[Episodes, dict[str, np.ndarray]]:
        if isinstance(training, Training) and self.handle.is_jax:
            evaluation = Evaluation("evaluation", self.episodes, self.seed)
            (told,) = evaluate_population([training], self.handle.env, evaluation, self.gamma)
            played = Episodes(*(told.pop(name) for name in Episodes._fields))
            return played, told
        rows = [
            evaluate_run(training.agents[run], state, self.handle, self.episodes, self.seed, seed, self.gamma)
            for run, (seed, state) in enumerate(zip(training.seeds, training.agent_states(), strict=True))
        ]
        return Episodes(*(np.stack([np.asarray(f) for f in fields]) for fields in zip(*rows, strict=True))), {}


def _without(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Values with NaN in place of some rows."""
    return np.where(rows.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)


class Reporter:
    """Tells the sinks of the runs how training goes, and the user what an agent warns about.

    Args:
        loggers: one per run.
        strict: a warning of an agent is an error.
        reports: ask the agents for their reports.
        log_interval: episodes of a run between two entries of its log, at least; after every chunk when None.
        resumed: whether the runs began before, in the same folder.
        about: agent, environment, steps and options, for sinks that note them.
    """

    def __init__(
        self,
        loggers: Sequence[Logger],
        strict: bool = False,
        reports: bool = True,
        log_interval: int | None = None,
        resumed: bool = False,
        about: Mapping[str, Any] | None = None,
    ):
        self.loggers, self.strict, self.reports = loggers, strict, reports
        self.log_interval, self._logged = log_interval, [0] * len(loggers)
        self.resumed, self.about = resumed, about or {}
        self._warned, self._began, self._from = False, time.perf_counter(), 0
        self._next_laws = 0

    def begin(self, t: int) -> None:
        """Training begins, or is resumed, at step ``t``: the speed is that of the steps made from here on."""
        self._began, self._from = time.perf_counter(), t
        for logger in self.loggers:
            logger.start(t, self.resumed, self.about)

    def __call__(self, training: BaseTraining, progress: Progress) -> None:
        """Look at a training after a chunk of steps."""
        active = any(logger.active for logger in self.loggers)
        # Laws are not asked for with every chunk: that would cost more than all the scalars.
        laws = progress.t >= self._next_laws and not progress.interim
        if laws:
            self._next_laws = progress.t + progress.steps // _LAW_REPORTS
        if (self.reports or active) and not progress.interim:
            training.report()
        told = training.history.last_report() if active else {}
        fps = (progress.t - self._from) / max(time.perf_counter() - self._began, 1e-9)
        for run, logger in enumerate(self.loggers):
            means = {name: _mean(values[run]) for name, values in progress.metrics.items()}
            means = {name: value for name, value in means.items() if np.isfinite(value)}
            state = cache(partial(training.state_of, run))  # to take a run out of its group costs milliseconds
            self._check(training, run, progress.t, means, state)
            if logger.active and self._due(run, progress):
                if (laws or progress.done) and run not in training.failures:
                    _record_laws(logger, training.agents[run], state, progress.t)
                self._record(logger, progress, run, means, {name: values[run] for name, values in told.items()}, fps)

    def _due(self, run: int, progress: Progress) -> bool:
        """Whether enough episodes have ended since the last entry; the end of training has one, too."""
        if self.log_interval is None:
            return True
        ended = progress.history.count(run)
        due = progress.done or ended - self._logged[run] >= self.log_interval
        self._logged[run] = ended if due else self._logged[run]
        return due

    def _check(
        self, training: BaseTraining, run: int, t: int, means: Mapping[str, float], state: Callable[[], Any]
    ) -> None:
        if self._warned or not means or run in training.failures:
            return
        message = training.agents[run].check(t, means, state)
        if message is None:
            return
        if self.strict:
            raise UsageError(message)
        self._warned = True  # runs side by side would all say the same
        warnings.warn(message, SentinelWarning, stacklevel=2)

    def _record(
        self,
        logger: Logger,
        progress: Progress,
        run: int,
        means: Mapping[str, float],
        told: Mapping[str, float],
        fps: float,
    ) -> None:
        recent = progress.history.recent(run)
        if len(recent.reward):
            logger.record(RETURN, float(np.mean(recent.reward)))
            logger.record("rollout/ep_len_mean", float(np.mean(recent.length)))
        logger.record("time/fps", fps)
        for name, value in means.items():
            logger.record(TAGS.get(name, f"train/{name}"), value)
        for name, value in told.items():
            logger.record(f"risk/{name}", value)
        logger.dump(progress.t)


def _record_laws(logger: Logger, agent: Agent, state: Callable[[], Any], t: int) -> None:
    """The weights of the members and the law of the return, where a sink takes histograms and the agent has laws."""
    if not logger.takes_histograms:
        return
    found = law_report(agent, state())
    if found is None:
        return
    for member, (weight, mean) in enumerate(zip(found.weights, found.means, strict=True)):
        logger.record(f"members/weight_{member}", float(weight))
        logger.record(f"members/mean_{member}", float(mean))
    logger.dump_histograms(t, {"laws/return": found.law})


def _mean(values: np.ndarray) -> float:
    """The mean of the updates that were made; NaN where there were none."""
    made = values[np.isfinite(values)]
    return float(np.mean(made)) if made.size else float("nan")


class Session:
    """Drives trainings that go side by side: one, or several of the same environment and plan.

    Args:
        trainings: compiled, or one that is stepped from Python.
        evaluator: plays the frozen policies, if they are to be evaluated.
        evaluate_every: steps between two evaluations during training.
        stopper: tells when to stop.
        keepers: take the checkpoints, one per training; without any, nothing is saved.
        reporters: look at every training after a chunk of steps, one each.
        callbacks: called after every chunk of steps with the progress of the first training.
        target: steps between two returns to the host, at most.
    """

    def __init__(
        self,
        trainings: Sequence[BaseTraining],
        evaluator: Evaluator | None = None,
        evaluate_every: int | None = None,
        stopper: Stopper | None = None,
        keepers: Sequence[Keeper] = (),
        reporters: Sequence[Reporter] = (),
        callbacks: Sequence[Callback] = (),
        target: int | None = None,
    ):
        self.trainings, self.evaluator, self.evaluate_every = list(trainings), evaluator, evaluate_every
        self.stopper, self.keepers = stopper or Stopper(active=False), list(keepers)
        self.reporters, self.callbacks, self.target = list(reporters), list(callbacks), target
        self.stopped_early = False

    @property
    def t(self) -> int:
        """Steps done by every run."""
        return self.trainings[0].t

    def run(self) -> None:
        """Train to the end, from the newest checkpoint if there is one.

        Raises:
            Stopped: when a stop was requested; all that can be kept is saved.
        """
        first = self.trainings[0]
        self._resume()
        for reporter in self.reporters:
            reporter.begin(self.t)
        if self.t > 0:
            self._call(Progress(self.t, first.plan.steps, first.seeds, first.history, {}))
        for end in self._ends():
            for together in self._chunks(end):
                looked_at = zip(self.reporters, self.trainings, together, strict=bool(self.reporters))
                for reporter, training, progress in looked_at:
                    reporter(training, progress)
                proceed = self._call(together[0]) and not first.stopped_early
                self._save(together[0], last=together[0].done or not proceed)
                if self.stopper.requested and together[0].stoppable and not together[0].done:
                    self._stop()
                if not proceed:
                    self.stopped_early = True
                    return
            self._evaluate(end)

    def evaluate_finally(self) -> tuple[Episodes, Mapping[str, np.ndarray]] | None:
        """The evaluation of the first training at the end, if one was asked for."""
        return None if self.evaluator is None else self.evaluator(self.trainings[0])

    def save_before_stop(self) -> None:
        """Take the last checkpoints."""
        for keeper in self.keepers:
            if keeper.saved_at < self.t:
                keeper.save(last_chance=True)

    def _resume(self) -> None:
        """Go back to the newest checkpoint; trainings side by side to the newest one that all of them have."""
        if len(self.keepers) == 1:
            self.keepers[0].resume()
        elif (step := common_step(self.keepers)) > 0:
            for keeper in self.keepers:
                keeper.resume_from(step)

    def _ends(self) -> Iterator[int]:
        """The steps at which training is interrupted for an evaluation, and its last step."""
        steps, every = self.trainings[0].plan.steps, self.evaluate_every
        for end in range(every, steps, every) if every is not None else ():
            if end > self.t or (end == self.t and not self._evaluated(end)):
                yield end
        yield steps

    def _chunks(self, end: int) -> Iterator[Sequence[Progress]]:
        compiled = [training for training in self.trainings if isinstance(training, Training)]
        if compiled:
            yield from chunks_together(compiled, self.target, end)
        for training in self.trainings:
            if isinstance(training, HostTraining):
                yield from ([progress] for progress in training.chunks(self.target, end, self._pause))

    def _pause(self, t: int) -> bool:
        """Whether a run that is stepped from Python shall come to the end of an episode."""
        return self.stopper.requested or any(keeper.due(t) for keeper in self.keepers)

    def _save(self, progress: Progress, last: bool) -> None:
        """Take checkpoints when it is time, when a stop was requested, and at the end."""
        stop = self.stopper.requested
        for keeper in self.keepers:
            # Nothing follows the last step: a checkpoint in the middle of an episode will do.
            savable = progress.savable or (progress.done and keeper.can_save)
            if savable and (stop or keeper.due(progress.t) or (last and keeper.saves_at_the_end)):
                keeper.save(last_chance=stop or last)
            elif last:
                keeper.write_monitors()

    def _stop(self) -> None:
        training = self.trainings[0]
        done = f"{training.t} of {training.plan.steps} steps"
        if isinstance(training, HostTraining):
            done += f" of seed {training.seeds[0]}"
        if not self.keepers:
            raise Stopped(f"stopped after {done}")
        saved = min(keeper.saved_at for keeper in self.keepers)
        raise Stopped(f"stopped after {done}, " + ("and saved" if saved == training.t else f"{saved} of them saved"))

    def _call(self, progress: Progress) -> bool:
        proceed = True
        for callback in self.callbacks:  # all of them are called, whatever the first one says
            proceed &= callback(progress) is not False
        return proceed

    def _evaluated(self, t: int) -> bool:
        found = self.trainings[0].history.evaluations()
        return found is not None and t in found[0]

    def _evaluate(self, t: int) -> None:
        """Evaluate after step ``t``, where that is asked for, and keep the best policies."""
        if self.evaluator is None or self.evaluate_every is None or self._evaluated(t):
            return
        for training in self.trainings:
            training.add_evaluation(t, self.evaluator(training)[0])
