"""The unit of a study: one agent on one environment for a list of seeds, and how its final policies are examined."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from sentinel_rl.agents.agent import Accountable
from sentinel_rl.agents.catalog import AGENTS, make_agent
from sentinel_rl.agents.options import require_known
from sentinel_rl.envs.registry import make_env
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import digest, plain, restored
from sentinel_rl.training.population_evaluation import Evaluation
from sentinel_rl.training.schedule import COURSE_OPTIONS, Plan, make_plan

# Part of every id: to be raised when the same configuration comes to mean another computation.
MEANING = 1

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Cell:
    """A pure function of its values, which are all plain: its result depends on nothing else.

    The seeds are trained side by side, and their list is part of the cell. Other versions of JAX or another kind of
    device may change the last bits of its result, and so, in chaos, any of them.

    Args:
        agent: a name of `sentinel_rl.agents.catalog.AGENTS`.
        env: a name that `sentinel_rl.envs.registry.make_env` knows in JAX.
        steps: environment steps of a run.
        seeds: one run each.
        options: of the agent and of the course (``learn_every``, ``warmup``, ``epsilon_*``), risk measures as text.
        env_settings: of the environment.
        evaluations: of the final policies.
        points: of the curves.
        label: what tables call it; the id does not depend on it.

    Example:
        >>> cell = Cell("sentinel", "CartPole-v0", 1_000, (0, 1, 2), {"k": 2, "lam": float("inf")})
        >>> cell == Cell.from_json(cell.to_json()), cell.id == dataclasses.replace(cell, label="two").id
        (True, True)
    """

    agent: str
    env: str
    steps: int
    seeds: tuple[int, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()
    points: int = 200
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(int(seed) for seed in self.seeds))
        object.__setattr__(self, "evaluations", tuple(self.evaluations))
        for name in ("options", "env_settings"):
            object.__setattr__(self, name, restored(plain(getattr(self, name), name)))
        self._check()

    def _check(self) -> None:
        if self.agent not in AGENTS:
            raise UsageError(f"unknown agent {self.agent!r}: choose one of {', '.join(AGENTS)}")
        require_known(self.options, (*AGENTS[self.agent].options, *COURSE_OPTIONS))
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise UsageError(f"a cell needs seeds of at least 0, each once, got {self.seeds}")
        if self.steps < 1 or self.points < 1:
            raise UsageError(f"a cell needs at least 1 step and 1 point, got {self.steps} and {self.points}")
        names = [evaluation.name for evaluation in self.evaluations]
        if len(set(names)) < len(names):
            raise UsageError(f"the evaluations of a cell need different names, got {', '.join(names)}")

    @property
    def id(self) -> str:
        """The hash of all that determines the result."""
        return digest({"meaning": MEANING, **{key: value for key, value in self.to_json().items() if key != "label"}})

    @property
    def name(self) -> str:
        """The label, or what tells the cell apart for people where there is none."""
        return self.label or f"{self.agent} on {self.env}, {len(self.seeds)} runs of {self.steps} steps"

    def to_json(self) -> dict[str, Any]:
        """The values as JSON knows them."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["evaluations"] = [vars(evaluation) for evaluation in self.evaluations]
        return {name: plain(value, name) for name, value in fields.items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The cell that `to_json` wrote."""
        evaluations = tuple(Evaluation(**entry) for entry in content["evaluations"])
        return cls(**{**content, "seeds": tuple(content["seeds"]), "evaluations": evaluations})

    def make_env(self, changes: Mapping[str, Any] = _NOTHING) -> Env:
        """The environment.

        Raises:
            UsageError: for one that is unknown, impossible, or not there in JAX.
        """
        try:
            env = make_env(self.env, **{**self.env_settings, **changes})
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.env}: {error}") from error
        if env is None:
            raise UsageError(f"{self.env} is stepped from Python, and a study needs an environment in JAX")
        return env

    def make_agent(self, env: Env) -> Accountable:
        """The agent for an environment."""
        own = {name: value for name, value in self.options.items() if name not in COURSE_OPTIONS}
        return make_agent(self.agent, env.spec, **own)

    def make_plan(self, agent: Any) -> Plan:
        """The course of every run."""
        return make_plan(self.steps, agent.samples, self.options)
