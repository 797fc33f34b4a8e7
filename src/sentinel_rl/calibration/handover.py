"""Does an agent know when it should not act? Its scores against what happened, and what handing over buys."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.abstain import Abstain, at_random, find_score
from sentinel_rl.calibration.calibrate import CALIBRATION_SEED
from sentinel_rl.calibration.samples import MEMBER_SCORES, Samples, Subject, collect, play, require_episodes, subject
from sentinel_rl.envs.handle import EnvLike
from sentinel_rl.errors import UsageError
from sentinel_rl.scoring import RiskCoverage, Share, auroc, mean_over_groups, risk_coverage, threshold_at
from sentinel_rl.training.trips import Trip

COVERAGES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5)
WITHIN = 3


class Separation(NamedTuple):
    """How well a score tells two kinds of cases apart.

    Args:
        question: which cases are the positive ones.
        auroc: the chance that a positive one has the higher score; NaN where one kind is missing.
        positive: their number.
        negative: the number of the others.
    """

    question: str
    auroc: float
    positive: int
    negative: int


class Arm(NamedTuple):
    """Episodes in which the fallback took over where a score exceeded a threshold.

    Args:
        coverage: share of the decisions that the agent was to keep, by the calibration episodes.
        by: the score, or ``"random"``.
        threshold: of the score.
        handed_over: share of the decisions that the fallback made.
        terminated: share of the episodes that ended by a fall, a crash or the like.
        value: mean discounted return.
    """

    coverage: float
    by: str
    threshold: float
    handed_over: float
    terminated: Share
    value: Share


@dataclasses.dataclass(frozen=True)
class Handover:
    """What a score knows, and what handing over by it does.

    Args:
        env: where the thresholds were set.
        played_on: where the fallback took over.
        score: its name.
        episodes: of every arm.
        seed: of the episodes.
        constant: whether the score is the same everywhere, so that it can say nothing.
        separations: AUROC of the score, by question.
        curve: risk and coverage, without playing: the risk is a termination soon after a decision.
        arms: at every coverage, by the score and at random.
    """

    env: str
    played_on: str
    score: str
    episodes: int
    seed: int
    constant: bool
    separations: tuple[Separation, ...]
    curve: RiskCoverage
    arms: tuple[Arm, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per arm: what the CSV file has."""
        spread = ("", "_low", "_high")
        return [
            {name: getattr(arm, name) for name in ("coverage", "by", "threshold", "handed_over")}
            | {f"terminated{end}": number for end, number in zip(spread, arm.terminated, strict=True)}
            | {f"value{end}": number for end, number in zip(spread, arm.value, strict=True)}
            for arm in self.arms
        ]

    def to_json(self) -> str:
        """All numbers as JSON."""
        words = ("env", "played_on", "score", "episodes", "seed", "constant")
        areas = {name: getattr(self.curve, name) for name in ("area", "at_random", "best")}
        content = {name: getattr(self, name) for name in words} | {
            "auroc": [_finite(told._asdict()) for told in self.separations],
            "risk_coverage": areas,
            "arms": [_finite(row) for row in self.rows()],
        }
        return json.dumps(content, indent=1) + "\n"


def hand_over(
    agent: Any,
    fallback: Any,
    env: EnvLike = None,
    *,
    state: Any = None,
    on: EnvLike = None,
    score: str = "epistemic",
    coverages: Sequence[float] = COVERAGES,
    episodes: int = 200,
    seed: int = CALIBRATION_SEED,
) -> Handover:
    """Set thresholds on calibration episodes, then play others with the fallback, by the score and at random.

    Args:
        agent: of the familiar classes, or one of `sentinel_rl.agents` with its `state`. It must have laws.
        fallback: a policy that needs no training, such as one of `sentinel_rl.make_agent` ("constant", "random", ...).
        env: where the thresholds are set; the agent's own when None.
        state: of an agent that is not of the familiar classes.
        on: another environment of the same sizes, whose states count as unseen and in which the arms are played.
        score: ``"epistemic"``, ``"disagreement"`` or ``"laws"``.
        coverages: shares of the decisions that the agent is to keep.
        episodes: to set the thresholds, and as many for everything else.
        seed: of the episodes.

    Raises:
        UsageError: for an agent without laws, an unknown score or a coverage that is none.
    """
    require_episodes(episodes)
    find_score(score)
    if score == "random":
        raise UsageError(f"the score 'random' is what the others are compared with: choose {', '.join(MEMBER_SCORES)}")
    if not coverages or not all(0 < coverage <= 1 for coverage in coverages):
        raise UsageError(f"coverages lie above 0 and not above 1, got {', '.join(map(str, coverages)) or 'none'}")
    who = subject(agent, env, state)
    where = who if on is None else subject(agent, on, state)
    usual = collect(who, range(episodes), seed, WITHIN)
    tested = collect(where, range(episodes, 2 * episodes), seed, WITHIN)
    separations = [_separation(f"terminates within {WITHIN} decisions", tested.scores[score], tested.soon)]
    if on is not None:
        separations += _unseen(usual, tested, score)
    arms: list[Arm] = []
    for coverage in coverages:
        threshold = threshold_at(usual.scores[score], coverage) if coverage < 1 else float("inf")
        arms += _arms(where, fallback, score, coverage, threshold, range(episodes, 2 * episodes), seed)
    return Handover(
        env=who.handle.spec.name,
        played_on=where.handle.name or where.handle.spec.name,
        score=score,
        episodes=episodes,
        seed=seed,
        constant=bool(np.ptp(usual.scores[score]) == 0),
        separations=tuple(separations),
        curve=risk_coverage(tested.scores[score], tested.soon.astype(float)),
        arms=tuple(arms),
    )


