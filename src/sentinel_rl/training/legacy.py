"""Files of version 0.1: the defaults that they were written with, frozen here, and how they are read today.

Checkpoints without a history are completed in `keeper`, configurations of run folders in `trainer`. Version 0.1 noted
options as they were typed. What was not typed had the defaults below; they must not change when
those of the library do.
"""

from collections.abc import Mapping
from typing import Any

_LEARNING: Mapping[str, Any] = {
    "gamma": 0.99,
    "learning_rate": 2.5e-4,
    "adam_eps": 1e-7,
    "samples": 100,
    "batch": 32,
    "capacity": 100_000,
    "target_every": 10,
    "time_limit": "terminal",
}
_CATEGORICAL: Mapping[str, Any] = {
    **_LEARNING,
    "hidden": (32, 32, 128),
    "network": "separate",
    "atoms": 51,
    "preset": "sound",
}
_SENTINEL: Mapping[str, Any] = {
    **_CATEGORICAL,
    "k": 4,
    "epistemic": "cvar:0.25",
    "aleatory": "cvar:0.25",
    "lam": 1.0,
    "mask": "bernoulli",
    "mask_rate": 1 / 3,
    "aggregate": "belief",
    "divergence": "marginal_to_member",
    "prefer": "consensus",
}
_VDQN: Mapping[str, Any] = {
    **_LEARNING,
    "use_epsilon": False,
    "noise": 0.1,
    "risk": "expectation",
    "acting": "step",
    "bootstrap": "greedy",
    "draws": 100,
    "hidden": (100,),
    "initial_sd": 0.017,
}
_UADQN: Mapping[str, Any] = {
    **_LEARNING,
    "use_epsilon": False,
    "quantiles": 50,
    "kappa": 1.0,
    "beta": 0.2,
    "aversion": 0.1,
    "anchor_noise": 1.0,
    "centring": "action",
    "evaluation": "risk",
    "gain": 3.0,
    "hidden": (256,),
}
AGENTS: Mapping[str, Mapping[str, Any]] = {
    "sentinel": _SENTINEL,
    "cdqn": _CATEGORICAL,
    "vdqn": _VDQN,
    "vdqn-cvar": {**_VDQN, "risk": "cvar:0.25", "acting": "score", "bootstrap": "score"},
    "uadqn": _UADQN,
    "random": {"action": None, "gamma": 0.99},
}
# What a preset of 0.1 stood for; today it is a reading.
READINGS: Mapping[str, Mapping[str, Any]] = {
    "sound": {"target_update": "copy", "bootstrap_action": "online"},
    "literal": {"target_update": "gradient", "bootstrap_action": "target"},
}
PLAN: Mapping[str, Any] = {
    "learn_every": 100,
    "epsilon_start": 1.0,
    "epsilon_end": 0.05,
    "epsilon_fraction": 0.25,
}


def full_options(agent: str, typed: Mapping[str, Any], with_plan: bool = True) -> dict[str, Any]:
    """All options of an agent of version 0.1, from those that were typed, as this version understands them.

    Example:
        >>> options = full_options("sentinel", {"preset": "literal", "k": 2})
        >>> options["preset"], options["reading"], options["k"], options["mask_rate"] == 1 / 3
        ('paper', 'literal', 2, True)
    """
    defaults = AGENTS.get(agent, {})
    reading = {**defaults, **typed}.get("preset")
    options = {**defaults, **READINGS.get(str(reading), {}), **(PLAN if with_plan else {}), **typed}
    if with_plan:
        options.setdefault("warmup", options.get("samples", 0))
    if "preset" in options:
        options |= {"preset": "paper", "reading": options["preset"]}
    if "network" in options:
        options["encoder"] = {"separate": "separate", "shared": "mlp"}[options.pop("network")]
        options["draws"] = "own"
    return options


def request(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a run folder of version 0.1, whose configuration it was."""
    agent = str(configuration.get("agent", "sentinel"))  # the first runs had only this one
    return {**configuration, "agent": agent, "options": full_options(agent, configuration["options"])}


def is_legacy(configuration: Mapping[str, Any]) -> bool:
    """Whether a configuration was saved by version 0.1: options as typed, and not all fields of what runs."""
    return "options" in configuration and "plan" not in configuration
