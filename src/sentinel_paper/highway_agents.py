"""Who drives on the highway: the paper's seven agents with their printed numbers, and drivers that learn nothing."""

from collections.abc import Mapping

from sentinel_paper.settings import NEUTRAL_RISK, Options
from sentinel_paper.trained import Contender, Settings
from sentinel_rl.study import Evaluation

COMPOSITE = "SENTINEL-4 composite"
ADDITIVE = "SENTINEL-4 additive"
NEUTRAL = "SENTINEL-4 risk-neutral"
BRAKE = "always SLOWER"
RULE = "rule of seven numbers"
# No driver is known to be better: it plans with the exact model of the traffic, which no agent has.
CEILING = "model search"


_Pair = tuple[float, float]


def _row(label: str, agent: str, value: _Pair, tail: _Pair, crashes: _Pair, **options: str) -> Contender:
    return Contender(label, agent, options, {"value": value, "tail": tail, "crashes": crashes})


# As printed, means and standard errors over 20 runs.
AGENTS = (
    _row("VDQN", "vdqn", (23.30, 0.36), (14.29, 0.80), (1252.33, 170.35)),
    _row("CDQN", "cdqn", (25.96, 0.51), (19.50, 1.44), (839.53, 150.20)),
    _row(
        *(NEUTRAL, "sentinel", (26.56, 0.32), (20.88, 1.25), (617.11, 100.15)),
        epistemic=NEUTRAL_RISK,
        aleatory=NEUTRAL_RISK,
    ),
    _row("VDQN-CVaR", "vdqn-cvar", (24.39, 0.50), (16.64, 1.25), (871.33, 171.23)),
    _row("UA-DQN", "uadqn", (24.46, 0.29), (16.9, 0.44), (1060.65, 13.94)),
    _row(
        *(ADDITIVE, "sentinel", (26.82, 0.42), (21.54, 1.40), (645.55, 127.59)),
        epistemic=NEUTRAL_RISK,
        aleatory="cvar:0.25",
    ),
    _row(
        *(COMPOSITE, "sentinel", (27.43, 0.13), (24.16, 0.54), (341.18, 43.86)),
        epistemic="cvar:0.25",
        aleatory="cvar:0.25",
    ),
)
# What every highway table and figure needs to be read: drivers that learn nothing.
REFERENCES = (
    Contender("random", "random"),
    Contender(BRAKE, "random", {"action": 4}),
    Contender(RULE, "highway-rule"),
    Contender(CEILING, "highway-search", only_evaluated=True),
)
REFERENCE_WORDS = (
    f"The reference drivers learn nothing: a random one, one who always brakes, a {RULE} on what the agents observe, "
    f"and a {CEILING} with the exact model, which is the ceiling. The {CEILING} is only evaluated, in a "
    "tenth of the episodes: its crashes are those of its evaluated episodes, scaled to as many steps."
)
CONTENDERS = (*AGENTS, *REFERENCES[:1], Contender("idle", "random", {"action": 1}), *REFERENCES[1:])
RIVALS = tuple(agent.label for agent in AGENTS if agent.label != COMPOSITE)
# The others usually drive at 21 to 24 m/s: the faster ones at 1.25 times that, as fast as the ego can.
SHIFTS: Mapping[str, Options] = {
    "dense traffic": {"vehicles_density": 2.0},
    "faster others": {"others_speed": (26.25, 30.0)},
}


def evaluations(settings: Settings) -> tuple[Evaluation, ...]:
    """The frozen policies in traffic that they were not trained in; the program is that of usual traffic."""
    return tuple(Evaluation(name, settings.episodes, env_settings=changes) for name, changes in SHIFTS.items())
