"""What the study of caution trains: arms, worlds, and the cells of both, in pieces that one program computes.

An arm is what an agent is trained with: a kind of risk (neutral, additive or composite) and, where there is one, a
carrier of ignorance. Arms of one world differ in numbers only as far as they can, so that they share a program.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from sentinel_paper.settings import Options
from sentinel_rl.envs.highway import SCENARIOS
from sentinel_rl.envs.highway.scenarios import STRENGTHS
from sentinel_rl.envs.registry import make_jax_env
from sentinel_rl.errors import UsageError
from sentinel_rl.study import Cell, Evaluation

Kind = Literal["neutral", "additive", "composite"]
KINDS: tuple[Kind, ...] = ("neutral", "additive", "composite")
# Options are chosen on the seeds before it.
FIRST_SEED = 4_000
ALPHA = 0.25
AS_TRAINED = "as trained"
# The evaluation in a world whose gap is closed, as in training.
CLOSED = "closed"
PRIOR: Options = {"prior_scale": 0.3}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The size of the study.

    Args:
        runs: fresh ones of every arm, all arms with the same seeds.
        steps: decisions of a training on the highway, and half of them on the one with a gap.
        seed: of the first run; the others count on.
        episodes: of a frozen policy, by run, world and measure.
        small_steps: steps of a training in the small worlds.
        quick: small networks, short episodes and few arms, to see that all parts work.
    """

    runs: int = 30
    steps: int = 100_000
    seed: int = FIRST_SEED
    episodes: int = 100
    small_steps: int = 30_000
    quick: bool = False

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise UsageError(f"runs = {self.runs} is not allowed: give at least 2, so that runs can be compared")

    def made_quick(self) -> "Settings":
        """The same study, tiny."""
        return dataclasses.replace(self, runs=2, steps=300, episodes=4, small_steps=300, quick=True)

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per run."""
        return tuple(range(self.seed, self.seed + self.runs))


class Measures(NamedTuple):
    """The alphas of the two CVaRs of an agent; 1 is the mean."""

    epistemic: float
    aleatory: float

    @property
    def kind(self) -> Kind:
        """What a risk with these is called."""
        if self.epistemic < 1:
            return "composite"
        return "additive" if self.aleatory < 1 else "neutral"

    @property
    def options(self) -> Options:
        """As options of an agent."""
        return {"epistemic": f"cvar:{self.epistemic:g}", "aleatory": f"cvar:{self.aleatory:g}"}

    def __str__(self) -> str:
        """The kind and its alphas.

        >>> print(Measures(1.0, 1.0), Measures(1.0, 0.25), Measures(0.25, 0.25), sep=", ")
        neutral, additive .25, composite .25
        """
        if self.kind == "neutral":
            return self.kind
        return f"{self.kind} {_short(self.aleatory)}" + (
            "" if self.kind == "additive" or self.epistemic == self.aleatory else f" o {_short(self.epistemic)}"
        )


def _short(alpha: float) -> str:
    return f"{alpha:g}".removeprefix("0")


NEUTRAL = Measures(1.0, 1.0)
ADDITIVE = Measures(1.0, ALPHA)
COMPOSITE = Measures(ALPHA, ALPHA)
DEFAULT = Measures(0.5, 0.5)
# Without training again, every agent acts with each of these.
LEVELS = (
    NEUTRAL,
    Measures(1.0, 0.5),
    ADDITIVE,
    Measures(1.0, 0.1),
    DEFAULT,
    COMPOSITE,
    Measures(0.1, 0.1),
)


@dataclasses.dataclass(frozen=True)
class Arm:
    """What agents of one sort are trained with.

    Args:
        measures: of risk.
        carrier: of ignorance, as tables call it; empty for the bootstrap alone.
        options: of the carrier, or of a schedule.
    """

    measures: Measures
    carrier: str = ""
    options: Options = dataclasses.field(default_factory=dict, hash=False)

    @property
    def kind(self) -> Kind:
        """Of its risk."""
        return self.measures.kind

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"{self.measures}, {self.carrier}" if self.carrier else str(self.measures)


def with_prior(measures: Measures) -> Arm:
    """An arm with a random prior."""
    return Arm(measures, f"prior {_short(PRIOR['prior_scale'])}", PRIOR)


_BARE = tuple(Arm(measures) for measures in (NEUTRAL, ADDITIVE, COMPOSITE))
# A prior that helps a neutral agent as much is no merit of caution.
HIGHWAY_ARMS = (*_BARE, Arm(DEFAULT), with_prior(NEUTRAL), with_prior(COMPOSITE))
GAP_ARMS = (*_BARE, *(with_prior(measures) for measures in (NEUTRAL, ADDITIVE, COMPOSITE)))
# A run on the highway costs as much as many in a small world.
HIGHWAY_GAP_ARMS = (Arm(ADDITIVE), Arm(COMPOSITE), with_prior(COMPOSITE))
SCHEDULE: Options = {"alpha_start": 1.0}
SMALL_ARMS = (*_BARE, *(Arm(measures, "from 1", SCHEDULE) for measures in (ADDITIVE, COMPOSITE)))


@dataclasses.dataclass(frozen=True)
class World:
    """A world in which arms are trained.

    Args:
        name: what tables call it.
        env: its name in the library, closed where it has a gap.
        arms: that are trained there.
        look: what is asked of the trained agents: nothing beside evaluations, the greedy action in every cell, or what
            they do and know in a coverage gap.
        opened: the world with its gap open.
        settings: of the environment.
        options: of all agents.
    """

    name: str
    env: str
    arms: tuple[Arm, ...]
    look: Literal["", "cells", "gap", "logged"] = ""
    opened: str = ""
    settings: Options = dataclasses.field(default_factory=dict, hash=False)
    options: Options = dataclasses.field(default_factory=dict, hash=False)

    def made(self) -> Any:
        """The environment."""
        return make_jax_env(self.env, **self.settings)


HIGHWAY = World("highway", "sentinel/highway-v1", HIGHWAY_ARMS)
HIGHWAY_GAP = World(
    "left-most lane", "sentinel/highway-gap-v0", HIGHWAY_GAP_ARMS, "gap", "sentinel/highway-gap-open-v0"
)
_SMALL: Options = {"hidden": (64, 64)}


_GAMMA = 0.98


def _grid(low: float, atoms: int) -> Options:
    """Laws on a grid from `low` to 20: what the rewards would allow without an end of the episode is far wider."""
    rewards = (round((1 - _GAMMA) * low, 6), round((1 - _GAMMA) * 20.0, 6))
    return {**_SMALL, "gamma": _GAMMA, "head": "categorical", "reward_range": rewards, "atoms": atoms}


GUARDED = World(
    "Guarded Maze",
    "sentinel/GuardedMaze-v0",
    SMALL_ARMS,
    "cells",
    options={**_grid(-110.0, 66), "target_every": 100, "epsilon_fraction": 0.3},
)
CLIFF = World(
    "windy cliff",
    "sentinel/WindyCliff-v0",
    SMALL_ARMS,
    "cells",
    options={**_grid(-40.0, 61), "target_every": 100, "epsilon_fraction": 0.3},
)
LOGGED = World(
    "logged maze",
    "sentinel/MazeGap-v0",
    GAP_ARMS,
    "logged",
    "sentinel/MazeGapOpen-v0",
    {"slip": 0.0},
    {**_grid(-30.0, 51), "target_every": 50, "capacity": 1_000},
)
POLE = World("pole", "sentinel/CartPoleGap-v0", GAP_ARMS, "gap", "sentinel/CartPoleGapOpen-v0", {}, _SMALL)
GAPS, SMALL = (LOGGED, POLE, HIGHWAY_GAP), (GUARDED, CLIFF)
# Of learning from the log; its world is deterministic, and 4 000 are enough.
LOG_UPDATES = 4_000
# What makes any of them tiny.
_QUICK_HIGHWAY: Options = {"vehicles_count": 5, "duration": 6}
_QUICK: Options = {"samples": 16, "batch": 16, "capacity": 300, "hidden": (8, 8), "k": 2, "warmup": 20}


class Situation(NamedTuple):
    """The highway as a frozen policy meets it: a scenario with a strength, or as trained (strength 0)."""

    scenario: str
    strength: float

    @property
    def split(self) -> str:
        """The side of the split that it is on; empty for the traffic of training."""
        return "" if self.scenario == AS_TRAINED else SCENARIOS[self.scenario].split

    @property
    def label(self) -> str:
        """Its name in tables.

        >>> Situation("blocked", 2.0).label
        'blocked 2'
        """
        return self.scenario if self.scenario == AS_TRAINED else f"{self.scenario} {self.strength:g}"

    @property
    def env_settings(self) -> Options:
        """As settings of the environment."""
        return {} if self.scenario == AS_TRAINED else {"scenario": self.scenario, "strength": self.strength}


def situations(settings: Settings) -> tuple[Situation, ...]:
    """The traffic of training and all scenarios with all strengths, or with one where it must be quick."""
    strengths = STRENGTHS[-1:] if settings.quick else STRENGTHS
    return (Situation(AS_TRAINED, 0.0), *(Situation(name, value) for name in SCENARIOS for value in strengths))


def levels(settings: Settings) -> tuple[Measures, ...]:
    """The measures that frozen policies act with."""
    return (NEUTRAL, ADDITIVE, COMPOSITE) if settings.quick else LEVELS


def arms(world: World, settings: Settings) -> tuple[Arm, ...]:
    """The arms of a world; where it must be quick, those of the smallest number of programs."""
    if not settings.quick:
        return world.arms
    return tuple(arm for arm in world.arms if not arm.options and arm.measures != DEFAULT)


def evaluation_name(situation: Situation, measures: Measures) -> str:
    """What the arrays of a record are called by."""
    return f"{situation.label}, {measures}"


def cell(world: World, arm: Arm, settings: Settings) -> Cell:
    """The cell of an arm in a world."""
    options: dict[str, Any] = {**world.options, **arm.options, **arm.measures.options}
    env_settings, steps = dict(world.settings), settings.small_steps
    evaluations: tuple[Evaluation, ...] = ()
    if world in (HIGHWAY, HIGHWAY_GAP):
        steps = settings.steps if world == HIGHWAY else max(settings.steps // 2, 1)
        env_settings |= _QUICK_HIGHWAY if settings.quick else {}
    if world == LOGGED:
        steps = min(LOG_UPDATES, settings.small_steps)
    if settings.quick:
        options |= _QUICK
    if world.look == "gap":
        evaluations = (Evaluation(CLOSED, settings.episodes, keeps=("reward",)),)
    if world == HIGHWAY:
        evaluations = tuple(
            Evaluation(
                evaluation_name(situation, measures),
                settings.episodes,
                env_settings=situation.env_settings,
                acting=measures.options,
                keeps=("reward", "terminated", "mean_speed"),
            )
            for measures in levels(settings)
            for situation in situations(settings)
        )
    return Cell(
        "sentinel",
        world.env,
        steps,
        settings.seeds,
        options,
        env_settings,
        evaluations,
        points=min(50, steps),
        label=f"{world.name}: {arm.label}",
    )


class Piece(NamedTuple):
    """Cells that go into one program, or a few small ones: what one shard computes."""

    name: str
    cells: Mapping[tuple[str, str], Cell]


def pieces(settings: Settings) -> tuple[Piece, ...]:
    """The study in five pieces; cells by the names of world and arm."""

    def of(world: World, carriers: tuple[bool, ...] = (False, True)) -> dict[tuple[str, str], Cell]:
        return {
            (world.name, arm.label): cell(world, arm, settings)
            for arm in arms(world, settings)
            if ("prior_scale" in arm.options) in carriers
        }

    small = {key: one for world in (*SMALL, LOGGED, POLE) for key, one in of(world).items()}
    return (
        Piece("highway, the bootstrap alone", of(HIGHWAY, (False,))),
        Piece("highway, with a prior", of(HIGHWAY, (True,))),
        Piece("small worlds", small),
        Piece("highway with a gap, the bootstrap alone", of(HIGHWAY_GAP, (False,))),
        Piece("highway with a gap, with a prior", of(HIGHWAY_GAP, (True,))),
    )


def shard_of(parts: tuple[Piece, ...], shard: tuple[int, int] | None) -> tuple[Piece, ...]:
    """The pieces of a shard ``(i, n)``: neighbours stay together, since they share programs.

    Raises:
        UsageError: for more shards than pieces.
    """
    if shard is None:
        return parts
    number, count = shard
    if count > len(parts):
        raise UsageError(f"this study has {len(parts)} pieces: give a shard i/n with n of at most {len(parts)}")
    return parts[(number - 1) * len(parts) // count : number * len(parts) // count]


def world_of(name: str) -> World:
    """A world by its name."""
    return next(world for world in (HIGHWAY, *GAPS, *SMALL) if world.name == name)
