"""The numbers of the study of caution, one per run, taken from its records."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float

from sentinel_paper.caution_cells import (
    AS_TRAINED,
    CLOSED,
    HIGHWAY,
    NEUTRAL,
    Arm,
    Measures,
    Settings,
    Situation,
    World,
    arms,
    evaluation_name,
    levels,
    situations,
)
from sentinel_paper.caution_verdicts import Choice, Driven, Outcome, choose, outcomes, pooled
from sentinel_rl.envs.grid_planning import best_cvar, best_mean, law_of, stepwise_cvar
from sentinel_rl.envs.highway import scenario_names
from sentinel_rl.study import Record

Numbers = Float[np.ndarray, " runs"]
# Tails of the small worlds: that of the agents, and that of CeSoR's printed numbers.
TAILS = (0.25, 0.05)
# A mean is near the best where it lacks less than this share of the goal's reward: such a policy walks to the goal.
NEAR = 0.25


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of the study by the names of world and arm, and the names of the pieces that are not done."""

    settings: Settings
    found: Mapping[tuple[str, str], Record]
    missing: tuple[str, ...] = ()
    _duels: dict[tuple[str, ...], list[Outcome]] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def duel(self, ours: Arm, theirs: Arm, worlds: Sequence[str]) -> list[Outcome]:
        """One arm against another at matched speed, in some of the highway's worlds, corrected for their number."""
        key = ours.label, theirs.label, *worlds
        if key not in self._duels:
            mine, others = self.matched(ours), self.matched(theirs)
            self._duels[key] = outcomes({name: mine[name] for name in worlds}, {name: others[name] for name in worlds})
        return self._duels[key]

    def arms(self, world: World) -> list[Arm]:
        """The arms of a world that have been trained."""
        return [arm for arm in arms(world, self.settings) if (world.name, arm.label) in self.found]

    def of(self, world: World, arm: Arm) -> Record:
        """The record of an arm in a world."""
        return self.found[world.name, arm.label]

    def closed_returns(self, world: World, arm: Arm) -> Numbers:
        """Mean returns in a world whose gap is closed."""
        rewards = np.asarray(self.of(world, arm).arrays[f"eval/{CLOSED}/reward"], np.float64)
        return np.asarray(rewards.mean(axis=1))

    def look(self, world: World, arm: Arm, name: str) -> Numbers:
        """What agents were asked beside their evaluations."""
        return np.asarray(self.of(world, arm).arrays[f"look/{name}"], np.float64)

    @cached_property
    def worlds(self) -> Mapping[str, tuple[Situation, ...]]:
        """The highway's worlds that verdicts are given for: as trained, and every scenario over all its strengths."""
        known = situations(self.settings)
        return {name: tuple(one for one in known if one.scenario == name) for name in (AS_TRAINED, *scenario_names())}

    def driven(self, arm: Arm, measures: Measures, places: Sequence[Situation]) -> Driven:
        """What an arm did with some measures, over situations that all count the same."""
        arrays = self.of(HIGHWAY, arm).arrays
        stems = [f"eval/{evaluation_name(place, measures)}" for place in places]
        return pooled(
            [
                Driven(
                    np.asarray(arrays[f"{stem}/terminated"], np.float64).mean(axis=1),
                    np.asarray(arrays[f"{stem}/mean_speed"], np.float64),
                    np.asarray(arrays[f"{stem}/reward"], np.float64).mean(axis=1),
                )
                for stem in stems
            ]
        )

    def candidates(self, arm: Arm) -> list[Measures]:
        """The measures of an arm's kind of risk."""
        return [measures for measures in levels(self.settings) if measures.kind == arm.kind]

    @cached_property
    def choices(self) -> Mapping[str, Choice]:
        """By arm, the measures with which it is as fast as the neutral one on the calibration scenarios."""
        places = [one for one in situations(self.settings) if one.split == "calibration"]
        reference = self.driven(Arm(NEUTRAL), NEUTRAL, places).speed
        return {
            arm.label: choose(
                {measures: self.driven(arm, measures, places).speed for measures in self.candidates(arm)}, reference
            )
            for arm in self.arms(HIGHWAY)
        }

    def matched(self, arm: Arm, strengths: bool = False) -> dict[str, Driven]:
        """What an arm does with its matched measures in every world, or in every situation."""
        measures = self.choices[arm.label].measures
        if strengths:
            return {one.label: self.driven(arm, measures, [one]) for one in situations(self.settings)}
        return {name: self.driven(arm, measures, places) for name, places in self.worlds.items()}

    def laws(self, world: World, arm: Arm) -> dict[str, Numbers]:
        """Mean and tails of the exact law of the return of every run's greedy policy in a small world."""
        record = self.of(world, arm)
        env = record.cell.make_env()
        found: dict[bytes, tuple[float, ...]] = {}  # policies of several runs are often the same
        rows = []
        for actions in np.asarray(record.arrays["look/greedy"]).astype(np.int64):
            key = actions.tobytes()
            if key not in found:
                law = law_of(env, actions)  # type: ignore[arg-type]
                found[key] = (law.mean(), *(law.cvar(alpha) for alpha in TAILS))
            rows.append(found[key])
        return dict(zip(("mean", *(f"CVaR {_short(alpha)}" for alpha in TAILS)), np.array(rows).T, strict=True))

    def unlearnt(self, world: World) -> str:
        """A sentence where most neutral agents have not learnt a small world, which hardly compares measures then."""
        neutral = Arm(NEUTRAL)
        if neutral not in self.arms(world):
            return ""
        env = world.made()
        best, means = best_mean(env).law.mean(), self.laws(world, neutral)["mean"]
        near = int(np.sum(means > best - NEAR * env.goal_reward))
        if near > len(means) / 2:
            return ""
        return (
            f" Only {near} of {len(means)} neutral agents come near the best mean of the {world.name} ({best:.2f}): "
            "what differs between the arms there is how they explore and learn, and says little of the measures."
        )


def _short(alpha: float) -> str:
    return f"{alpha:g}".removeprefix("0")


def optima(world: World) -> dict[str, tuple[float, float, float]]:
    """Mean, CVaR .25 and CVaR .05 of the best policies of a small world, and of CVaR .25 asked at every step."""
    env = world.made()
    best = {
        "best mean, exact": best_mean(env),
        "best CVaR .25, exact": best_cvar(env, 0.25),
        "best CVaR .05, exact": best_cvar(env, 0.05),
        "CVaR .25 at every step, exact": stepwise_cvar(env, 0.25),
    }
    return {label: (one.law.mean(), one.law.cvar(0.25), one.law.cvar(0.05)) for label, one in best.items()}
