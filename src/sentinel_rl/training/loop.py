"""Training a population in the fused runner: chunk by chunk, saved, resumable, stoppable."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped
from sentinel_rl.replay import filled_part, padded_like
from sentinel_rl.storage.checkpoint import Saver, latest, load
from sentinel_rl.storage.run_folder import RunFolder
from sentinel_rl.training.episodes import EpisodeLog, monitor_file, read_episodes
from sentinel_rl.training.fused import Population, RunState
from sentinel_rl.training.population import Advanced, Fleet, take_run
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.segments import Segments, chunked
from sentinel_rl.training.signals import Stopper

# Steps between two looks of the host: about a second of a core, and less than that of an accelerator.
_CHUNK = {"cpu": 2_000, "gpu": 10_000}


@dataclasses.dataclass(frozen=True)
class Chunk:
    """The steps of a chunk ``[runs, steps]``, for those who make their own sums of them.

    Args:
        reward: of every step.
        terminated: whether it ended an episode by a fall, a crash or the like.
        truncated: whether it was the last that the time limit allows.
        ends: the step counts after the chunk's stretches, in the order of the metrics.
    """

    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    ends: np.ndarray


@dataclasses.dataclass
class Progress:
    """Where a training stands after a chunk."""

    t: int
    episodes: Sequence[EpisodeLog]
    metrics: Mapping[str, np.ndarray]
    chunk: Chunk | None = None


class Training:
    """Runs of one environment and plan, one per seed, side by side.

    A run in which a number is not finite is noted in ``failures``, by its place in the list of seeds, and no more
    looked at; the others go on. Where all have failed, `NumericalError` is raised.

    Args:
        agents: one per seed; they may differ in numbers (lambda, alpha), not in kind.
        env: a JAX environment.
        plan: its course.
        seeds: one run each. The list is part of what is run: resuming with another is refused.
        logged: whether the logs are kept; an entry per episode costs the host time where there are many runs.
    """

    def __init__(self, agents: Sequence[Agent], env: Env, plan: Plan, seeds: Sequence[int], logged: bool = True):
        self.plan, self.seeds, self.t, self.logged = plan, list(seeds), 0, logged
        self.fleet = Fleet(env, plan)
        self.groups: list[Population] = self.fleet.start(agents, self.seeds)
        self.logs = [EpisodeLog() for _ in self.seeds]
        self.failures: dict[int, str] = {}

    def chunks(self, target: int | None = None, end: int | None = None) -> Iterator[Progress]:
        """Advance to step `end`, by default to the end of the plan, in chunks of about `target` steps.

        The bits do not depend on the chunks. A checkpoint stands at the end of one.
        """
        for (progress,) in chunks_together([self], target, end):
            yield progress

    def take_in(self, advanced: Sequence[Advanced], parts: Segments) -> Progress:
        """Go on to what the groups became in a chunk."""
        self.groups[:] = [group for group, _, _ in advanced]  # in place: those who watch hold the list
        traces, metrics = [trace for _, trace, _ in advanced], [measured for _, _, measured in advanced]
        done = int(parts.end[-1]) - self.t
        rewards, terminated, truncated, _ = (
            np.concatenate([np.asarray(field) for field in fields])[: len(self.seeds), :done]
            for fields in zip(*traces, strict=True)
        )
        means = {
            name: np.concatenate([np.asarray(part[name]) for part in metrics])[: len(self.seeds)] for name in metrics[0]
        }
        self._notice_failures(rewards, means, parts)
        for run, log in enumerate(self.logs if self.logged else []):
            if run not in self.failures:
                log.extend(rewards[run], terminated[run], truncated[run])
        self.t += done
        return Progress(self.t, self.logs, means, Chunk(rewards, terminated, truncated, np.asarray(parts.end)))

    def _notice_failures(self, rewards: np.ndarray, metrics: Mapping[str, np.ndarray], parts: Segments) -> None:
        """Find the runs with a number that is not finite: a reward, an observation, or the loss of an update."""
        last = int(parts.end[-1])
        observed = np.concatenate([np.asarray(group.runs.obs) for group in self.groups])[: len(self.seeds)]
        loss = metrics.get("loss", np.zeros((len(self.seeds), len(parts))))
        fresh: dict[int, str] = {}
        for run in set(range(len(self.seeds))) - set(self.failures):
            remedy = "fix the environment"
            if (wrong := np.flatnonzero(~np.isfinite(rewards[run]))).size:
                what = f"reward {rewards[run, wrong[0]]} at step {self.t + wrong[0] + 1}"
            elif (wrong := np.flatnonzero(~np.isfinite(observed[run]))).size:
                what = f"observation {observed[run, wrong[0]]} at index {wrong[0]} in the steps {self.t + 1} to {last}"
            elif (wrong := np.flatnonzero(~np.isfinite(loss[run]) & (parts.update > 0))).size:
                what = f"loss {loss[run, wrong[0]]} at step {parts.end[wrong[0]]}"
                remedy = "a smaller learning rate may help"
            else:
                continue
            fresh[run] = f"{what} of seed {self.seeds[run]}: {remedy}"
        self.failures |= fresh
        if len(self.failures) == len(self.seeds):
            raise NumericalError(f"{self.failures[min(fresh)]}; the last checkpoint is kept")
        for failure in fresh.values():
            warnings.warn(f"{failure}; this run has failed, the others go on", SentinelWarning, stacklevel=2)

    def agent_states(self) -> list[Any]:
        """The state of every run's agent, in the order of the seeds, however they are grouped on the devices."""
        return [run.agent for run in _unstacked([group.runs for group in self.groups], len(self.seeds))]

    def tree(self) -> dict[str, Any]:
        """All that a checkpoint must hold: the runs, and the episodes that are under way."""
        partial = np.array([[log.reward, log.length, run in self.failures] for run, log in enumerate(self.logs)])
        groups = [jax.tree.map(_on_host, group.runs) for group in self.groups]
        return {"runs": filled_part(_unstacked(groups, len(self.seeds)), self.t), "partial": partial}

    def form(self) -> dict[str, Any]:
        """The form of `tree` with replays of full size, without its numbers: what a checkpoint is compared with."""
        groups = [group.runs for group in self.groups for _ in range(group.runs.obs.shape[0])]
        runs = [jax.tree.map(_one_of, group) for group in groups[: len(self.seeds)]]
        return {"runs": runs, "partial": np.zeros((len(self.seeds), 3))}

    def restore(self, tree: Mapping[str, Any], t: int) -> None:
        """Go back to a checkpoint of step ``t``; the episodes before it are read from the monitor files."""
        runs = [
            jax.tree.map(padded_like, run, like) for run, like in zip(tree["runs"], self.form()["runs"], strict=True)
        ]
        for index, group in enumerate(self.groups):
            size = group.runs.obs.shape[0]
            part = [runs[min(index * size + i, len(runs) - 1)] for i in range(size)]
            stacked = jax.tree.map(lambda old, *new: jax.device_put(jnp.stack(new), old.sharding), group.runs, *part)
            self.groups[index] = Population(group.agents, stacked)
        self.t = t
        for run, (reward, length, failed) in enumerate(tree["partial"]):
            self.logs[run].reward, self.logs[run].length = float(reward), int(length)
            if failed:
                self.failures[run] = f"seed {self.seeds[run]} had failed before step {t}"


