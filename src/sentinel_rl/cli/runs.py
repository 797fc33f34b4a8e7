"""A run or a saved policy, for the commands that look at it: what was asked for, its agents, its training."""

import dataclasses
from pathlib import Path
from typing import Any

from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.api import Learner, load_agent
from sentinel_rl.cli.environments import EnvRequest, require_trust
from sentinel_rl.envs.handle import EnvHandle, resolve_env
from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import restored
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.policy import load_policy, policy_file, policy_path, shipped_policies
from sentinel_rl.training.run_notes import read_notes
from sentinel_rl.training.schedule import PLAN_OPTIONS, make_plan


@dataclasses.dataclass(frozen=True)
class Run:
    """A run by its folder, or one policy by its file.

    Args:
        path: the folder, or the file.
        request: environment, agent, steps, seeds and options, as they were asked for.
        points: of its learning curves.
        gamma: discount of its returns; the task's own when None.
        failed: the seeds whose runs failed, known once the others are finished.
        trust: whether code that it names may be imported.
    """

    path: Path
    request: dict[str, Any]
    points: int = 200
    gamma: float | None = None
    failed: frozenset[int] = frozenset()
    trust: bool = False

    @property
    def is_file(self) -> bool:
        """Whether this is one policy, which has no folder to write results into."""
        return self.path.is_file()

    @property
    def env(self) -> str:
        """The name of the environment."""
        return str(self.request["env"])

    @property
    def seeds(self) -> list[int]:
        """The seeds whose runs did not fail, in order."""
        return [seed for seed in self.request["seeds"] if seed not in self.failed]

    @property
    def kind(self) -> str:
        """The name of the agent."""
        return str(self.request["agent"])

    def environment(self, other: str | None = None) -> EnvHandle:
        """The environment with its settings and wrappers, or another one by its name.

        Raises:
            UsageError: when it is made of code that the user has not said to trust.
        """
        if other is not None:
            return resolve_env(other)
        request = EnvRequest(self.env, self.request.get("env_kwargs", {}), tuple(self.request.get("wrappers", ())))
        return require_trust(request, self.path, self.trust).make()

    def policies(self, env: str | None = None) -> list[Learner]:
        """The trained agents, one per seed, in their environment or another one of its sizes.

        Raises:
            UsageError: when the run is not finished.
        """
        if self.is_file:
            return [load_agent(self.path, env=self.environment(env))]
        missing = [seed for seed in self.seeds if not policy_file(self.path, seed).exists()]
        if missing:
            raise UsageError(
                f"{self.path} has no policy of seed {', '.join(map(str, missing))}: "
                f"the run is not finished, give its `sentinel train` command again"
            )
        handle = self.environment(env)
        return [load_agent(policy_file(self.path, seed), env=handle) for seed in self.seeds]

    def policy(self, index: int, env: str | None = None) -> Learner:
        """The trained agent of one seed, counted from 0.

        Raises:
            UsageError: when there is no such seed, or the run is not finished.
        """
        if not 0 <= index < len(self.seeds):
            raise UsageError(f"--seed-index {index}: {self.path} has {len(self.seeds)} seeds, counted from 0")
        return self.policies(env)[index]

    def training(self) -> Training:
        """The compiled training of the run, at its beginning.

        Raises:
            UsageError: for an environment that is stepped from Python.
        """
        if self.is_file:
            raise UsageError(f"{self.path} is a policy, and this needs the folder of its training")
        handle, options = self.environment(), restored(self.request["options"])
        if not handle.is_jax:
            raise UsageError(f"{self.env} has no JAX form, which this needs")
        own = {name: value for name, value in options.items() if name not in PLAN_OPTIONS}
        agent, seeds = make_agent(self.kind, handle, **own), self.request["seeds"]
        steps, horizon = self.request["steps"], self.request.get("horizon")
        plan = make_plan(steps, agent.plan_defaults(horizon or steps), options, horizon)
        return Training([agent] * len(seeds), handle.env, plan, seeds, self.points, self.gamma)


def read_run(path: Path, trust: bool = False) -> Run:
    """Open a run to look at it, one of version 0.1 with the defaults of that version; or a saved policy.

    Args:
        path: the folder of a run, the file of a policy, or the name of a policy that comes with the library.
        trust: whether code that it names, such as wrappers, may be imported.

    Raises:
        UsageError: when there is none.
        CorruptError: for a folder or a file that tells what no training has.
    """
    file = policy_path(path)
    if file.is_file():
        saved = load_policy(file)
        request = {"env": saved.handle.spec.name, "agent": saved.kind, "options": saved.options, "seeds": [saved.seed]}
        return Run(file, {**request, "steps": saved.steps}, trust=trust)
    notes = read_notes(path)
    if notes is None:
        needs_no_training = str(path) in fixed_names()
        hint = f", or an environment with --env for the policy {path}" if needs_no_training else ""
        raise UsageError(
            f"{path} holds no training run: give the folder that `sentinel train --out` was given, the file of a "
            f"policy, or one of {', '.join(shipped_policies())}{hint}"
        )
    return Run(path, *notes, trust)
