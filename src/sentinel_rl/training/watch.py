"""What is looked at while a run trains: its support, its speed, and the risk that the agent sees."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl.agents.agent import Accountable
from sentinel_rl.storage.atomic import make_folder
from sentinel_rl.training.episodes import MONITOR, EpisodeLog
from sentinel_rl.training.loop import Progress
from sentinel_rl.training.population import take_run
from sentinel_rl.training.sinks import Logger, record_training
from sentinel_rl.training.support_doctor import SupportDoctor


class Watch:
    """One run under observation: called now and then, it warns and logs.

    Args:
        agent: that learns.
        log: its episodes.
        logger: takes the scalars.
        doctor: looks after the support, if there is one; runs that are trained side by side share it, so that it warns
            once.
    """

    def __init__(self, agent: Accountable, log: EpisodeLog, logger: Logger, doctor: SupportDoctor | None):
        self.agent, self.log, self.logger, self.doctor = agent, log, logger, doctor
        self._started = time.perf_counter()

    def __call__(self, t: int, metrics: Mapping[str, np.ndarray], state: Callable[[], Any]) -> None:
        """Look at a run after ``t`` steps.

        Args:
            t: steps done.
            metrics: of the updates since the last look; NaN where there was none.
            state: gives the agent's state, which is asked for only when it is needed.
        """
        means = {name: float(np.nanmean(values)) for name, values in metrics.items() if np.isfinite(values).any()}
        clipped = means.get("clip_low", 0.0), means.get("clip_high", 0.0)
        if self.doctor is not None and self.doctor.suspects(*clipped):
            self.doctor.examine(*clipped, state().replay, t)
        fps = t / (time.perf_counter() - self._started)
        record_training(self.logger, self.log, means, self._risk(state) if self.logger.active else {}, fps)
        self.logger.dump(t)

    def _risk(self, state: Callable[[], Any]) -> dict[str, float]:
        return {name: float(value) for name, value in risk_seen(self.agent, state()).items()}


@dataclasses.dataclass(frozen=True)
class Reports:
    """What users want to be told of a training.

    Args:
        tensorboard_log: folder for TensorBoard's scalars.
        monitor_dir: folder for the episodes, in SB3's format.
        strict_support: returns that do not fit into the support are an error.
        verbose: 1 prints the scalars.
        label: names the folders of TensorBoard.
    """

    tensorboard_log: str | Path | None = None
    monitor_dir: str | Path | None = None
    strict_support: bool = False
    verbose: int = 0
    label: str = "Sentinel"

    @contextmanager
    def watching(
        self, agent: Accountable, env_name: str, seeds: Sequence[int], logs: Sequence[EpisodeLog]
    ) -> Iterator[list[Watch]]:
        """Watch runs of an agent, one per seed, and write their episodes down however it ends."""
        support, gamma = (getattr(agent, name, None) for name in ("support", "gamma"))
        doctor = None if support is None or gamma is None else SupportDoctor(support, float(gamma), self.strict_support)
        folder = None if self.monitor_dir is None else make_folder(Path(self.monitor_dir))
        loggers = [Logger(event_folder(self.tensorboard_log, seed, self.label), self.verbose > 0) for seed in seeds]
        try:
            yield [Watch(agent, log, logger, doctor) for log, logger in zip(logs, loggers, strict=True)]
        finally:
            for seed, log, logger in zip(seeds, logs, loggers, strict=True):
                logger.close()
                if folder is not None:
                    log.save(folder / (MONITOR if len(seeds) == 1 else f"seed_{seed}.{MONITOR}"), env_name)


def looking(
    show: Callable[[Progress], None], watches: Sequence[Watch], state: Callable[[int], Any]
) -> Callable[[Progress], None]:
    """Make a function that shows the progress of a training and lets every run be watched; `state` gives a run's."""

    def look(progress: Progress) -> None:
        show(progress)
        for run, watch in enumerate(watches):
            metrics = {name: values[run] for name, values in progress.metrics.items()}
            watch(progress.t, metrics, partial(state, run))

    return look


REPORT_OPTIONS = tuple(field.name for field in dataclasses.fields(Reports) if field.name != "label")


@jax.jit
def risk_seen(agent: Accountable, state: Any) -> dict[str, Float[Array, ""]]:
    """What the agent tells of its preferred action, averaged over the latest 64 observations."""
    replay = getattr(state, "replay", None)
    if replay is None:
        return {}
    latest = jnp.maximum(replay.newest - jnp.arange(64), 0) % replay.capacity
    observations = replay.rows[latest, : replay.obs_size]
    told = jax.vmap(lambda obs: agent.account(state, obs))(observations)
    best = jnp.argmax(told.value, axis=-1)[:, None]
    return {name: jnp.mean(jnp.take_along_axis(part, best, axis=-1)) for name, part in told.parts.items()}


def event_folder(parent: str | Path | None, seed: int, label: str = "Sentinel") -> Path | None:
    """A fresh folder for the event files of a run, numbered as SB3 does, so that runs are not mixed up."""
    if parent is None:
        return None
    taken = [int(p.name.rpartition("_")[2]) for p in Path(parent).glob(f"{label}_seed{seed}_*") if _numbered(p)]
    return Path(parent) / f"{label}_seed{seed}_{max(taken, default=0) + 1}"


def _numbered(path: Path) -> bool:
    return path.name.rpartition("_")[2].isdecimal()


def state_of(groups: Any, run: int) -> Any:
    """The state of one agent out of a population's groups of runs."""
    for group in groups:
        size = group.runs.obs.shape[0]
        if run < size:
            return take_run(group.runs.agent, run)
        run -= size
    raise IndexError(f"there is no run {run}")
