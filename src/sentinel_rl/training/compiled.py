"""A population of runs, compiled with their environment and advanced in chunks of steps; `session` drives it."""

import abc
import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import NumericalError, SentinelWarning
from sentinel_rl.replay import filled_part, padded_like
from sentinel_rl.storage.manifest import Manifest
from sentinel_rl.training.fused import Population, RunState
from sentinel_rl.training.history import History
from sentinel_rl.training.metrics import Episodes, measure
from sentinel_rl.training.population import Advanced, Fleet, take_run
from sentinel_rl.training.reports import report_runs
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.segments import Segments, chunked
from sentinel_rl.training.standing import Standing

# Steps between two returns to the host: about a second of a core, and less than that of an accelerator.
_CHUNK = {"cpu": 2_000, "gpu": 10_000}


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a training stands after a chunk of steps.

    Args:
        t: steps done by every run.
        steps: in all.
        seeds: of the runs.
        history: episodes and curves so far.
        metrics: of the chunk's updates by name, ``[runs, updates]``; NaN where there was none.
        savable: whether a checkpoint can be taken here.
        stoppable: whether training may be stopped here; elsewhere the end of an episode is worth waiting for.
        interim: whether training only pauses here for a checkpoint or a stop, which leaves no trace in the history.
    """

    t: int
    steps: int
    seeds: Sequence[int]
    history: History
    metrics: Mapping[str, np.ndarray]
    savable: bool = True
    stoppable: bool = True
    interim: bool = False

    @property
    def done(self) -> bool:
        """Whether the training is at its end."""
        return self.t >= self.steps


class Best(NamedTuple):
    """The best policy of a run by the evaluations during training.

    Args:
        step: after which it was evaluated.
        score: its mean return there.
        policy: what ``agent.with_policy`` takes.
    """

    step: int
    score: float
    policy: Any


class BaseTraining(abc.ABC):
    """What trainings have in common, whether they are compiled with their environment or stepped from Python.

    Args:
        agents: one per seed.
        plan: when the runs learn and explore.
        seeds: one run each.
        history: episodes and curves.
    """

    def __init__(self, agents: Sequence[Agent], plan: Plan, seeds: Sequence[int], history: History):
        self.agents = [agent.planned(plan.planned_updates) for agent in agents]
        self.plan, self.seeds, self.history = plan, list(seeds), history
        self.t = 0
        self.failures: dict[int, str] = {}
        self.best: list[Best] = []
        self.stopped_early = False

    @abc.abstractmethod
    def state_of(self, run: int) -> Any:
        """The state of one run's agent."""

    @abc.abstractmethod
    def agent_states(self) -> list[Any]:
        """The state of every run's agent, in the order of the seeds."""

    @abc.abstractmethod
    def standing(self) -> Standing:
        """Where the training of its only run stands."""

    @abc.abstractmethod
    def report(self) -> None:
        """Ask the agents what they report of themselves, for the learning curves."""

    def add_evaluation(self, t: int, played: Episodes) -> None:
        """Take in the episodes ``[runs, E]`` of an evaluation after ``t`` steps, and keep the best policies."""
        self.history.add_evaluation(t, played)
        scores = np.nan_to_num(measure(played, ["return"])["return"], nan=-np.inf)
        for run, score in enumerate(scores):
            if len(self.best) <= run or score > self.best[run].score:
                policy = jax.tree.map(_on_host, self.agents[run].policy(self.state_of(run)))
                self.best[run : run + 1] = [Best(t, float(score), policy)]

    def kept(self) -> dict[str, Any]:
        """What every checkpoint holds: the history, and the best policies if there are some."""
        policies = {"best": [best.policy for best in self.best]} if self.best else {}
        return {"history": self.history.state(), **policies}

    def kept_form(self) -> dict[str, Any]:
        """The form of `kept`; the history grows, so that only its names are compared, see `fit_to`."""
        runs = range(len(self.seeds))
        return {"history": {}, "best": [jax.eval_shape(self.agents[i].policy, self.state_of(i)) for i in runs]}

    def restore_kept(self, t: int, tree: Mapping[str, Any]) -> None:
        """Go back to what `kept` gave after step ``t``."""
        self.history.restore(t, tree["history"])
        found = self.history.evaluations()
        if found is not None and "best" in tree:
            scores = np.nan_to_num(measure(found[1], ["return"])["return"], nan=-np.inf)
            first = np.argmax(scores, axis=1)
            policies = enumerate(tree["best"])
            self.best = [Best(int(found[0][first[i]]), float(scores[i, first[i]]), policy) for i, policy in policies]