def chunks_together(
    trainings: Sequence[Training], target: int | None = None, end: int | None = None
) -> Iterator[list[Progress]]:
    """Advance trainings that share an environment and a plan side by side, see `Training.chunks`.

    On accelerators one program serves all, whatever their agents are. There a run's last bits depend on its company, as
    they do on the number of runs.
    """
    first = trainings[0]
    if any((other.fleet.env, other.plan, other.t) != (first.fleet.env, first.plan, first.t) for other in trainings):
        raise ValueError("trainings go side by side when they have the same environment, plan and steps so far")
    for parts, steps in cuts(first.fleet, first.t, target, end):
        advanced = iter(first.fleet.advance([group for each in trainings for group in each.groups], parts, steps))
        yield [each.take_in([next(advanced) for _ in each.groups], parts) for each in trainings]


def cuts(
    fleet: Fleet, begin: int = 0, target: int | None = None, end: int | None = None
) -> Iterator[tuple[Segments, int]]:
    """The chunks of a plan from step `begin` on, see `Training.chunks`, and the rows of their traces."""
    return chunked(fleet.plan, begin, _CHUNK.get(fleet.devices[0].platform, 10_000), target, end)


def _one_of(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """The form of one run's part of a stacked array."""
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _on_host(leaf: Any) -> Any:
    """A copy in NumPy, which is cut without compiling anything; keys stay where they are."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.array(leaf)


def _unstacked(groups: list[RunState], count: int) -> list[RunState]:
    """The runs of groups one by one, without those that only fill up the last group."""
    runs = [take_run(group, i) for group in groups for i in range(group.obs.shape[0])]
    return runs[:count]


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
    if training.t > 0:
        report(Progress(training.t, training.logs, {}))
    saved = training.t
    for progress in training.chunks(save_every):
        report(progress)
        done = progress.t == training.plan.steps
        stop = stopper is not None and stopper.requested
        if saver is not None and folder is not None and (stop or done or progress.t - saved >= save_every):
            if stop or done:
                saver.patience = 1  # there is no next time
            _save(training, folder, saver)
            saved = progress.t
        if stop and not done:
            saved_or_not = "" if folder is None else ", and saved"
            raise Stopped(f"stopped after {progress.t} of {training.plan.steps} steps{saved_or_not}")


def load_into(training: Training, checkpoint: Path) -> None:
    """Go back to one checkpoint of the same run; its episodes are not read."""
    tree, manifest = load(checkpoint, training.form(), {"seeds": training.seeds}, filled_part)
    training.restore(tree, int(manifest.step or 0))


def _save(training: Training, folder: RunFolder, saver: Saver) -> None:
    """Save the episodes, then the checkpoint: on a full disk both are tried again next time, as `Saver` does."""

    def episodes() -> None:
        for seed, log in zip(training.seeds, training.logs, strict=True):
            log.save(monitor_file(folder.path, seed), training.fleet.env.spec.name)

    saver.write_beside(episodes)
    saver.save(training.t, training.tree(), {"seeds": training.seeds})


def _resume(training: Training, folder: RunFolder) -> None:
    found = latest(folder.checkpoints, training.form(), {"seeds": training.seeds}, filled_part)
    if found is None:
        return
    training.restore(found[0], int(found[1].step or 0))
    for seed, log in zip(training.seeds, training.logs, strict=True):
        read_episodes(log, monitor_file(folder.path, seed), training.t)
