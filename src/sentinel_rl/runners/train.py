"""Training a population in the fused runner: chunk by chunk, saved, resumable, stoppable."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import NumericalError, Stopped
from sentinel_rl.runners.checkpoint import Saver, latest
from sentinel_rl.runners.episodes import EpisodeLog
from sentinel_rl.runners.folder import RunFolder
from sentinel_rl.runners.population import Fleet, Population
from sentinel_rl.runners.schedule import Plan, Segments, segments
from sentinel_rl.runners.signals import Stopper

# Steps between two looks of the host: about a second of a core, and less than that of an accelerator.
_CHUNK = {"cpu": 2_000, "gpu": 10_000}


@dataclasses.dataclass
class Progress:
    """Where a training stands after a chunk."""

    t: int
    episodes: Sequence[EpisodeLog]
    metrics: Mapping[str, np.ndarray]


class Training:
    """Runs of one environment and plan, one per seed, side by side.

    Args:
        agents: one per seed; they may differ in numbers (lambda, alpha), not in kind.
        env: a JAX environment.
        plan: its course.
        seeds: one run each. The list is part of what is run: resuming with another is refused.
    """

    def __init__(self, agents: Sequence[Agent], env: Env, plan: Plan, seeds: Sequence[int]):
        self.plan, self.seeds, self.t = plan, list(seeds), 0
        self.fleet = Fleet(env, plan)
        self.groups: list[Population] = self.fleet.start(agents, self.seeds)
        self.logs = [EpisodeLog() for _ in self.seeds]

    def chunks(self) -> Iterator[Progress]:
        """Advance to the end of the plan, chunk by chunk."""
        for parts, steps in chunked(self.plan, self.t, _CHUNK.get(self.fleet.devices[0].platform, 10_000)):
            yield self._advance(parts, steps)

    def _advance(self, parts: Segments, steps: int) -> Progress:
        traces, metrics = [], []
        for index, group in enumerate(self.groups):
            self.groups[index], trace, measured = self.fleet.advance(group, parts, steps)
            traces.append(trace)
            metrics.append(measured)
        done = int(parts.end[-1]) - self.t
        rewards, terminated, truncated, _ = (
            np.concatenate([np.asarray(field) for field in fields])[: len(self.seeds), :done]
            for fields in zip(*traces, strict=True)
        )
        self._require_finite(rewards)
        for run, log in enumerate(self.logs):
            log.extend(rewards[run], terminated[run], truncated[run])
        self.t += done
        means = {
            name: np.concatenate([np.asarray(part[name]) for part in metrics])[: len(self.seeds)] for name in metrics[0]
        }
        return Progress(self.t, self.logs, means)

    def _require_finite(self, rewards: np.ndarray) -> None:
        if not np.isfinite(rewards).all():
            run, step = (int(i) for i in np.argwhere(~np.isfinite(rewards))[0])
            raise NumericalError(
                f"reward {rewards[run, step]} at step {self.t + step + 1} of seed {self.seeds[run]}: "
                f"fix the environment; the last checkpoint is kept"
            )

    def agent_states(self) -> list[Any]:
        """The state of every run's agent, in the order of the seeds."""
        states = [
            jax.tree.map(lambda leaf, i=i: leaf[i], group.runs.agent)
            for group in self.groups
            for i in range(group.runs.obs.shape[0])
        ]
        return states[: len(self.seeds)]

    def tree(self) -> dict[str, Any]:
        """All that a checkpoint must hold: the runs, and the episodes that are under way."""
        partial = np.array([[log.reward, log.length] for log in self.logs])
        return {"runs": [group.runs for group in self.groups], "partial": partial}

    def restore(self, tree: Mapping[str, Any], t: int) -> None:
        """Go back to a checkpoint of step ``t``; the episodes before it are read from the monitor files."""
        runs = tree["runs"]
        self.groups = [Population(group.agents, run) for group, run in zip(self.groups, runs, strict=True)]
        self.t = t
        for log, (reward, length) in zip(self.logs, tree["partial"], strict=True):
            log.reward, log.length = float(reward), int(length)


def chunked(plan: Plan, begin: int, target: int) -> Iterator[tuple[Segments, int]]:
    """Cut a plan into chunks of about `target` steps and equal shape, so that one compiled program serves all."""
    parts = segments(plan, begin)
    count = max(1, round(len(parts) * target / max(plan.steps - begin, 1)))
    if parts.length is not None and len(parts) % count:
        count = max(d for d in range(1, count + 1) if len(parts) % d == 0)
    pieces = [parts[slice(i, i + count)] for i in range(0, len(parts), count)]
    longest = max(int(piece.end[-1] - piece.begin[0]) for piece in pieces)
    for piece in pieces:
        yield _padded(piece, count), longest


def _padded(parts: Segments, count: int) -> Segments:
    """Append empty stretches; only plans of uneven stretches come here with a short last piece."""
    missing = count - len(parts)
    if missing == 0:
        return parts
    ends = np.full(missing, parts.end[-1], np.int32)
    return Segments(
        begin=np.append(parts.begin, ends),
        end=np.append(parts.end, ends),
        update=np.append(parts.update, np.zeros(missing, np.int32)),
        length=parts.length,
    )


def train(
    training: Training,
    folder: RunFolder | None = None,
    stopper: Stopper | None = None,
    save_every: int = 20_000,
    report: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Train to the end of the plan, resuming from the folder's last checkpoint if there is one.

    Raises:
        Stopped: when a stop was requested; all that was done is saved.
    """
    saver = None if folder is None else Saver(folder.checkpoints)
    if folder is not None:
        _resume(training, folder)
    saved = training.t
    for progress in training.chunks():
        report(progress)
        stop = stopper is not None and stopper.requested
        due = stop or progress.t - saved >= save_every or progress.t == training.plan.steps
        if saver is not None and folder is not None and due:
            _save_logs(training, folder)
            saver.save(progress.t, training.tree(), {"seeds": training.seeds})
            saved = progress.t
        if stop and progress.t < training.plan.steps:
            raise Stopped(f"stopped after {progress.t} of {training.plan.steps} steps, and saved")


def _resume(training: Training, folder: RunFolder) -> None:
    found = latest(folder.checkpoints, training.tree(), {"seeds": training.seeds})
    if found is not None:
        training.restore(found[0], int(found[1].step or 0))
        _load_logs(training, folder)


def monitor_file(folder: RunFolder, seed: int) -> Path:
    """Where the episodes of a seed are written; SB3's ``load_results`` finds them."""
    return folder.path / f"seed_{seed}.monitor.csv"


def _save_logs(training: Training, folder: RunFolder) -> None:
    for seed, log in zip(training.seeds, training.logs, strict=True):
        log.save(monitor_file(folder, seed), training.fleet.env.spec.name)


def _load_logs(training: Training, folder: RunFolder) -> None:
    for seed, log in zip(training.seeds, training.logs, strict=True):
        log.load(monitor_file(folder, seed), training.t)
