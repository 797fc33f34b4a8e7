"""Training a population in the fused runner: chunk by chunk, saved, resumable, stoppable."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped, StorageError
from sentinel_rl.replay import Replay
from sentinel_rl.runners.checkpoint import Saver, latest, load
from sentinel_rl.runners.episodes import EpisodeLog
from sentinel_rl.runners.folder import RunFolder
from sentinel_rl.runners.fused import RunState
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

    def chunks(self, target: int | None = None, end: int | None = None) -> Iterator[Progress]:
        """Advance to step `end`, by default to the end of the plan, in chunks of about `target` steps.

        The bits do not depend on the chunks. A checkpoint stands at the end of one.
        """
        usual = _CHUNK.get(self.fleet.devices[0].platform, 10_000)
        for parts, steps in chunked(self.plan, self.t, min(usual, target or usual), end):
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
        means = {
            name: np.concatenate([np.asarray(part[name]) for part in metrics])[: len(self.seeds)] for name in metrics[0]
        }
        self._require_finite(rewards, means, parts)
        for run, log in enumerate(self.logs):
            log.extend(rewards[run], terminated[run], truncated[run])
        self.t += done
        return Progress(self.t, self.logs, means)

    def _require_finite(self, rewards: np.ndarray, metrics: Mapping[str, np.ndarray], parts: Segments) -> None:
        """Stop at the first number that is not finite: a reward, an observation, or the loss of an update."""
        if not np.isfinite(rewards).all():
            run, step = (int(i) for i in np.argwhere(~np.isfinite(rewards))[0])
            self._stop(f"reward {rewards[run, step]}", f"at step {self.t + step + 1}", run, "fix the environment")
        last = int(parts.end[-1])
        observed = np.concatenate([np.asarray(group.runs.obs) for group in self.groups])[: len(self.seeds)]
        if not np.isfinite(observed).all():
            run, place = (int(i) for i in np.argwhere(~np.isfinite(observed))[0])
            what = f"observation {observed[run, place]} at index {place}"
            self._stop(what, f"in the steps {self.t + 1} to {last}", run, "fix the environment")
        failed = ~np.isfinite(metrics["loss"]) & (parts.update > 0)[None, :] if "loss" in metrics else np.zeros((1, 1))
        if failed.any():
            run, part = (int(i) for i in np.argwhere(failed)[0])
            loss = metrics["loss"][run, part]
            self._stop(f"loss {loss}", f"at step {parts.end[part]}", run, "a smaller learning rate may help")

    def _stop(self, what: str, where: str, run: int, remedy: str) -> None:
        raise NumericalError(f"{what} {where} of seed {self.seeds[run]}: {remedy}; the last checkpoint is kept")

    def agent_states(self) -> list[Any]:
        """The state of every run's agent, in the order of the seeds, however they are grouped on the devices."""
        return [run.agent for run in _unstacked([group.runs for group in self.groups], len(self.seeds))]

    def tree(self) -> dict[str, Any]:
        """All that a checkpoint must hold: the runs, and the episodes that are under way."""
        partial = np.array([[log.reward, log.length] for log in self.logs])
        groups = [jax.tree.map(_on_host, group.runs) for group in self.groups]
        return {"runs": filled_part(_unstacked(groups, len(self.seeds)), self.t), "partial": partial}

    def form(self) -> dict[str, Any]:
        """The form of `tree` with replays of full size, without its numbers: what a checkpoint is compared with."""
        runs = jax.eval_shape(lambda groups: _unstacked(groups, len(self.seeds)), [group.runs for group in self.groups])
        return {"runs": runs, "partial": np.zeros((len(self.seeds), 2))}

    def restore(self, tree: Mapping[str, Any], t: int) -> None:
        """Go back to a checkpoint of step ``t``; the episodes before it are read from the monitor files."""
        runs = [
            jax.tree.map(_padded_like, run, like) for run, like in zip(tree["runs"], self.form()["runs"], strict=True)
        ]
        for index, group in enumerate(self.groups):
            size = group.runs.obs.shape[0]
            part = [runs[min(index * size + i, len(runs) - 1)] for i in range(size)]
            stacked = jax.tree.map(lambda old, *new: jax.device_put(jnp.stack(new), old.sharding), group.runs, *part)
            self.groups[index] = Population(group.agents, stacked)
        self.t = t
        for log, (reward, length) in zip(self.logs, tree["partial"], strict=True):
            log.reward, log.length = float(reward), int(length)


