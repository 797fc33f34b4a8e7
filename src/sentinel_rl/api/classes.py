"""The classes of the library's agents, and the one of a name."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from sentinel_rl.agents.registry import agent_kind
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.api.base import REPORT_OPTIONS, Learner, with_measures
from sentinel_rl.envs.handle import EnvLike
from sentinel_rl.errors import SentinelWarning
from sentinel_rl.explanation import Explanation
from sentinel_rl.risk import Expectation, RiskMeasure
from sentinel_rl.training.policy import load_policy


class Sentinel(Learner):
    """SENTINEL-K on an environment; the arguments are those of `Learner`.

    Its options are those of `sentinel_rl.agents.options.make_sentinel`: ``k``, ``aleatory``, ``epistemic``, ``lam``,
    ``preset``, ``reading``, ...

    Example:
        >>> import numpy as np
        >>> agent = Sentinel("MlpPolicy", "CartPole-v1", k=2, hidden=(8,), capacity=400, aleatory="cvar:0.25")
        >>> agent.learn(400).num_timesteps
        400
        >>> action, _ = agent.predict(np.zeros(4), deterministic=True)
        >>> agent.assess(np.zeros(4)).probs.shape
        (2, 2, 51)
    """

    kind = "sentinel"

    def __init__(self, policy: str, env: EnvLike, seed: int | None = 0, **options: Any):
        super().__init__(policy, env, seed, **options)
        agent = cast(SentinelAgent, self.agent)
        if agent.k == 1 and not isinstance(agent.epistemic, Expectation):
            warnings.warn(
                "with k=1 members cannot disagree: epistemic risk has no effect", SentinelWarning, stacklevel=2
            )

    def assess(self, observation: Any) -> Explanation:
        """Explain the decision at one observation."""
        return cast(Explanation, super().assess(observation))

    def with_risk(self, aleatory: str | RiskMeasure | None = None, epistemic: str | RiskMeasure | None = None) -> Self:
        """The same trained agent under other risk measures; nothing is trained again."""
        options = with_measures(self.options, aleatory=aleatory, epistemic=epistemic)
        return self._copy(options=options, agent=self._make_agent(options))


class CDQN(Learner):
    """The categorical DQN on an environment; the arguments are those of `Learner`.

    Its options are those of `sentinel_rl.agents.cdqn.make_cdqn`.

    Example:
        >>> import numpy as np
        >>> print(CDQN("MlpPolicy", "CartPole-v1", hidden=(8,)).assess(np.zeros(4)).note)
        aleatory only: one network cannot disagree with itself, so nothing is told of what it does not know
    """

    kind = "cdqn"


class VDQN(Learner):
    """VDQN on an environment; the arguments are those of `Learner`.

    Its options are those of `sentinel_rl.agents.vdqn.make_vdqn`.
    """

    kind = "vdqn"


class VDQNCVaR(VDQN):
    """VDQN that maximises CVaR over its posterior, with the options of `sentinel_rl.agents.vdqn.make_vdqn_cvar`."""

    kind = "vdqn-cvar"


class UADQN(Learner):
    """UA-DQN on an environment; the arguments are those of `Learner`.

    Its options are those of `sentinel_rl.agents.uadqn.make_uadqn`.
    """

    kind = "uadqn"


class Random(Learner):
    """A policy that learns nothing, random or always the same action; the options are those of `make_random`."""

    kind = "random"


LEARNERS: Mapping[str, type[Learner]] = {each.kind: each for each in (Sentinel, CDQN, VDQN, VDQNCVaR, UADQN, Random)}


def learner_class(kind: str) -> type[Learner]:
    """The class of a registered agent; one of the user's own gets a class that is made here.

    Raises:
        UsageError: for an unknown name.
    """
    agent_kind(kind)
    return LEARNERS.get(kind) or type(kind, (Learner,), {"kind": kind, "__doc__": f"The agent {kind!r}."})


def load_agent(path: str | Path, env: EnvLike = None, **settings: Any) -> Learner:
    """Load a saved agent of any kind, with the arguments of `Learner.load`."""
    reporting = {name: settings.pop(name) for name in REPORT_OPTIONS if name in settings}
    saved = load_policy(path, **settings)
    return learner_class(saved.kind).from_saved(saved, str(path), env, **reporting)