def _unseen(usual: Samples, tested: Samples, score: str) -> list[Separation]:
    """Single states and whole episodes: many states of a new situation may have been seen before."""
    states = [usual.scores[score], tested.scores[score]]
    worst = [_highest(samples.scores[score], samples.episode) for samples in (usual, tested)]
    questions = ("a state of the other environment", "an episode of the other environment, by its highest score")
    return [
        _separation(question, np.concatenate(pair), np.repeat([False, True], [part.size for part in pair]))
        for question, pair in zip(questions, (states, worst), strict=True)
    ]


def _highest(scores: np.ndarray, episode: np.ndarray) -> np.ndarray:
    return np.array([scores[episode == number].max() for number in np.unique(episode)])


def _separation(question: str, scores: np.ndarray, positive: np.ndarray) -> Separation:
    many, few = int(positive.sum()), int((~positive).sum())
    return Separation(question, auroc(scores, positive) if many and few else float("nan"), many, few)


def _arms(
    where: Subject, fallback: Any, score: str, coverage: float, threshold: float, episodes: range, seed: int
) -> list[Arm]:
    """The arm of a threshold, and one that hands over as often at random."""
    state = where.state, fallback.init(where.handle.spec, jax.random.key(seed))
    wrapped = Abstain(where.agent, fallback, jnp.float32(threshold), find_score(score))
    trips = _played(wrapped, state, where, episodes, seed)
    handed = float(np.concatenate([_decided(wrapped, state, trip.obs) for trip in trips]).mean())
    arms = [_arm(trips, coverage, score, threshold, handed, where.handle.spec.gamma)]
    if handed > 0:
        chance = Abstain(where.agent, fallback, jnp.float32(1 - handed), at_random)
        drawn = _played(chance, state, where, episodes, seed)
        arms.append(_arm(drawn, coverage, "random", 1 - handed, handed, where.handle.spec.gamma))
    return arms


def _played(agent: Abstain, state: Any, where: Subject, episodes: range, seed: int) -> list[Trip]:
    return play(agent, state, where.handle, episodes, seed, 0.0, bootstraps=False)


def _decided(agent: Abstain, state: Any, obs: np.ndarray) -> np.ndarray:
    """Whether the fallback decided at every observation of an episode."""
    rows = np.resize(obs, (-(-len(obs) // 64) * 64, obs.shape[1]))
    return np.asarray(_hands_over(agent, state, rows))[: len(obs)]


@jax.jit
def _hands_over(agent: Abstain, state: Any, obs: Any) -> Any:
    return jax.vmap(lambda seen: agent.hands_over(state, seen, jax.random.key(0)))(obs)


def _arm(trips: list[Trip], coverage: float, by: str, threshold: float, handed: float, gamma: float) -> Arm:
    values = [float(np.power(gamma, np.arange(len(trip.action))) @ trip.reward[: len(trip.action)]) for trip in trips]
    ended = [trip.terminated for trip in trips]
    return Arm(coverage, by, threshold, handed, mean_over_groups(ended), mean_over_groups(values))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity and no NaN."""
    return {name: value if not isinstance(value, float) or np.isfinite(value) else None for name, value in row.items()}
