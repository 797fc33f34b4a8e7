"""Checkpoints of trainings: when they are taken, what they hold, and how a training goes back to one."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sentinel_rl.replay import filled_part
from sentinel_rl.storage.checkpoint import Saver, latest, load, saved
from sentinel_rl.storage.manifest import Manifest
from sentinel_rl.training.compiled import Training, fit_to
from sentinel_rl.training.episodes import monitor_file, read_monitor, write_monitor
from sentinel_rl.training.host_training import HostTraining


class Keeper:
    """Takes the checkpoints of one training, and resumes it from them.

    Args:
        training: whose.
        folder: for the checkpoints.
        save_every: steps between two checkpoints, at least; None leaves it to `seconds`.
        monitors: folder for the files of the episodes, in SB3's format, written with every checkpoint.
        env_name: for these files.
        seconds: between two checkpoints, at least, where `save_every` is None; ten times what saving takes if that is
            more, so that training is never held up by much.
        keep: how many checkpoints to keep.
    """

    def __init__(
        self,
        training: Training | HostTraining,
        folder: Path,
        save_every: int | None = 20_000,
        monitors: Path | None = None,
        env_name: str = "",
        seconds: float = 60.0,
        keep: int = 2,
    ):
        self.training, self.save_every, self.monitors, self.env_name = training, save_every, monitors, env_name
        self.saver = Saver(folder, keep=keep)
        self.saved_at, self._seconds, self._saved_time = 0, seconds, time.monotonic()

    @property
    def about(self) -> dict[str, Any]:
        """What a checkpoint must have been saved with."""
        if isinstance(self.training, HostTraining):
            return {"seed": self.training.seeds[0]}
        return {"seeds": self.training.seeds}

    @property
    def can_save(self) -> bool:
        """Whether there can be a checkpoint at all: of a vector of environments there is none."""
        return isinstance(self.training, Training) or self.training.resumable

    @property
    def saves_at_the_end(self) -> bool:
        """Whether the last step gets a checkpoint: what is done is not trained again when other seeds are resumed."""
        return self.save_every is not None and self.can_save

    def due(self, t: int) -> bool:
        """Whether it is time for a checkpoint after ``t`` steps, where there can be one."""
        if not self.can_save:
            return False
        if self.save_every is not None:
            return t - self.saved_at >= self.save_every
        return t > self.saved_at and time.monotonic() - self._saved_time >= self._seconds

    def resume(self) -> None:
        """Go back to the newest checkpoint that is whole, if there is one."""
        found = latest(self.saver.parent, self.training.form(), self.about, fit_checkpoint)
        if found is not None:
            self._restore(*found)
            self.saver.tidy(self.training.t)

    def steps(self) -> list[int]:
        """The steps of the checkpoints that there are."""
        return sorted({place.step for place in saved(self.saver.parent)})

    def resume_from(self, step: int) -> None:
        """Go back to the checkpoint of one step."""
        places = [place for place in saved(self.saver.parent) if place.step == step]
        self._restore(*load(places[-1].folder, self.training.form(), self.about, fit_checkpoint))

    def _restore(self, tree: Any, manifest: Manifest) -> None:
        t = int(manifest.step or 0)
        if "history" not in tree:
            tree = self._with_history(tree, t)
        self.training.restore(tree, t)
        self.saved_at, self._saved_time = t, time.monotonic()

    def save(self, last_chance: bool = False) -> None:
        """Save the episodes, then the checkpoint; what fails on a full disk is tried again next time.

        Args:
            last_chance: there is no next time: raise the error at once.
        """
        if last_chance:
            self.saver.patience = 1
        began = time.monotonic()
        self.saver.write_beside(self.write_monitors)
        if self.saver.save(self.training.t, self._tree(), self.about) is not None:
            self.saved_at, self._saved_time = self.training.t, time.monotonic()
            self._seconds = max(self._seconds, 10 * (self._saved_time - began))

    def _tree(self) -> Any:
        tree = self.training.tree()
        return filled_part(tree, self.training.t) if isinstance(self.training, HostTraining) else tree

    def write_monitors(self) -> None:
        """Write the files of the episodes."""
        if self.monitors is None:
            return
        history = self.training.history
        for run, seed in enumerate(self.training.seeds):
            write_monitor(
                monitor_file(self.monitors, seed), history.table().of_run(run), self.env_name, history.started
            )

    def _with_history(self, tree: Any, t: int) -> Any:
        """A checkpoint of version 0.1 has no curves: the episodes are read from the files beside it."""
        history, folder = self.training.history, self.monitors or self.saver.parent.parent
        runs = range(len(self.training.seeds))
        tables = [read_monitor(monitor_file(folder, self.training.seeds[run]), run, t) for run in runs]
        partial = np.asarray(tree.get("partial", np.zeros((len(tables), 3))))
        history.restore_episodes(t, tables, partial[:, 0], partial[:, 1].astype(np.int64))
        return {**tree, "failed": partial[:, 2] > 0, "history": history.state()}


def fit_checkpoint(form: Any, manifest: Manifest) -> Any:
    """The form of a saved tree; one of version 0.1 has partial sums of episodes in place of a history."""
    fitted = fit_to(form, manifest)
    if not fitted["history"]:
        del fitted["history"]
        if "runs" in fitted:
            del fitted["failed"]
            fitted["partial"] = np.zeros((len(fitted["runs"]), 3))
    return fitted


def common_step(keepers: Sequence[Keeper]) -> int:
    """The newest step of which all trainings have a checkpoint; 0 where there is none."""
    steps = [set(keeper.steps()) for keeper in keepers]
    return max(set.intersection(*steps), default=0) if steps else 0
