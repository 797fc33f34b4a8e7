"""The paper's hyperparameter tables as values, and the presets: which options the agents learn with.

A cell of an experiment has, in this order, the options of its task for all agents, those for its agent, those of the
preset, and its own; later ones win. A preset without the paper's constants has only its own options and those of the
cell, on top of the library's defaults. Another preset is one more value in `PRESETS`, where command line and report
find it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from sentinel_rl.errors import UsageError

Options = Mapping[str, Any]
GAMMA = 0.99
CARTPOLE_LIMIT = 200
# The expectation, written as the CVaR it is: agents that differ in numbers only share a compiled program.
NEUTRAL_RISK = "cvar:1"


@dataclasses.dataclass(frozen=True)
class Task:
    """An environment with the paper's constants for it.

    Args:
        name: what presets call it.
        env: its name in the library.
        steps: of a run.
        shared: options of all agents and of the training schedule.
        agents: options of one agent.
        ends: what an episode that terminates is called.
        quick: settings of the environment that make it small.
    """

    name: str
    env: str
    steps: int
    shared: Options
    agents: Mapping[str, Options]
    ends: str
    quick: Options = dataclasses.field(default_factory=dict)


_SHARED: Options = {
    "gamma": GAMMA,
    "batch": 32,
    "capacity": 100_000,
    "learning_rate": 2.5e-4,
    "adam_eps": 1e-7,
    "epsilon_start": 1.0,
}
_CATEGORICAL: Options = {"atoms": 51, "v_min": 0.0, "hidden": (32, 32, 128), "preset": "paper", "encoder": "separate"}
_ENSEMBLE: Options = {"k": 4, "lam": 1.0, "mask": "bernoulli", "mask_rate": 1 / 3}


def _categorical(v_max: float) -> Mapping[str, Options]:
    return {"sentinel": {**_CATEGORICAL, **_ENSEMBLE, "v_max": v_max}, "cdqn": {**_CATEGORICAL, "v_max": v_max}}


CARTPOLE = Task(
    name="cartpole",
    env="sentinel/CartPole-v0",
    steps=100_000,
    shared={**_SHARED, "epsilon_end": 0.05, "samples": 100, "learn_every": 100, "target_every": 10},
    agents=_categorical((1 - GAMMA**CARTPOLE_LIMIT) / (1 - GAMMA)),
    ends="falls",
)

# Updates at the triangular numbers 1, 3, 6, 10, ...; every fifth, 15, 55, 120, ..., updates the target networks.
HIGHWAY = Task(
    name="highway",
    env="sentinel/highway-v1",
    steps=100_000,
    shared={**_SHARED, "epsilon_end": 0.01, "samples": 1_000, "learn_every": "triangular", "target_every": 5},
    agents={
        **_categorical(40.0),
        "vdqn": {"hidden": (100,)},
        "vdqn-cvar": {"hidden": (100,), "risk": "cvar:0.25"},
        "uadqn": {"hidden": (256,), "beta": 0.2, "aversion": 0.1},
    },
    ends="crashes",
    quick={"vehicles_count": 4, "duration": 8},
)

# The library's option for how line 12 of the algorithm is read; nothing else in this package names it.
READING_OPTION = "reading"


@dataclasses.dataclass(frozen=True)
class Preset:
    """Which options the agents learn with.

    Args:
        learning: how agents learn with it, after "Every agent learns with".
        words: what it is, in one sentence.
        options: by ``"all"``, by task or by agent, later ones win.
        constants: whether the tables of the paper come first; without them, the defaults of the library.
    """

    learning: str
    words: str
    options: Mapping[str, Options]
    constants: bool = True


# In the order of the headline: a claim is counted under the first of these that it was run with.
PRESETS: Mapping[str, Preset] = {
    # What the tuning found for one agent (`docs/tuning.md`) stands under the agent's name.
    "tuned": Preset(
        "the library's default learner (the same encoder, updates, batch, discount, time-limit rule, warm-up and "
        "epsilon for all agents; the paper's constants are not used)",
        "every agent learns with the library's default learner: an encoder that fits the observation, a minibatch of "
        "64 every second step, a discount that follows from the time limit, and returns that go on through it",
        {
            "all": {"preset": "learner"},
            **{agent: {"learning_rate_end": 1e-4} for agent in ("cdqn", "vdqn", "vdqn-cvar", "uadqn")},
        },
        constants=False,
    ),
    # What the paper leaves open is read soundly.
    "sound": Preset(
        "the paper's constants",
        "the paper's constants; target networks are copied, and the baselines explore by their own uncertainty, as "
        "their own papers say",
        {"all": {"epsilon_fraction": 0.25}},
    ),
    # Line 12 of the algorithm, and the epsilon of table 8 for all agents.
    "literal": Preset(
        "the paper's constants",
        "the paper's constants; target networks are trained by gradients, as the algorithm is printed, and all agents "
        "explore with epsilon",
        {
            "all": {"epsilon_fraction": 0.1},
            **{agent: {READING_OPTION: "literal"} for agent in ("sentinel", "cdqn")},
            **{agent: {"use_epsilon": True} for agent in ("vdqn", "vdqn-cvar", "uadqn")},
        },
    ),
}
# That of every command where none is given.
DEFAULT_PRESET = "sound"


def require_preset(name: str) -> None:
    """Raise `UsageError` for a preset that does not exist."""
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")


def options_for(task: Task, agent: str, preset: str = DEFAULT_PRESET, own: Options | None = None) -> dict[str, Any]:
    """All options of a cell: those of `own`, then of the preset, then of the paper's tables where it has them.

    Example:
        >>> options_for(HIGHWAY, "uadqn")["learn_every"], options_for(CARTPOLE, "sentinel", "literal")[READING_OPTION]
        ('triangular', 'literal')
        >>> options_for(HIGHWAY, "uadqn", "tuned")
        {'preset': 'learner', 'learning_rate_end': 0.0001}
    """
    # The list of experiments names the presets too, and is printed without JAX.
    from sentinel_rl.agents.registry import agent_kind
    from sentinel_rl.training.schedule import PLAN_OPTIONS

    require_preset(preset)
    chosen, known = PRESETS[preset].options, {*agent_kind(agent).options, *PLAN_OPTIONS}
    shared, of_agent = (task.shared, task.agents.get(agent, {})) if PRESETS[preset].constants else ({}, {})
    common = {**shared, **chosen.get("all", {}), **chosen.get(task.name, {})}
    return {
        **{name: value for name, value in common.items() if name in known},
        **of_agent,
        **chosen.get(agent, {}),
        **(own or {}),
    }
