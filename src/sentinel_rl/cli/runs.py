"""A run on disk, for the commands that look at it: its configuration, its agents, its training."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from sentinel_rl.api.classes import LEARNERS, Learner, load_agent
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.storage.configuration import restored
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training.loop import Training
from sentinel_rl.training.schedule import Plan, make_plan

# What `sentinel train`, `eval` and `frontier` write beside what every run folder has.
ARTIFACTS = (
    "checkpoints/seed_*",
    "seed_*.monitor.csv",
    "policy_seed_*.zip",
    "eval.json",
    "eval.csv",
    "eval_*",
    "frontier.*",
    "assess.*",
)


@dataclasses.dataclass(frozen=True)
class Run:
    """A run by its folder.

    Args:
        path: the folder.
        configuration: environment, steps, seeds and options, as they were saved.
        failed: the seeds whose runs failed, known once the others are finished.
    """

    path: Path
    configuration: dict[str, Any]
    failed: frozenset[int] = frozenset()

    @property
    def seeds(self) -> list[int]:
        """The seeds whose runs did not fail, in order."""
        return [seed for seed in self.configuration["seeds"] if seed not in self.failed]

    @property
    def kind(self) -> str:
        """The kind of the agents; the first runs had only one."""
        return str(self.configuration.get("agent", "sentinel"))

    def policy_file(self, seed: int) -> Path:
        """Where the policy of a seed is."""
        return policy_file(self.path, seed)

    def policies(self, env: str | None = None) -> list[Learner]:
        """The trained agents, one per seed, in their environment or another one of its sizes.

        Raises:
            UsageError: when the run is not finished.
        """
        missing = [seed for seed in self.seeds if not self.policy_file(seed).exists()]
        if missing:
            raise UsageError(
                f"{self.path} has no policy of seed {', '.join(map(str, missing))}: "
                f"the run is not finished, give its `sentinel train` command again"
            )
        return [load_agent(self.policy_file(seed), env=env or self.configuration["env"]) for seed in self.seeds]


def policy_file(folder: Path, seed: int) -> Path:
    """Where the policy of a seed is written."""
    return folder / f"policy_seed_{seed}.zip"


def read_run(path: Path) -> Run:
    """Open a run to look at it.

    Raises:
        UsageError: when there is none.
    """
    found = status(path)
    if found.configuration is None or "env" not in found.configuration:
        raise UsageError(f"{path} holds no training run: give the folder that `sentinel train --out` was given")
    lines = (found.result or {}).get("seeds", [])
    return Run(path, found.configuration, frozenset(line["seed"] for line in lines if "failed" in line))


def make_agent(configuration: dict[str, Any]) -> Learner:
    """The untrained agent of a configuration, with its first seed."""
    options = restored(configuration["options"])
    kind = LEARNERS[configuration.get("agent", "sentinel")]
    return kind("MlpPolicy", configuration["env"], seed=configuration["seeds"][0], **options)


def plan_of(agent: Learner, configuration: dict[str, Any]) -> Plan:
    """The course of a configuration."""
    return make_plan(configuration["steps"], agent.agent.samples, agent.options)


def make_training(agent: Learner, configuration: dict[str, Any]) -> Training:
    """The compiled training of a configuration, at its beginning."""
    env, seeds, plan = jax_env(agent), configuration["seeds"], plan_of(agent, configuration)
    if env is None:
        raise UsageError(f"{configuration['env']} has no JAX form, which this needs")
    if plan.learn_times.size == 0:
        warnings.warn(
            f"0 updates would be made in {plan.steps} steps: train longer than the warm-up of {plan.warmup}",
            SentinelWarning,
            stacklevel=2,
        )
    return Training([agent.agent] * len(seeds), env, plan, seeds)


def jax_env(agent: Learner) -> Env | None:
    """The environment of an agent where it is compiled with it, None where it is stepped from Python."""
    return None if agent.place.stepped_from_python else agent.place.env
