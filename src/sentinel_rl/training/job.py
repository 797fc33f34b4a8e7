"""What a training is asked for: agents, environment, plan and evaluations, resolved from what a caller gives."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from sentinel_rl._checks import is_number, is_whole
from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import make_agent, named_options, require_agent
from sentinel_rl.envs.handle import EnvHandle, EnvLike, require_sizes, resolve_env
from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.risk import RiskMeasure
from sentinel_rl.storage.configuration import plain, restored
from sentinel_rl.storage.run_folder import status
from sentinel_rl.storage.validation import from_file
from sentinel_rl.training import legacy
from sentinel_rl.training.evaluation import EVALUATION_SEED, MOST_EPISODES
from sentinel_rl.training.identity import env_identity, run_identity
from sentinel_rl.training.run_notes import MOST_POINTS, check_request, plan_of
from sentinel_rl.training.schedule import PLAN_OPTIONS, Plan, make_plan, require_seed, require_steps
from sentinel_rl.training.standing import Standing


@dataclasses.dataclass(frozen=True)
class Job:
    """A training as `train` was asked for it; the arguments are those of `train`, resolved.

    With `start`, where it stood before, the training of one seed goes on.
    """

    agents: list[Agent]
    handle: EnvHandle
    plan: Plan
    seeds: list[int]
    gamma: float
    points: int = 200
    evaluate: int = 0
    evaluate_every: int | None = None
    evaluation_env: EnvLike = None
    evaluation_seed: int = EVALUATION_SEED
    reports: bool = True
    strict: bool = False
    kind: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    start: Standing | None = None

    def __post_init__(self) -> None:
        every = self.evaluate_every
        if not is_whole(self.evaluate, 0, MOST_EPISODES) or (every is not None and not is_whole(every, 1)):
            raise UsageError(
                f"evaluate is a number of episodes (at most {MOST_EPISODES}) and evaluate_every one of steps, got "
                f"{self.evaluate!r} and {every!r}"
            )
        if not is_whole(self.points, 1, MOST_POINTS):
            raise UsageError(f"points must be a whole number from 1 to {MOST_POINTS}, got {self.points!r}")
        if not is_number(self.gamma, 0, 1):
            raise UsageError(f"the discount of evaluations must be a number from 0 to 1, got {self.gamma!r}")
        require_seed(self.evaluation_seed)
        if self.evaluate_every is not None and self.evaluate == 0:
            raise UsageError(f"evaluate_every={self.evaluate_every} needs episodes: give evaluate=100, for example")

    def configuration(self) -> dict[str, Any]:
        """The identity of the runs, as their folder keeps it."""
        env = None if self.evaluation_env is None else env_identity(resolve_env(self.evaluation_env))
        evaluation = {
            "episodes": self.evaluate,
            "every": self.evaluate_every,
            "seed": self.evaluation_seed,
            "env": env,
        }
        judged = {"gamma": self.gamma, "points": self.points, "evaluation": evaluation if self.evaluate else None}
        return {**run_identity(self.agents, self.handle, self.plan, self.seeds), **judged}

    def about(self) -> dict[str, Any]:
        """What a folder notes beside the identity: names and options, from which it can be made again."""
        named = self.kind, dict(self.options)
        if self.kind is None and (found := named_options(self.agents[0])) is not None:
            named = found[0], {**found[1], **self.options}
        written = {name: _writable(value) for name, value in named[1].items()}
        request = {"env": self.handle.name or self.handle.spec.name, "steps": self.plan.steps, "seeds": self.seeds}
        extended = {} if self.plan.horizon is None else {"horizon": self.plan.horizon}
        made = {"env_kwargs": plain(self.handle.settings), "wrappers": list(self.handle.wrappers)}
        made = {name: what for name, what in made.items() if what}
        return {"agent": named[0], "options": written, **request, **extended, **made}


def trainable(env: EnvLike) -> EnvHandle:
    """An environment to train in.

    Raises:
        UsageError: where there is none.
    """
    handle = resolve_env(env)
    if handle.env is None:
        raise UsageError(f"training needs an environment, got {env!r}: give a name, a Gymnasium or a JAX environment")
    return handle


def agents_of(
    given: str | Agent | Sequence[Agent], handle: EnvHandle, count: int, options: Mapping[str, Any]
) -> tuple[list[Agent], str | None, dict[str, Any]]:
    """The agents of the runs, their name and their options, where they are made by name."""
    own = {name: value for name, value in options.items() if name not in PLAN_OPTIONS}
    if isinstance(given, str):
        return [make_agent(given, handle.spec, **own)] * count, given, own
    if own:
        raise UsageError(
            f"unknown option {next(iter(own))}: options of the agent go with its name, train('sentinel', env, k=4)"
        )
    several = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(several) != count:
        raise UsageError(f"there are {len(several)} agents for {count} seeds: give one, or one per seed")
    return [require_agent(agent) for agent in several], None, {}


def checked_plan(steps: int, agent: Agent, options: Mapping[str, Any], horizon: int | None = None) -> Plan:
    """The plan of a training from options; one in which nothing is learnt is warned about.

    Args:
        steps: of the training.
        agent: whose defaults are used.
        options: those of the plan are used.
        horizon: steps that the schedules were planned for, where a training is extended beyond them.
    """
    defaults = agent.plan_defaults(require_steps(steps) if horizon is None else horizon)
    plan = make_plan(steps, defaults, options, horizon)
    if plan.updates(plan.steps) == 0 and defaults.get("warmup"):  # an agent without a warm-up learns nothing
        warnings.warn(
            f"0 updates would be made in {steps} steps: train longer than the warm-up of {plan.warmup}, "
            f"or learn more often",
            SentinelWarning,
            stacklevel=3,
        )
    return plan


def extended(job: Job, folder: str | Path) -> Job:
    """The job, with the schedules of the run in a folder where it goes on with that one beyond its end.

    Raises:
        UsageError: for a run without checkpoints.
    """
    saved = status(folder).configuration
    if saved is None:
        return job
    steps, horizon = plan_of(upgraded(job, saved), folder)
    if job.plan.steps < steps or (job.plan.steps == steps and horizon is None):
        return job
    if isinstance(job.handle.env, VectorEnv):
        raise UsageError(
            f"{folder} holds a run of {steps} steps of a vector of environments, of which there are no checkpoints: it "
            "cannot be extended. Give another folder, or overwrite it"
        )
    plan = checked_plan(job.plan.steps, job.agents[0], job.options, horizon or steps)
    return dataclasses.replace(job, plan=plan)


def upgraded(job: Job, saved: dict[str, Any]) -> Mapping[str, Any]:
    """The configuration of a run folder of version 0.1 in the form of this one."""
    if not legacy.is_legacy(saved):
        return saved
    with from_file("the configuration of version 0.1", "run"):
        asked = legacy.request(saved)
        check_request(asked)
    options = restored(asked["options"])
    handle = resolve_env(asked["env"])
    own = {name: value for name, value in options.items() if name not in PLAN_OPTIONS}
    agents = [make_agent(asked["agent"], handle.spec, **own)] * len(asked["seeds"])
    plan = make_plan(asked["steps"], agents[0].plan_defaults(asked["steps"]), options)
    # What version 0.1 did not know is no difference.
    return {**job.configuration(), **run_identity(agents, handle, plan, asked["seeds"])}


def evaluation_handle(job: Job) -> EnvHandle:
    """The environment to evaluate in: the one to train in is in the middle of an episode, unless it is a JAX one."""
    if job.evaluation_env is not None:
        handle = resolve_env(job.evaluation_env)
        require_sizes(handle.spec, job.handle.spec, "the agent")
        return handle
    if job.handle.is_jax:
        return job.handle
    spec = getattr(job.handle.env, "spec", None)
    if spec is None:
        raise UsageError(f"{job.handle.spec.name} cannot be made a second time to evaluate in: give evaluation_env")
    return dataclasses.replace(job.handle, env=_made_again(spec))


# What `gymnasium.make_vec` notes beside the settings of one environment.
_OF_A_VECTOR = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers", "max_episode_steps")


def _made_again(spec: Any) -> "gymnasium.Env[Any, Any]":
    """One environment of a Gymnasium spec, also of that of a vector."""
    own = {name: value for name, value in spec.kwargs.items() if name not in _OF_A_VECTOR}
    env = gymnasium.make(dataclasses.replace(spec, kwargs=own))
    for wrap in spec.kwargs.get("wrappers", ()):
        env = wrap(env)
    return env


def _writable(value: Any) -> Any:
    """An option as a file holds it; one that it cannot hold is described."""
    try:
        return plain(str(value) if isinstance(value, RiskMeasure) else value)
    except UsageError:
        return repr(value)