def filled_part(tree: Any, t: int) -> Any:
    """Cut every replay in a tree to what has been written in the first ``t`` steps; the rest is zero."""

    def cut(node: Any) -> Any:
        if not isinstance(node, Replay):
            return node
        return eqx.tree_at(lambda replay: (replay.rows, replay.queue), node, (node.rows[:t], node.queue[:, :t]))

    return jax.tree.map(cut, tree, is_leaf=lambda node: isinstance(node, Replay))


def _padded_like(array: Any, like: jax.ShapeDtypeStruct) -> Any:
    """Append zeros to an array, up to the shape of another."""
    if array.shape == like.shape:
        return array
    return jnp.pad(array, [(0, whole - part) for part, whole in zip(array.shape, like.shape, strict=True)])


def _on_host(leaf: Any) -> Any:
    """A copy in NumPy, which is cut without compiling anything; keys stay where they are."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.array(leaf)


def _unstacked(groups: list[RunState], count: int) -> list[RunState]:
    """The runs of groups one by one, without those that only fill up the last group."""
    runs = [jax.tree.map(lambda leaf, i=i: leaf[i], group) for group in groups for i in range(group.obs.shape[0])]
    return runs[:count]


def chunked(plan: Plan, begin: int, target: int, end: int | None = None) -> Iterator[tuple[Segments, int]]:
    """Cut a plan into chunks of about `target` steps and equal shape, so that one compiled program serves all.

    The cuts are those of the whole plan where `begin` is one of them, so that a resumed run needs no other program.
    """
    if begin >= plan.steps:
        return
    pieces = _pieces(segments(plan, 0), target)
    if all(piece.begin[0] != begin for piece in pieces):
        pieces = _pieces(segments(plan, begin), target)
    longest = max(int(piece.end[-1] - piece.begin[0]) for piece in pieces)
    count = max(len(piece) for piece in pieces)
    last = plan.steps if end is None else end
    for piece in pieces:
        if begin <= piece.begin[0] and piece.end[-1] <= last:
            yield _padded(piece, count), longest
        elif begin <= piece.begin[0] < last:
            rest = piece[slice(0, int(np.searchsorted(piece.end, last, side="right")))]
            yield dataclasses.replace(_padded(rest, count), length=None), longest


def _pieces(parts: Segments, target: int) -> list[Segments]:
    """Equal numbers of stretches; where all are equally long, so are the pieces."""
    steps = int(parts.end[-1] - parts.begin[0])
    count = max(1, round(len(parts) * target / max(steps, 1)))
    if parts.length is not None and len(parts) % count:
        count = max(d for d in range(1, count + 1) if len(parts) % d == 0)
    return [parts[slice(i, i + count)] for i in range(0, len(parts), count)]


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
    try:
        for seed, log in zip(training.seeds, training.logs, strict=True):
            log.save(monitor_file(folder.path, seed), training.fleet.env.spec.name)
    except StorageError:
        if saver.failures + 1 >= saver.patience:
            raise
    saver.save(training.t, training.tree(), {"seeds": training.seeds})


def _resume(training: Training, folder: RunFolder) -> None:
    found = latest(folder.checkpoints, training.form(), {"seeds": training.seeds}, filled_part)
    if found is None:
        return
    training.restore(found[0], int(found[1].step or 0))
    for seed, log in zip(training.seeds, training.logs, strict=True):
        path = monitor_file(folder.path, seed)
        try:
            log.load(path, training.t)
        except (OSError, ValueError, KeyError) as error:
            warnings.warn(
                f"the episodes before step {training.t} are lost, training goes on: {path} is not readable ({error})",
                SentinelWarning,
                stacklevel=2,
            )


def monitor_file(folder: Path, seed: int) -> Path:
    """Where the episodes of a seed are written; SB3's ``load_results`` finds them."""
    return folder / f"seed_{seed}.monitor.csv"
