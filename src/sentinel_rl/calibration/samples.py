"""What an agent predicted at every decision of held-out episodes, and what really followed."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.agents.abstain import disagreement_of, penalty_of
from sentinel_rl.agents.agent import Agent
from sentinel_rl.belief import Belief
from sentinel_rl.envs.handle import EnvHandle, EnvLike, require_sizes, resolve_env
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import has_laws
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.returns.distance import mean_wasserstein1
from sentinel_rl.risk import Composite
from sentinel_rl.training.trips import Trip, play_gymnasium, play_jax

# Decisions are judged in batches of this many: one program serves all episodes.
_BATCH = 256
# Of an episode without a time limit, decisions that are kept.
LONGEST = 1000


# What the members of an ensemble tell of every decision, in the order of `scores_of`.
MEMBER_SCORES = ("epistemic", "disagreement", "laws")


@dataclasses.dataclass(frozen=True)
class Samples:
    """Decisions of held-out episodes, those whose return is known: T of them in E episodes, by K members.

    Args:
        members: the members' laws of the action that was taken, ``[K, T, n]``.
        weights: of the members, ``[K, T]``.
        realised: the discounted return that followed, ``[T]``.
        episode: number of the episode, ``[T]``.
        scores: by name, of every decision ``[T]``: ``"epistemic"``, the epistemic penalty, ``"disagreement"`` of the
            members' means, and ``"laws"``, the distance between their laws.
        soon: whether the episode terminated within the next decisions, ``[T]``.
        terminated: whether an episode ended by a fall, a crash or the like, ``[E]``.
        unknown: decisions that were left out, because too much of their return was not known.
    """

    members: CategoricalReturn
    weights: Float[np.ndarray, "K T"]
    realised: Float[np.ndarray, " T"]
    episode: Int[np.ndarray, " T"]
    scores: dict[str, Float[np.ndarray, " T"]]
    soon: Bool[np.ndarray, " T"]
    terminated: Bool[np.ndarray, " E"]
    unknown: int


@dataclasses.dataclass(frozen=True)
class Subject:
    """An agent with laws, its state and its environment."""

    agent: Any
    state: Any
    handle: EnvHandle

    @property
    def gamma(self) -> float:
        """The discount of its returns."""
        return float(getattr(self.agent, "gamma", self.handle.spec.gamma))

    @property
    def bootstraps(self) -> bool:
        """Whether its returns go on behind a time limit."""
        return getattr(self.agent, "time_limit", "terminal") == "bootstrap"


def subject(agent: Any, env: EnvLike = None, state: Any = None) -> Subject:
    """Take an agent of the familiar classes, or one of `sentinel_rl.agents` with its state, into an environment.

    Raises:
        UsageError: for an agent without laws, without a state or without an environment.
        IncompatibleError: for an environment of other sizes.
    """
    familiar = all(hasattr(agent, name) for name in ("agent", "state", "handle"))
    if state is None and not familiar:
        raise UsageError(f"{type(agent).__name__} is judged with its state: give state=")
    who, known = (agent.agent, agent.state) if state is None else (agent, state)
    if not has_laws(who):
        raise UsageError(
            f"{type(who).__name__} has no laws of the return to judge: sentinel and cdqn have some, and any agent with "
            "belief(state, obs) and composite"
        )
    handle = agent.handle if env is None and state is None else resolve_env(env)
    if handle.env is None:
        raise UsageError("this agent has no environment to play in: give one, env=")
    if state is None:
        require_sizes(handle.spec, agent.handle.spec, "the agent")
    return Subject(who, known, handle)


def require_episodes(episodes: object) -> None:
    """Raise `UsageError` unless it is a number of episodes."""
    if not isinstance(episodes, int) or isinstance(episodes, bool) or episodes < 1:
        raise UsageError(f"episodes must be a whole number of at least 1, got {episodes!r}")


def collect(who: Subject, episodes: range, seed: int, within: int = 3) -> Samples:
    """Play episodes with the frozen policy and keep what was predicted of every action taken.

    Where the agent learns through the time limit, an episode is played on behind it until what follows counts for
    less than a hundredth, ``gamma^h < 0.01``.

    Args:
        who: the agent in its environment.
        episodes: numbers of the episodes, which are those of `sentinel_rl.evaluate` with this seed.
        seed: of the episodes.
        within: decisions before a termination that count as soon.
    """
    trips = play(who.agent, who.state, who.handle, episodes, seed, who.gamma, who.bootstraps)
    obs, action = (np.concatenate([getattr(trip, name) for trip in trips]) for name in ("obs", "action"))
    values, probs, weights, *scores = _in_batches(who.agent, who.state, obs, action)
    realised = np.concatenate([trip.realised(who.gamma) for trip in trips]).astype(np.float64)
    lengths = [len(trip.action) for trip in trips]
    left = np.concatenate([np.arange(length, 0, -1) for length in lengths])
    ended = np.repeat([trip.terminated for trip in trips], lengths)
    known = np.isfinite(realised)
    if not known.any():
        raise UsageError(
            f"no return of {who.handle.spec.name} is known: its episodes cannot be played on behind their time limit, "
            "and the agent's returns go on there"
        )
    return Samples(
        members=CategoricalReturn(np.moveaxis(values[known], 1, 0), np.moveaxis(probs[known], 1, 0)),
        weights=weights[known].T,
        realised=realised[known],
        episode=np.repeat(np.array(episodes), lengths)[known],
        scores={name: score[known] for name, score in zip(MEMBER_SCORES, scores, strict=True)},
        soon=(ended & (left <= within))[known],
        terminated=np.array([trip.terminated for trip in trips]),
        unknown=int((~known).sum()),
    )


def scores_of(belief: Belief, composite: Composite) -> tuple[Float[Array, " A"], ...]:
    """The scores of every action."""
    return penalty_of(belief, composite), disagreement_of(belief), mean_wasserstein1(belief.members)


def play(
    agent: Agent, state: Any, handle: EnvHandle, episodes: range, seed: int, gamma: float, bootstraps: bool
) -> list[Trip]:
    """Play episodes in a JAX or Gymnasium environment."""
    course = episodes, seed, gamma, bootstraps, handle.spec.max_steps or LONGEST
    if handle.is_jax:
        return play_jax(agent, state, handle.env, *course)
    return play_gymnasium(agent, state, handle, *course, lambda: None)


def _in_batches(agent: Any, state: Any, obs: np.ndarray, action: np.ndarray) -> list[np.ndarray]:
    """What is known of every decision, computed in batches of one size."""
    found = []
    for start in range(0, len(obs), _BATCH):
        rows = np.minimum(np.arange(start, start + _BATCH), len(obs) - 1)
        found.append(jax.device_get(_known(agent, state, obs[rows], action[rows])))
    return [np.concatenate(parts)[: len(obs)] for parts in zip(*found, strict=True)]


@eqx.filter_jit
def _known(agent: Any, state: Any, obs: Any, action: Any) -> tuple[Array, ...]:
    """Of every decision, the laws and weights ``[K, ...]`` of the action taken, and its scores."""

    def one(seen: Array, taken: Array) -> tuple[Array, ...]:
        belief = agent.belief(state, seen)
        laws = belief.members
        scores = [score[taken] for score in scores_of(belief, agent.composite)]
        return laws.values[:, taken], laws.probs[:, taken], belief.weights[:, taken], *scores

    return jax.vmap(one)(jnp.asarray(obs), jnp.asarray(action))
