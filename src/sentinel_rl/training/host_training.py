"""Training one run on an environment that is stepped from Python, with the interface of a compiled `Training`."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent, Metrics
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.errors import NumericalError, SentinelWarning
from sentinel_rl.replay import padded_like
from sentinel_rl.training.compiled import BaseTraining, Progress
from sentinel_rl.training.episodes import Episode, EpisodeLog
from sentinel_rl.training.history import History
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import GymnasiumWorld, HostStep, JaxWorld, VectorWorld, host_env
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.standing import PARTIAL, Standing

# Transitions between two reports.
_CHUNK = 2_000
# Steps in which an episode must end after a pause was asked for; else the last checkpoint has to do.
_LONGEST_WAIT = 5_000
# Steps after which an episode that goes on is warned about.
_ENDLESS = 10_000

# Called after every step with what happened, the actions, the metrics of the updates that were made and the episode
# that ended in each environment, if one did; False ends the training.
OnStep = Callable[[HostStep, np.ndarray, list[Metrics], Sequence[Episode | None]], bool]


class HostTraining(BaseTraining):
    """One run on a Gymnasium environment, a vector of them, or a JAX environment that is stepped from Python.

    Episodes of a Gymnasium environment are seeded by the run's seed and their number, so that a checkpoint at the end
    of an episode needs nothing of the environment: what is resumed there equals what was not interrupted, where the
    environment is determined by its seed.

    Args:
        agent: that learns.
        handle: the environment.
        plan: when the run learns and explores.
        seed: of the run.
        points: of the learning curves.
        gamma: discount of the returns in the history.
        on_step: called after every step.
        start: where its training stood before.
    """

    def __init__(
        self,
        agent: Agent,
        handle: EnvHandle,
        plan: Plan,
        seed: int,
        points: int = 200,
        gamma: float | None = None,
        on_step: OnStep | None = None,
        start: Standing | None = None,
    ):
        gamma = handle.spec.gamma if gamma is None else gamma
        super().__init__([agent], plan, [seed], History(1, plan.steps, points, gamma, plan.horizon))
        world = host_env(handle, seed, 0 if start is None else start.episode)
        self.run = HostRun(self.agents[0], world, plan, seed, start)
        self._logs = [EpisodeLog(gamma) for _ in range(world.num_envs)]
        self._on_step, self._endless_told = on_step, False
        if start is not None:
            self._go_on(start)

    def chunks(
        self, target: int | None = None, end: int | None = None, pause: Callable[[int], bool] = lambda t: False
    ) -> Iterator[Progress]:
        """Advance to step `end`, by default to the end of the plan.

        Progress is told about every `target` steps, counted from the first of all, and at the end of an episode when
        `pause` asks for it: only there can a checkpoint be taken.
        """
        last = self.plan.steps if end is None else min(end, self.plan.steps)
        every = min(target or _CHUNK, _CHUNK)
        updates: list[tuple[int, Mapping[str, Any]]] = []
        told, waiting = self.t, 0
        while self.t < last and not self.stopped_early:
            ended, metrics = self._step()
            updates += [(self.t, each) for each in metrics]
            waiting = waiting + 1 if pause(self.t) else 0
            savable = ended and self.resumable
            stoppable = savable or waiting > _LONGEST_WAIT or not self.resumable
            paused = waiting > 0 and stoppable
            due = self.t // every > told // every or self.t >= last or self.stopped_early
            told, waiting = self.t, 0 if paused else waiting
            if paused or due:
                measured = self._taken_in(updates)
                about = savable, stoppable, not due
                yield Progress(self.t, self.plan.steps, self.seeds, self.history, measured, *about)
                updates.clear()

    def _step(self) -> tuple[bool, list[Metrics]]:
        """Do one step; returns whether an episode ended with it, and the metrics of its updates."""
        happened, actions, metrics = self.run.step()
        self.t = self.run.t
        now = self.history.elapsed
        ended = [self._episode(happened, i, now) for i in range(len(self._logs))]
        self._warn_of_endless_episodes()
        self.history.add_episodes(0, [episode for episode in ended if episode is not None])
        if self._on_step is not None:
            self.stopped_early = not self._on_step(happened, actions, metrics, ended)
        return ended[0] is not None, metrics

    def _warn_of_endless_episodes(self) -> None:
        """Say once that an episode goes on and on: without ends there are no checkpoints, and nothing is counted."""
        longest = max(log.length for log in self._logs)
        if self._endless_told or longest < _ENDLESS:
            return
        self._endless_told = True
        name = self.run.world.spec.name
        warnings.warn(
            f"an episode of {name} has not ended in {longest} steps (step {self.t}, seed {self.seeds[0]}): until one "
            "ends, returns are not counted and no checkpoint is taken. Give it a limit: "
            "gymnasium.wrappers.TimeLimit(env, 1000)",
            SentinelWarning,
            stacklevel=2,
        )

    def _episode(self, happened: HostStep, i: int, now: float) -> Episode | None:
        """Tell a log what happened in one environment; returns the episode that ended."""
        if not happened.valid[i]:
            return None
        ends = bool(happened.terminated[i]), bool(happened.truncated[i])
        return self._logs[i].add(float(happened.reward[i]), *ends, self.t, now)

    def _taken_in(self, updates: Sequence[tuple[int, Mapping[str, Any]]]) -> dict[str, np.ndarray]:
        names = updates[0][1] if updates else ()
        metrics = {name: np.array([[float(update[name]) for _, update in updates]]) for name in names}
        if (wrong := np.flatnonzero(~np.isfinite(metrics.get("loss", np.zeros((1, 0)))))).size:
            loss, t = metrics["loss"][0, wrong[0]], updates[wrong[0]][0]
            raise NumericalError(
                f"loss {loss} at step {t} of seed {self.seeds[0]}: a smaller learning rate may help; "
                "the last checkpoint is kept"
            )
        self.history.add_metrics(np.array([t for t, _ in updates], np.int64), metrics)
        return metrics

    def report(self) -> None:
        """Ask the agent what it reports of itself, for the learning curves."""
        told = _report(self.run.agent, self.run.state)
        if told:
            self.history.add_report(self.t, [told])

    def agent_states(self) -> list[Any]:
        """The state of the agent."""
        return [self.run.state]

    def state_of(self, run: int) -> Any:
        """The state of the agent."""
        return self.run.state

    @property
    def resumable(self) -> bool:
        """Whether a checkpoint can be taken where an episode ended."""
        return isinstance(self.run.world, GymnasiumWorld)

    def tree(self) -> dict[str, Any]:
        """What a checkpoint holds: the agent, its next action, the number of the episode it is for, the history."""
        return {**self._run_tree(), **self.kept()}

    def form(self) -> dict[str, Any]:
        """The form of `tree`: what a checkpoint is compared with."""
        return {**self._run_tree(), **self.kept_form()}

    def _run_tree(self) -> dict[str, Any]:
        actions = np.zeros(1, np.int32) if self.run.actions is None else np.asarray(self.run.actions)
        return {"state": self.run.state, "actions": actions, "episode": np.array(self._next_episode, np.int32)}

    @property
    def _next_episode(self) -> int:
        """The number of the episode to go on with: one that has begun is not begun again."""
        world = self.run.world
        if isinstance(world, VectorWorld):
            return world.episode + 1
        return world.episode + (self._logs[0].length > 0) if isinstance(world, GymnasiumWorld) else 0

    def standing(self) -> Standing:
        """Where the training stands."""
        world, history = self.run.world, self.history.state()
        within = None
        if isinstance(world, JaxWorld):
            within, log = (world.state, jnp.asarray(self.run.obs[0])), self._logs[0]
            history |= dict(
                zip(PARTIAL, (np.array([n]) for n in (log.reward, log.discounted, log.length)), strict=True)
            )
        before, horizon = self.plan.before or 0, self.plan.horizon or self.plan.steps
        return Standing(self.run.state, self.t, before, horizon, within, self._next_episode, history)

    def _go_on(self, start: Standing) -> None:
        self.t = start.t
        if start.history is None:
            return
        self.history.restore(start.t, start.history)
        if start.world is not None:
            reward, discounted, length = (start.history[name][0] for name in PARTIAL)
            log = self._logs[0]
            log.reward, log.discounted, log.length = float(reward), float(discounted), int(length)

    def restore(self, tree: Mapping[str, Any], t: int) -> None:
        """Go back to a checkpoint of step ``t``, at the end of an episode."""
        whole = jax.eval_shape(lambda state: state, self.run.state)
        self.run.state = jax.tree.map(padded_like, tree["state"], whole)
        self.run.actions, self.run.t, self.t = jnp.asarray(tree["actions"]), t, t
        world = self.run.world
        if isinstance(world, GymnasiumWorld):
            world.episode = int(tree["episode"])
            self.run.obs = world.start()
            if t < self.plan.steps:  # where training is extended, the saved action may be one within the last episode
                self.run.actions = None
        self.restore_kept(t, tree)


@jax.jit
def _report(agent: Any, state: Any) -> Any:
    return jax.tree.map(lambda number: number[None], agent.report(state))
