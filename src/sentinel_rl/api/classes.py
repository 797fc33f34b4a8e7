"""The familiar classes: every agent with the methods that users of reinforcement learning libraries know."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from sentinel_rl.api.base import Learner
from sentinel_rl.errors import IncompatibleError, SentinelWarning
from sentinel_rl.explanation import Estimates, Explanation, explain
from sentinel_rl.risk import Expectation, RiskMeasure
from sentinel_rl.storage.archive import read_archive_manifest
from sentinel_rl.training.environment import WorldLike
from sentinel_rl.training.schedule import make_plan

__all__ = ["CDQN", "LEARNERS", "UADQN", "VDQN", "Learner", "Random", "Sentinel", "VDQNCVaR", "load_agent", "make_plan"]


class Sentinel(Learner):
    """SENTINEL-K on an environment; the arguments are those of `Learner`.

    Its options are those of `make_sentinel`: ``k``, ``aleatory``, ``epistemic``, ``lam``, ``preset``, ...

    Example:
        >>> agent = Sentinel("MlpPolicy", "CartPole-v1", k=2, hidden=(16,), aleatory="cvar:0.25", seed=0)
        >>> agent.learn(400).num_timesteps
        400
        >>> action, _ = agent.predict(np.zeros(4), deterministic=True)
        >>> agent.assess(np.zeros(4)).probs.shape
        (2, 2, 51)
    """

    kind = "sentinel"

    def __init__(self, policy: str, env: WorldLike, seed: int = 0, **options: Any):
        super().__init__(policy, env, seed, **options)
        if self.agent.k == 1 and not isinstance(self.agent.epistemic, Expectation):
            warnings.warn(
                "with k=1 members cannot disagree: epistemic risk has no effect", SentinelWarning, stacklevel=2
            )

    def assess(self, observation: Any) -> Explanation:
        """Explain the decision at one observation."""
        explanation: Explanation = super().assess(observation)
        return explanation

    def with_risk(self, aleatory: str | RiskMeasure | None = None, epistemic: str | RiskMeasure | None = None) -> Self:
        """The same trained agent under other risk measures; nothing is trained anew."""
        changed = {"aleatory": aleatory, "epistemic": epistemic}
        options = self.options | {name: value for name, value in changed.items() if value is not None}
        return self._copy(options=options, agent=self._make_agent(options))

    def _explain(self, obs: np.ndarray) -> Explanation:
        return explain(self.agent, self.state.online, obs, self.place.first_action)


class CDQN(Learner):
    """The categorical DQN on an environment; the arguments are those of `Learner`, the options of `make_cdqn`.

    Example:
        >>> print(CDQN("MlpPolicy", "CartPole-v1", hidden=(8,)).assess(np.zeros(4)).note)
        aleatory only: one network cannot disagree with itself, so nothing is told of what it does not know
    """

    kind = "cdqn"

    def _explain(self, obs: np.ndarray) -> Explanation:
        note = "aleatory only: one network cannot disagree with itself, so nothing is told of what it does not know"
        return explain(self.agent, self.state.online, obs, self.place.first_action, note)


class VDQN(Learner):
    """VDQN on an environment; the arguments are those of `Learner`, the options of `make_vdqn`."""

    kind = "vdqn"

    def _explain(self, obs: np.ndarray) -> Estimates:
        told, draws = _draws_of(self.agent, self.state, obs)
        note = (
            "epistemic_sd is the spread of the posterior's draws; aleatory_sd is the model's constant noise: "
            "how the return scatters is not learnt"
        )
        measure = f"{self.agent.risk} over draws of the return"
        return Estimates(told, np.asarray(draws), measure, note, self.place.first_action)


class VDQNCVaR(VDQN):
    """VDQN that maximises CVaR over its posterior; the options are those of `make_vdqn_cvar`."""

    kind = "vdqn-cvar"


class UADQN(Learner):
    """UA-DQN on an environment; the arguments are those of `Learner`, the options of `make_uadqn`."""

    kind = "uadqn"

    def _explain(self, obs: np.ndarray) -> Estimates:
        note = (
            "epistemic_sd and aleatory_sd are estimates from two posterior networks: how far they are apart, and how "
            "much they spread alike; there are no laws of the return"
        )
        neutral = self.agent.evaluation == "neutral"
        measure = "the mean" if neutral else f"mean - {float(self.agent.aversion):g} aleatory_sd"
        return Estimates(_account(self.agent, self.state, obs), None, measure, note, self.place.first_action)


class Random(Learner):
    """A policy that learns nothing; the options are those of `make_random`."""

    kind = "random"

    def _explain(self, obs: np.ndarray) -> Estimates:
        note = "nothing is learnt and nothing is known"
        told = _account(self.agent, self.state, obs)
        return Estimates(told, None, "nothing", note, self.place.first_action)


LEARNERS: Mapping[str, type[Learner]] = {each.kind: each for each in (Sentinel, CDQN, VDQN, VDQNCVaR, UADQN, Random)}


def load_agent(path: str | Path, env: WorldLike = None, **settings: Any) -> Learner:
    """Load a saved agent of any kind, with the arguments of `Learner.load`."""
    kind = read_archive_manifest(path).about.get("agent", "sentinel")
    if kind not in LEARNERS:
        raise IncompatibleError(f"{path} holds an agent of the unknown kind {kind!r}: a newer version may know it")
    return LEARNERS[kind].load(path, env, **settings)


@jax.jit
def _account(agent: Any, state: Any, obs: Any) -> Any:
    return agent.account(state, obs)


@jax.jit
def _draws_of(agent: Any, state: Any, obs: Any) -> Any:
    return agent.account(state, obs), agent.posterior_values(state, obs)