class Training(BaseTraining):
    """Runs of one JAX environment and plan, one per seed, side by side.

    A run in which a number is not finite is noted in ``failures``, by its place in the list of seeds, and no more
    looked at; the others go on. Where all have failed, `NumericalError` is raised.

    Args:
        agents: one per seed; they may differ in numbers (lambda, alpha), not in kind.
        env: a JAX environment.
        plan: when the runs learn and explore.
        seeds: one run each. The list is part of what is run: resuming with another is refused.
        points: of the learning curves.
        gamma: discount of the returns in the history.
        start: where the training of the only run stood before.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        env: Env,
        plan: Plan,
        seeds: Sequence[int],
        points: int = 200,
        gamma: float | None = None,
        start: Standing | None = None,
    ):
        discount = env.spec.gamma if gamma is None else gamma
        history = History(len(seeds), plan.steps, points, discount, plan.horizon)
        super().__init__(agents, plan, seeds, history)
        self.fleet = Fleet(env, plan)
        self.groups: list[Population] = self.fleet.start(self.agents, self.seeds)
        if start is not None:
            self._go_on(start)

    def chunks(self, target: int | None = None, end: int | None = None) -> Iterator[Progress]:
        """Advance to step `end`, by default to the end of the plan, in chunks of about `target` steps.

        The bits do not depend on the chunks. A checkpoint stands at the end of one.
        """
        for (progress,) in chunks_together([self], target, end):
            yield progress

    def take_in(self, advanced: Sequence[Advanced], parts: Segments) -> Progress:
        """Go on to what the groups became in a chunk."""
        self.groups[:] = [group for group, _, _ in advanced]  # in place: observers hold the list
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
        self.history.extend(rewards, terminated, truncated)
        self.history.add_metrics(np.asarray(parts.end), means)
        self.t += done
        return Progress(self.t, self.plan.steps, self.seeds, self.history, means)

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

    def report(self) -> None:
        """Ask the agents what they report of themselves, for the learning curves; nobody waits for the numbers."""
        if parts := report_runs(self.fleet, self.groups):
            self.history.add_report(self.t, parts)

    def agent_states(self) -> list[Any]:
        """The state of every run's agent, in the order of the seeds, however they are grouped on the devices."""
        return [run.agent for run in _unstacked([group.runs for group in self.groups], len(self.seeds))]

    def state_of(self, run: int) -> Any:
        """The state of one run's agent."""
        for group in self.groups:
            if run < group.size:
                return take_run(group.runs.agent, run)
            run -= group.size
        raise IndexError(f"there is no run {run}")

    def tree(self) -> dict[str, Any]:
        """All that a checkpoint must hold: the runs, which of them have failed, and the history."""
        groups = [jax.tree.map(_on_host, group.runs) for group in self.groups]
        runs = filled_part(_unstacked(groups, len(self.seeds)), self.t)
        failed = np.array([run in self.failures for run in range(len(self.seeds))])
        return {"runs": runs, "failed": failed, **self.kept()}

    def form(self) -> dict[str, Any]:
        """The form of `tree` with replays of full size, without its numbers: what a checkpoint is compared with."""
        groups = [group.runs for group in self.groups for _ in range(group.size)]
        runs = [jax.tree.map(_one_of, group) for group in groups[: len(self.seeds)]]
        return {"runs": runs, "failed": np.zeros(len(self.seeds), bool), **self.kept_form()}

    def restore(self, tree: Mapping[str, Any], t: int) -> None:
        """Go back to a checkpoint of step ``t``."""
        forms = self.form()["runs"]
        self._place([jax.tree.map(padded_like, run, like) for run, like in zip(tree["runs"], forms, strict=True)])
        self.t = t
        self.failures = {
            int(run): f"seed {self.seeds[run]} had failed before step {t}"
            for run in np.flatnonzero(np.asarray(tree["failed"]))
        }
        self.restore_kept(t, tree)

    def _place(self, runs: Sequence[RunState]) -> None:
        """Put runs into the groups, on their devices."""
        for index, group in enumerate(self.groups):
            part = [runs[min(index * group.size + i, len(runs) - 1)] for i in range(group.size)]
            stacked = jax.tree.map(lambda old, *new: jax.device_put(jnp.stack(new), old.sharding), group.runs, *part)
            self.groups[index] = Population(group.agents, stacked)

    def standing(self) -> Standing:
        """Where the training of its only run stands."""
        (run,) = _unstacked([group.runs for group in self.groups], 1)
        before, horizon = self.plan.before or 0, self.plan.horizon or self.plan.steps
        return Standing(run.agent, self.t, before, horizon, (run.env, run.obs), 0, self.history.state())

    def _go_on(self, start: Standing) -> None:
        fresh = take_run(self.groups[0].runs, 0)
        env, obs = (fresh.env, fresh.obs) if start.world is None else start.world
        self._place([RunState(start.state_for(self.fleet.env.spec.copies), env, obs, fresh.key)])
        self.t = start.t
        if start.history is not None:
            self.history.restore(start.t, start.history)


def fit_to(form: Any, manifest: Manifest) -> Any:
    """The form of a checkpoint, from the full form of a training: replays cut, the history as long as it was."""
    lengths = {
        leaf.path.removeprefix("['history']['").removesuffix("']"): leaf.form()
        for leaf in manifest.leaves
        if leaf.path.startswith("['history']['")
    }
    fitted = {**form, "history": lengths}
    if not any(leaf.path.startswith("['best']") for leaf in manifest.leaves):
        fitted.pop("best", None)
    return filled_part(fitted, manifest.step or 0)


def chunks_together(
    trainings: Sequence[Training], target: int | None = None, end: int | None = None
) -> Iterator[list[Progress]]:
    """Advance trainings that share an environment and a plan side by side, see `Training.chunks`.

    On accelerators one program serves all, whatever their agents are. There the last bits of a run depend on what it is
    batched with, as they do on the number of runs.
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
