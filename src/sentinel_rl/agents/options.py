"""SENTINEL from options that users name: presets, measures as text, and a support that can hold the returns."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import numpy as np

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.returns import Support
from sentinel_rl.risk import BeliefMeasure, RiskMeasure, parse_risk

# `sound` is the default. `literal` reads line 12 of the algorithm as printed: target networks that are trained, not
# copied, and that choose the successor's action unweighted.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "sound": {},
    "literal": {"target_update": "gradient", "bootstrap_action": "target"},
}

_SUPPORT_OPTIONS = ("atoms", "v_min", "v_max", "reward_range")
_AGENT_OPTIONS = tuple(field.name for field in dataclasses.fields(SentinelAgent) if field.name != "support")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    field.name: get_args(field.type) for field in dataclasses.fields(SentinelAgent) if get_origin(field.type) is Literal
}
OPTIONS = ("preset", *_AGENT_OPTIONS, *_SUPPORT_OPTIONS)


def require_known(given: Iterable[str], known: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise `UsageError` for an option that does not exist, suggesting the nearest, also of the `others`."""
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *others], n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise UsageError(f"unknown option {name}: {hint}")


def make_sentinel(spec: EnvSpec, **options: Any) -> SentinelAgent:
    """Make the agent for an environment.

    Args:
        spec: of the environment; its reward range and time limit give the support where none is given.
        options: fields of `SentinelAgent`; ``aleatory`` and ``epistemic`` also as text (``"cvar:0.25"``);
            ``preset`` (``"sound"`` or ``"literal"``); ``atoms``, ``v_min``, ``v_max`` of the support, or the
            ``reward_range`` of a step from which to derive it.

    Raises:
        UsageError: for an unknown option or a value out of range.

    Example:
        >>> spec = EnvSpec("CartPole-v0", 4, 2, reward_range=(1.0, 1.0), max_steps=200)
        >>> make_sentinel(spec, k=8, aleatory="wang:0.1").support.high.__round__(3)
        86.602
    """
    require_known(options, OPTIONS)
    preset = options.pop("preset", "sound")
    if preset not in PRESETS:
        raise UsageError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}")
    chosen = {**PRESETS[preset], **options}
    grid = {name: chosen.pop(name, None) for name in _SUPPORT_OPTIONS}
    for name in ("aleatory", "epistemic"):
        if name in chosen:
            chosen[name] = _measure(name, chosen[name])
    _require_choices(chosen)
    _require_ranges(chosen)
    gamma, limit = chosen.get("gamma", 0.99), chosen.get("time_limit", "terminal")
    return SentinelAgent(make_support(spec, gamma, limit, **grid), **chosen)


def make_support(
    spec: EnvSpec,
    gamma: float,
    time_limit: str = "terminal",
    atoms: int | None = None,
    v_min: float | None = None,
    v_max: float | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Support:
    """Derive the range of discounted returns from the rewards of a step, the discount and the time limit.

    ``[min(0, r_min S), max(0, r_max S)]`` with ``S = (1 - gamma^H) / (1 - gamma)``, H the time limit, or without
    limit where time limits are bootstrapped through. A range that is given is kept, but must hold the returns.
    """
    rewards = reward_range if reward_range is not None else spec.reward_range
    horizon = spec.max_steps if time_limit == "terminal" else None
    needed = None
    if rewards is not None and (gamma < 1 or horizon is not None):
        sums = float(horizon or 0) if gamma == 1 else (1 - (gamma**horizon if horizon else 0.0)) / (1 - gamma)
        needed = min(0.0, rewards[0] * sums), max(0.0, rewards[1] * sums)
    if needed is None and (v_min is None or v_max is None):
        raise UsageError(
            f"the range of returns of {spec.name} is not known: give v_min and v_max, or the reward_range of a step"
        )
    low = v_min if v_min is not None else needed[0]  # type: ignore[index]
    high = v_max if v_max is not None else needed[1]  # type: ignore[index]
    if time_limit == "bootstrap" and needed is not None and (low > needed[0] + 1e-6 or high < needed[1] - 1e-6):
        raise UsageError(
            f"the support [{low:g}, {high:g}] cannot hold the returns of {spec.name} with time_limit='bootstrap': "
            f"they reach [{needed[0]:g}, {needed[1]:g}]"
        )
    try:
        return Support(low, high, 51 if atoms is None else atoms)
    except ValueError as error:
        raise UsageError(f"{error}: check v_min, v_max, reward_range and atoms") from error


def _measure(name: str, given: object) -> RiskMeasure:
    try:
        measure = parse_risk(given) if isinstance(given, str) else given
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if isinstance(measure, BeliefMeasure):
        raise UsageError(f"{name}={given!s} is a composite: give one measure for aleatory and one for epistemic")
    if not isinstance(measure, RiskMeasure):
        raise UsageError(f"{name} is a risk measure, or text such as 'cvar:0.25', got {given!r}")
    return measure


def _require_choices(options: Mapping[str, Any]) -> None:
    """Check the options that are one of a few words: where a program is compiled, a wrong one could pass."""
    for name, choices in _CHOICES.items():
        if name in options and options[name] not in choices:
            raise UsageError(f"{name} must be one of {', '.join(choices)}, got {options[name]!r}")


def _require_ranges(options: Mapping[str, Any]) -> None:
    """Check the numbers that no type checks."""
    for name in ("k", "samples", "batch", "capacity", "target_every"):
        if name in options and not (_is_whole(options[name]) and options[name] >= 1):
            raise UsageError(f"{name} must be a whole number of at least 1, got {options[name]!r}")
    if not all(_is_whole(size) and size >= 1 for size in options.get("hidden", ())):
        raise UsageError(f"hidden must be sizes of at least 1, for example (32, 32), got {options['hidden']!r}")
    for name in ("lam", "learning_rate", "adam_eps"):
        if name in options and not options[name] >= 0:
            raise UsageError(f"{name} must be at least 0, got {options[name]}")
    for name in ("gamma", "mask_rate"):
        if name in options and not 0 < options[name] <= 1:
            raise UsageError(f"{name} must be in (0, 1], got {options[name]}")


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
