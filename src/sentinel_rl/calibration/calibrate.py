"""Are the predicted laws right? PIT, CRPS and lower tails on held-out episodes, before and after recalibration."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sentinel_rl.agents.recalibration import Recalibration, fit_recalibration
from sentinel_rl.calibration.samples import Samples, collect, require_episodes, subject
from sentinel_rl.envs.handle import EnvLike
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.scoring import Share, calibration_error, cdf_at, crps, share_below

# Lower tails that are reported.
TAILS = (0.05, 0.1, 0.25)
# Of the PIT histogram.
BINS = 10
# Far from the seeds of training and of evaluations.
CALIBRATION_SEED = 2_000_000
MIXTURE = "mixture"
# Decisions whose laws are corrected together: all quantiles of a law beside all of its atoms take much memory.
_TOGETHER = 1_000


class LawScore(NamedTuple):
    """How well the laws of one member, or of the mixture of all, describe what happened.

    Args:
        name: of the member, or ``"mixture"``.
        below: how often the return fell below the predicted quantile of each level of `TAILS`.
        error: mean distance of these frequencies from their levels, over 99 levels.
        crps: mean continuous ranked probability score, in units of the return.
        histogram: decisions in each tenth of the predicted laws (PIT); even where they are calibrated.
    """

    name: str
    below: tuple[Share, ...]
    error: float
    crps: float
    histogram: Int[np.ndarray, " bins"]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The calibration of an agent's laws on episodes that neither training nor the map has seen.

    Args:
        env: where the map was fitted.
        tested_on: where the laws were judged.
        episodes: that the laws were judged on; as many others were used to fit the map.
        decisions: in these episodes.
        unknown: decisions that were left out, because their return is not known.
        seed: of the episodes.
        gamma: discount of the returns.
        time_limit: whether returns go on behind the time limit.
        before: of every member and of the mixture, as the agent predicts.
        after: the same with the map.
        levels: PIT values of the mixture, before and after.
        recalibration: the map.
    """

    env: str
    tested_on: str
    episodes: int
    decisions: int
    unknown: int
    seed: int
    gamma: float
    time_limit: str
    before: tuple[LawScore, ...]
    after: tuple[LawScore, ...]
    levels: tuple[Float[np.ndarray, " T"], Float[np.ndarray, " T"]]
    recalibration: Recalibration

    def rows(self) -> list[dict[str, Any]]:
        """One row per member and for the mixture, before and after: what the CSV file has."""
        return [
            {"laws": when, "of": told.name, "error": told.error, "crps": told.crps}
            | {
                f"below_{round(100 * level)}{end}": value
                for level, share in zip(TAILS, told.below, strict=True)
                for end, value in zip(("", "_low", "_high"), share, strict=True)
            }
            | {f"pit_{place}": int(count) for place, count in enumerate(told.histogram, start=1)}
            for when, scores in (("predicted", self.before), ("recalibrated", self.after))
            for told in scores
        ]

    def to_json(self) -> str:
        """All numbers and the map; `sentinel_rl.calibration.load_recalibration` reads the map back."""
        words = ("env", "tested_on", "episodes", "decisions", "unknown", "seed", "gamma", "time_limit")
        levels = {"predicted": self.recalibration.predicted, "seen": self.recalibration.seen}
        levels |= {"shift": self.recalibration.shift, "widen": self.recalibration.widen}
        content = {name: getattr(self, name) for name in words} | {
            "rows": self.rows(),
            "recalibration": {name: np.asarray(part, np.float64).tolist() for name, part in levels.items()},
        }
        return json.dumps(content, indent=1) + "\n"


def calibrate(
    agent: Any,
    env: EnvLike = None,
    episodes: int = 200,
    seed: int = CALIBRATION_SEED,
    *,
    state: Any = None,
    on: EnvLike = None,
) -> Calibration:
    """Judge the laws of an agent by what really followed, and fit a map that corrects them.

    The map is fitted on the first `episodes` episodes of the seed and everything is judged on as many others. Returns
    are played on behind the time limit where the agent learns through it.

    Args:
        agent: of the familiar classes, or one of `sentinel_rl.agents` with its `state`. It must have laws.
        env: a name, a Gymnasium environment or a JAX one; the agent's own when None.
        episodes: to fit, and as many to judge.
        seed: of the episodes.
        state: of an agent that is not of the familiar classes.
        on: another environment of the same sizes to judge in, for laws under shift.

    Raises:
        UsageError: for an agent without laws, or too few decisions for the map.
    """
    require_episodes(episodes)
    who = subject(agent, env, state)
    where = who if on is None else subject(agent, on, state)
    fitted, judged = collect(who, range(episodes), seed), collect(where, range(episodes, 2 * episodes), seed)
    recalibration = fit_recalibration(fitted.members, fitted.weights, fitted.realised)
    before, levels_before = judge(judged, judged.members)
    after, levels_after = judge(judged, corrected(recalibration, judged.members))
    return Calibration(
        env=who.handle.spec.name,
        tested_on=where.handle.name or where.handle.spec.name,
        episodes=episodes,
        decisions=judged.realised.size,
        unknown=judged.unknown,
        seed=seed,
        gamma=who.gamma,
        time_limit="bootstrap" if who.bootstraps else "terminal",
        before=before,
        after=after,
        levels=(levels_before, levels_after),
        recalibration=recalibration,
    )


def corrected(recalibration: Recalibration, members: CategoricalReturn) -> CategoricalReturn:
    """The laws ``[K, T, n]`` of many decisions with the map, some decisions at a time."""
    places = range(0, members.probs.shape[1], _TOGETHER)
    some = (
        CategoricalReturn(*(part[:, i : i + _TOGETHER] for part in (members.values, members.probs))) for i in places
    )
    laws = [recalibration.law(law) for law in some]
    values, probs = (
        np.concatenate([np.asarray(getattr(law, name)) for law in laws], 1) for name in ("values", "probs")
    )
    return CategoricalReturn(values, probs)


def judge(samples: Samples, members: CategoricalReturn) -> tuple[tuple[LawScore, ...], Float[np.ndarray, " T"]]:
    """Score the laws of every member ``[K, T, n]`` and their mixture; also returns the mixture's PIT values."""
    outcome = np.broadcast_to(samples.realised, members.probs.shape[:-1])
    below, upto = cdf_at(members, outcome)
    share = np.random.default_rng(0).uniform(size=samples.realised.size)
    levels = below + share * (upto - below)
    mixed: Float[np.ndarray, " T"] = (samples.weights * levels).sum(0)
    names = [*(f"member {number}" for number in range(1, len(levels) + 1)), MIXTURE]
    costs = [*crps(members, outcome), crps(members.mixture(samples.weights), samples.realised)]
    scores = [
        _scored(name, level, cost, samples.episode)
        for name, level, cost in zip(names, [*levels, mixed], costs, strict=True)
    ]
    return tuple(scores), mixed


def _scored(name: str, levels: np.ndarray, costs: np.ndarray, episode: np.ndarray) -> LawScore:
    tails = tuple(share_below(levels, level, episode) for level in TAILS)
    histogram = np.histogram(levels, BINS, (0.0, 1.0))[0]
    return LawScore(name, tails, calibration_error(levels), float(costs.mean()), histogram)


def summary(scores: Sequence[LawScore]) -> LawScore:
    """The score of the mixture."""
    return next(told for told in scores if told.name == MIXTURE)
