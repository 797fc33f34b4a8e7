"""The unit of a study: one agent on one environment for a list of seeds, and how its final policies are examined."""

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from sentinel_rl._checks import is_whole
from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.options import require_known
from sentinel_rl.agents.registry import agent_kind, make_agent, require_agent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.registry import make_jax_env
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import digest, identity, plain, restored
from sentinel_rl.training.identity import env_identity, run_identity
from sentinel_rl.training.population_evaluation import Evaluation
from sentinel_rl.training.schedule import LARGEST_STEP, PLAN_OPTIONS, Plan, make_plan, require_seeds

# Part of every id: to be raised when the same configuration comes to mean another computation.
MEANING = 2

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Cell:
    """A pure function of its values: its result depends on nothing else.

    The seeds are trained side by side, and their list is part of the cell. Other versions of JAX or another kind of
    device may change the last bits of its result, and so, in chaos, any of them.

    Args:
        agent: the name of a registered agent, or an agent.
        env: the name of a JAX environment, or one.
        steps: environment steps of a run.
        seeds: one run each.
        options: of the agent and of the plan (``learn_every``, ``warmup``, ``epsilon_*``), risk measures as text.
        env_settings: of the environment.
        evaluations: of the final policies.
        points: of the curves.
        label: what tables call it; the id does not depend on it.

    Example:
        >>> cell = Cell("sentinel", "CartPole-v0", 1_000, (0, 1, 2), {"k": 2, "lam": float("inf")})
        >>> cell == Cell.from_json(cell.to_json()), cell.id == dataclasses.replace(cell, label="two").id
        (True, True)
    """

    agent: str | Agent
    env: str | Env
    steps: int
    seeds: tuple[int, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()
    points: int = 200
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(require_seeds(self.seeds)))
        object.__setattr__(self, "evaluations", tuple(self.evaluations))
        for name in ("options", "env_settings"):
            object.__setattr__(self, name, restored(plain(getattr(self, name), name)))
        self._check()

    def _check(self) -> None:
        if isinstance(self.agent, str):
            require_known(self.options, (*agent_kind(self.agent).options, *PLAN_OPTIONS))
        else:
            require_known(self.options, PLAN_OPTIONS)
        if not is_whole(self.steps, 1, LARGEST_STEP) or not is_whole(self.points, 1):
            raise UsageError(f"a cell needs at least 1 step and 1 point, got {self.steps!r} and {self.points!r}")
        names = [evaluation.name for evaluation in self.evaluations]
        if len(set(names)) < len(names):
            raise UsageError(f"the evaluations of a cell need different names, got {', '.join(names)}")

    @functools.cached_property
    def id(self) -> str:
        """The hash of all that determines the result: every field of agent, environment and plan, defaults included.

        A cell whose options cannot be has the hash of the options as they were typed.
        """
        try:
            made = self.resolved()
        except UsageError:
            made = {name: value for name, value in self.to_json().items() if name != "label"}
        return digest({"meaning": MEANING, **made})

    def resolved(self) -> dict[str, Any]:
        """The identity of the cell.

        Raises:
            UsageError: for options that cannot be, or an agent or environment that cannot be named in a file.
        """
        env = self.make_env()
        agent = self.make_agent(env)
        handle, plan = resolve_env(env), self.make_plan(agent)
        worlds = {
            str(evaluation.env_settings): env_identity(resolve_env(self.make_env(evaluation.env_settings)))
            for evaluation in {str(one.env_settings): one for one in self.evaluations}.values()
        }
        evaluations = [
            {
                "name": evaluation.name,
                "episodes": evaluation.episodes,
                "seed": evaluation.seed,
                "env": worlds[str(evaluation.env_settings)],
                **({"acting": dict(evaluation.acting)} if evaluation.acting else {}),
                **({"keeps": list(evaluation.keeps)} if evaluation.keeps is not None else {}),
            }
            for evaluation in self.evaluations
        ]
        measured = {"points": self.points, "gamma": env.spec.gamma, "evaluations": evaluations}
        return {**run_identity([agent], handle, plan, self.seeds), **measured}

    @property
    def agent_name(self) -> str:
        """The name of the agent, or of its class."""
        return self.agent if isinstance(self.agent, str) else type(self.agent).__name__

    @property
    def name(self) -> str:
        """The label, or what tells the cell apart for people where there is none."""
        env = self.env if isinstance(self.env, str) else self.env.spec.name
        return self.label or f"{self.agent_name} on {env}, {len(self.seeds)} runs of {self.steps} steps"

    def to_json(self) -> dict[str, Any]:
        """The values as JSON knows them; an agent or environment that is no name is described."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["evaluations"] = [vars(evaluation) for evaluation in self.evaluations]
        for name in ("agent", "env"):
            fields[name] = fields[name] if isinstance(fields[name], str) else identity(fields[name], name)
        return {name: plain(value, name) for name, value in fields.items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The cell that `to_json` wrote.

        Raises:
            UsageError: for a cell whose agent or environment has no name.
        """
        for name in ("agent", "env"):
            if not isinstance(content[name], str):
                raise UsageError(
                    f"the {name} of this cell is {content[name].get('class')}, which has no name: register it, and use "
                    "the name where cells are written to files or sent to other machines"
                )
        evaluations = tuple(Evaluation(**entry) for entry in content["evaluations"])
        return cls(**{**content, "seeds": tuple(content["seeds"]), "evaluations": evaluations})

    def make_env(self, changes: Mapping[str, Any] = _NOTHING) -> Env:
        """The environment.

        Raises:
            UsageError: for one that is unknown, impossible, or not there in JAX.
        """
        if not isinstance(self.env, str):
            if self.env_settings or changes:
                raise UsageError(f"settings {sorted({**self.env_settings, **changes})} need an environment by name")
            return self.env
        try:
            env = make_jax_env(self.env, **{**self.env_settings, **changes})
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.env}: {error}") from error
        if env is None:
            raise UsageError(f"{self.env} is stepped from Python, and a study needs an environment in JAX")
        return env

    def make_agent(self, env: Env, changes: Mapping[str, Any] = _NOTHING) -> Agent:
        """The agent for an environment, with changes of its options.

        Raises:
            UsageError: for options that cannot be.
        """
        if not isinstance(self.agent, str):
            if changes:
                raise UsageError(f"options {sorted(changes)} to act with need an agent by name")
            return require_agent(self.agent)
        own = {name: value for name, value in self.options.items() if name not in PLAN_OPTIONS}
        return make_agent(self.agent, env.spec, **{**own, **changes})

    def make_plan(self, agent: Agent) -> Plan:
        """When the runs learn and explore."""
        return make_plan(self.steps, agent.plan_defaults(self.steps), self.options)
