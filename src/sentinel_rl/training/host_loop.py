"""Training on environments that are stepped from Python: looked at now and then, saved and resumed at episode ends."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Metrics
from sentinel_rl.errors import Stopped, UsageError
from sentinel_rl.replay import filled_part, padded_like
from sentinel_rl.storage.checkpoint import Saver, latest
from sentinel_rl.storage.run_folder import RunFolder
from sentinel_rl.training.episodes import Episode, EpisodeLog, monitor_file, read_episodes
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import GymnasiumWorld, HostStep
from sentinel_rl.training.loop import Progress
from sentinel_rl.training.signals import Stopper

# Transitions between two looks at a run.
_LOOK_EVERY = 2_000
# Steps in which an episode must end after a stop was requested; else the last checkpoint has to do.
_LONGEST_WAIT = 5_000

AfterStep = Callable[[HostStep, np.ndarray, list[Metrics], Sequence[Episode | None]], bool]


@dataclasses.dataclass
class HostKeeper:
    """Saves a run on a Gymnasium environment where an episode ends, and resumes it there.

    Episodes are seeded by the run's seed and their number, so that nothing of the environment needs to be saved: what
    is resumed equals what was not interrupted, where the environment is determined by its seed.

    Args:
        folder: of the run.
        seed: of the run; every seed has its own checkpoints.
        save_every: steps between two checkpoints, at least.
        stopper: tells when to stop.
    """

    folder: RunFolder
    seed: int
    save_every: int = 20_000
    stopper: Stopper | None = None

    def __post_init__(self) -> None:
        self.saver = Saver(self.folder.checkpoints / f"seed_{self.seed}")
        self._saved, self._asked = 0, 0

    @property
    def monitor(self) -> Path:
        """The file of the run's episodes."""
        return monitor_file(self.folder.path, self.seed)

    def resume(self, run: HostRun, log: EpisodeLog) -> None:
        """Go back to the last checkpoint, if there is one."""
        found = latest(self.saver.parent, _tree(run), {"seed": self.seed}, filled_part)
        if found is None:
            return
        tree, manifest = found
        whole = jax.eval_shape(lambda state: state, run.state)
        run.state = jax.tree.map(padded_like, tree["state"], whole)
        run.actions, run.t = jnp.asarray(tree["actions"]), int(manifest.step or 0)
        world = _require_gymnasium(run)
        world.episode = int(tree["episode"])
        run.obs = world.start()
        self._saved = run.t
        read_episodes(log, self.monitor, run.t)

    def __call__(self, run: HostRun, log: EpisodeLog, ended: bool) -> None:
        """Look after a run after a step: save it where an episode ended and it is time.

        Raises:
            Stopped: when a stop was requested, as soon as the episode has ended and the run is saved.
        """
        stop = self.stopper is not None and self.stopper.requested
        self._asked += stop
        done = run.t == run.plan.steps
        if ended and (stop or run.t - self._saved >= self.save_every) and not done:
            if stop:
                self.saver.patience = 1  # there is no next time
            self.save(run, log)
        if stop and not done and (ended or self._asked > _LONGEST_WAIT):
            done_so_far = f"{run.t} of {run.plan.steps} steps of seed {self.seed}"
            raise Stopped(f"stopped after {done_so_far}, {self._saved} of them saved")

    def save(self, run: HostRun, log: EpisodeLog) -> None:
        """Save the episodes, then the run; on a full disk it is tried again next time, as `Saver` does."""
        self.saver.write_beside(lambda: log.save(self.monitor, run.world.spec.name))
        if self.saver.save(run.t, filled_part(_tree(run), run.t), {"seed": self.seed}) is not None:
            self._saved = run.t


def train_on_host(
    run: HostRun,
    log: EpisodeLog,
    look: Callable[[Progress], None] = lambda progress: None,
    after_step: AfterStep | None = None,
    keeper: HostKeeper | None = None,
) -> None:
    """Train to the end of the plan.

    Args:
        run: at its beginning, or resumed.
        log: takes its episodes.
        look: called every few thousand transitions, and at the end.
        after_step: called after every step; False ends the training.
        keeper: saves it.
    """
    logs = [log] if run.world.num_envs == 1 else [EpisodeLog() for _ in range(run.world.num_envs)]
    updates: list[Mapping[str, Any]] = []
    proceed, looked = True, run.t
    while proceed and run.t < run.plan.steps:
        happened, actions, metrics = run.step()
        ended = [_extend(one, happened, i) for i, one in enumerate(logs)]
        if len(logs) > 1:
            log.episodes += [episode for episode in ended if episode is not None]
        updates += metrics
        if after_step is not None:
            proceed = after_step(happened, actions, metrics, ended)
        if run.t - looked >= _LOOK_EVERY or run.t == run.plan.steps or not proceed:
            looked = run.t
            look(Progress(run.t, [log], _stacked(updates)))
            updates.clear()
        if keeper is not None:
            keeper(run, log, ended[0] is not None)


def _extend(log: EpisodeLog, happened: HostStep, i: int) -> Episode | None:
    """Tell a log what happened in one environment; returns the episode that ended."""
    if not happened.valid[i]:
        return None
    fresh = log.extend(*(field[i : i + 1] for field in happened[1:4]))
    return fresh[0] if fresh else None


def _stacked(updates: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The metrics of several updates, by name, as of one run."""
    return {name: np.array([[float(update[name]) for update in updates]]) for name in (updates[0] if updates else ())}


def _tree(run: HostRun) -> dict[str, Any]:
    """What a checkpoint holds: the agent, its next action, and the number of the episode it is for."""
    actions = np.zeros(1, np.int32) if run.actions is None else np.asarray(run.actions)
    return {"state": run.state, "actions": actions, "episode": np.array(_require_gymnasium(run).episode, np.int32)}


def _require_gymnasium(run: HostRun) -> GymnasiumWorld:
    if not isinstance(run.world, GymnasiumWorld):
        raise UsageError("only runs on one Gymnasium environment are saved at the end of episodes")
    return run.world
