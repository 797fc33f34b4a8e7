"""Knowing when not to act: an agent that hands a decision over to a fallback policy where its score is too high.

A score is a function ``score(agent, state, obs, key)`` of one decision, high where the agent should not be trusted.
"""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl._numerics import safe_sqrt
from sentinel_rl.agents.agent import Account, Diagnostics, best_action, greedy_in
from sentinel_rl.agents.frozen import FrozenWrapper
from sentinel_rl.belief import Belief
from sentinel_rl.envs.spec import Env
from sentinel_rl.errors import UsageError
from sentinel_rl.returns.distance import mean_wasserstein1
from sentinel_rl.risk import Composite, assess

Score = Callable[[Any, Any, Array, jax.Array], Float[Array, ""]]


def epistemic_penalty(agent: Any, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, ""]:
    """What ignorance costs the preferred action: additive minus composite risk, under the agent's own measures."""
    belief, composite = agent.belief(state, obs), agent.composite
    return penalty_of(belief, composite)[best_action(composite(belief))]


def penalty_of(belief: Belief, composite: Composite) -> Float[Array, " A"]:
    """What ignorance costs every action."""
    return assess(belief, composite.epistemic, composite.aleatory, composite.aggregate).epistemic_penalty


def disagreement(agent: Any, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, ""]:
    """The standard deviation over the members of the mean return that they expect of the preferred action.

    It needs no risk-averse measure: a neutral agent, whose penalty is always zero, disagrees with itself too.
    """
    belief = agent.belief(state, obs)
    return disagreement_of(belief)[best_action(agent.composite(belief))]


def disagreement_of(belief: Belief) -> Float[Array, " A"]:
    """The standard deviation over the members of the mean return of every action."""
    means = belief.members.mean()
    centre = jnp.sum(belief.weights * means, axis=0)
    return safe_sqrt(jnp.sum(belief.weights * (means - centre[None]) ** 2, axis=0))


def law_distance(agent: Any, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, ""]:
    """The mean Wasserstein-1 distance between two members' laws of the preferred action.

    Members whose laws differ may have the same mean. All members count the same: FTRL's weights, which prefer
    consensus, would hide the one that differs.
    """
    belief = agent.belief(state, obs)
    return mean_wasserstein1(belief.members)[best_action(agent.composite(belief))]


def at_random(agent: Any, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, ""]:
    """An even draw from [0, 1]: what a score must be better than."""
    return jax.random.uniform(key)


SCORES: Mapping[str, Score] = {
    "epistemic": epistemic_penalty,
    "disagreement": disagreement,
    "laws": law_distance,
    "random": at_random,
}


def find_score(name: str) -> Score:
    """The score of a name.

    Raises:
        UsageError: for an unknown one.
    """
    if name not in SCORES:
        raise UsageError(f"unknown score {name!r}: choose one of {', '.join(SCORES)}")
    return SCORES[name]


class Abstain(FrozenWrapper):
    """A trained agent that hands over to a fallback policy wherever its score exceeds a threshold.

    Its state is a pair: that of the agent, and that of the fallback.

    Args:
        agent: the one that acts as long as its score is low; the scores of this module need one with laws.
        fallback: any other policy, such as a rule, or one action always.
        threshold: the highest score at which the agent acts, see `sentinel_rl.scoring.threshold_at`. Infinity, the
            default, never hands over.
        score: of one decision; high means that the agent should not be trusted.

    Example:
        >>> import sentinel_rl as srl
        >>> learner = srl.Sentinel("MlpPolicy", "CartPole-v1", k=2, hidden=(8,))
        >>> left = srl.make_agent("constant", "CartPole-v1", action=0)
        >>> cautious = Abstain(learner.agent, left, threshold=0.5)
        >>> state = learner.state, left.init(learner.spec, jax.random.key(0))
        >>> played = srl.evaluate(cautious, state, "CartPole-v1", episodes=3)
    """

    agent: Any
    fallback: Any
    threshold: float | Array = float("inf")
    score: Score = eqx.field(static=True, default=epistemic_penalty)

    def hands_over(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Bool[Array, ""]:
        """Whether the fallback decides at an observation."""
        return self.score(self.agent, state[0], obs, key) > self.threshold

    def greedy(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Int[Array, ""]:
        """Choose as the agent or as the fallback does."""
        score_key, agent_key, fallback_key = jax.random.split(key, 3)
        own = self.agent.greedy(state[0], obs, agent_key)
        other = self.fallback.greedy(state[1], obs, fallback_key)
        return jnp.where(self.hands_over(state, obs, score_key), other, own)

    def act(self, state: Any, obs: Float[Array, " obs"], epsilon: Float[Array, ""], key: jax.Array) -> Int[Array, ""]:
        """Choose without exploring."""
        return self.greedy(state, obs, key)

    def choose_in(
        self, state: Any, env: Env, env_state: Any, obs: Float[Array, " obs"], key: jax.Array
    ) -> Int[Array, ""]:
        """Choose in a JAX environment, whose true state a fallback that plans needs."""
        score_key, agent_key, fallback_key = jax.random.split(key, 3)
        own = greedy_in(self.agent, state[0], env, env_state, obs, agent_key)
        other = greedy_in(self.fallback, state[1], env, env_state, obs, fallback_key)
        return jnp.where(self.hands_over(state, obs, score_key), other, own)

    @property
    def stochastic(self) -> bool:
        """Whether one of the two draws its actions, or the score is drawn."""
        return bool(self.agent.stochastic or self.fallback.stochastic or self.score is at_random)

    def account(self, state: Any, obs: Float[Array, " obs"]) -> Account:
        """What the agent tells, whether or not it decides."""
        told: Account = self.agent.account(state[0], obs)
        return told

    def diagnostics(self, state: Any, obs: Float[Array, " obs"], action: Int[Array, ""]) -> Diagnostics:
        """The score, and 1 where it hands over; a score that is drawn has none."""
        if self.score is at_random:
            return {}
        score = self.score(self.agent, state[0], obs, jax.random.key(0))
        return {"score": score, "handed_over": (score > self.threshold).astype(obs.dtype)}

    @property
    def caveat(self) -> str:
        """Who decides where the score is too high."""
        return " ".join(filter(None, ["hands over to a fallback where its score is too high", self.agent.caveat]))
