"""Agents from options that users name: checks for all, and SENTINEL with its presets and its support."""

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import jax
import numpy as np

from sentinel_rl._checks import is_number, is_whole, shown
from sentinel_rl.agents.learning import Pace
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.agents.tightening import has_alpha
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.heads import Head, QuantileHead, make_head
from sentinel_rl.nets import NORMALISABLE, known_encoder, resolve_encoder
from sentinel_rl.risk import BeliefMeasure, CVaR, RiskMeasure, parse_risk

_LEARNER_PACE = Pace(learn_every=2, warmup_fraction=0.01, epsilon_end=0.01, epsilon_fraction=0.02)
_EXPLORING_PACE = dataclasses.replace(_LEARNER_PACE, epsilon_end=0.05, epsilon_fraction=0.1)
# What all agents have in common that learn with the preset `learner`.
_LEARNER: Mapping[str, Any] = {
    "gamma": None,
    "learning_rate": 1e-3,
    "samples": 64,
    "batch": 64,
    "target_every": 500,
    "time_limit": "bootstrap",
    "encoder": "auto",
    "pace": _LEARNER_PACE,
}
# The first one is the default: a learner that learns, measured on the highway (`results/learner`) and elsewhere
# (`results/elsewhere`). Its discount is `discount_for` the time limit. `paper` has the constants of the paper.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "learner": {
        **_LEARNER,
        "mask_rate": 0.75,
        "aleatory": CVaR(0.5),
        "epistemic": CVaR(0.5),
        "stretch": True,
        "draws": "shared",
        "head": "auto",
    },
    "paper": {
        "gamma": 0.99,
        "learning_rate": 2.5e-4,
        "samples": 100,
        "batch": 32,
        "target_every": 10,
        "time_limit": "terminal",
        "mask_rate": 1 / 3,
        "aleatory": CVaR(0.25),
        "epistemic": CVaR(0.25),
        "encoder": "separate",
        "draws": "own",
        "head": "categorical",
        "pace": Pace(),
    },
}
# What the learner changes where it learns quantiles, of tasks of which it knows less: rewards travel faster from where
# they are found (several steps at once, and a fifth of the updates between two copies), and it explores more: for
# longer, in bouts, and by one member at a time, since an ensemble that is averse to what it does not know never learns
# to land (LunarLander, `results/elsewhere`). For the same reason it begins neutral, and its risk is milder. A frozen
# policy has the mean of the networks over about the last 10 000 steps.
QUANTILES: Mapping[str, Mapping[str, Any]] = {
    "learner": {
        "n_step": 3,
        "target_every": 100,
        "explore": "member",
        "aleatory": CVaR(0.75),
        "epistemic": CVaR(0.75),
        "alpha_start": 1.0,
        "average_over": 50,
        "pace": dataclasses.replace(_EXPLORING_PACE, longest_bout=64),
    },
}
# And what it changes once more for an encoder (`results/elsewhere`). Both end with small steps: where a step that leads
# nowhere costs 2 % of the value, a policy that errs by as much in one state stays there for ever. Images need shorter
# bouts. A table needs none, being optimistic; it has targets of one step, since an action would be blamed for what
# explorers do after it; and it begins with large steps, since every entry is learnt by itself. Both keep the learner's
# own risk and its latest networks, with which they were measured.
_MEASURED_WITH: Mapping[str, Any] = {
    "aleatory": CVaR(0.5),
    "epistemic": CVaR(0.5),
    "alpha_start": None,
    "average_over": None,
}
ENCODERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "learner": {
        "cnn": {
            **_MEASURED_WITH,
            "learning_rate_end": 1e-5,
            "pace": dataclasses.replace(_EXPLORING_PACE, longest_bout=8),
        },
        "table": {
            **_MEASURED_WITH,
            "learning_rate": 5e-3,
            "learning_rate_end": 1e-5,
            "n_step": 1,
            "pace": _EXPLORING_PACE,
        },
    },
}
# Those of the agents that SENTINEL is compared with. By default they are what their own papers say; with `learner`
# they learn as SENTINEL does, from the same encoder, and explore at random as well, by the same epsilon.
BASELINE_PRESETS: Mapping[str, Mapping[str, Any]] = {"paper": {}, "learner": {**_LEARNER, "use_epsilon": True}}
# How the open places of the paper are read. `literal` reads line 12 of the algorithm as printed: target networks that
# are trained, not copied, and that choose the successor's action unweighted.
READINGS: Mapping[str, Mapping[str, Any]] = {
    "sound": {},
    "literal": {"target_update": "gradient", "bootstrap_action": "target"},
}

_LAW_OPTIONS = ("atoms", "v_min", "v_max", "reward_range")


def options_of(agent: type[Any]) -> tuple[str, ...]:
    """The names of an agent's hyperparameters."""
    return tuple(field.name for field in dataclasses.fields(agent) if field.name not in ("pace", "updates"))


OPTIONS = ("preset", "reading", *options_of(SentinelAgent), *_LAW_OPTIONS)


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
        spec: of the environment; its reward range and time limit give the range of returns where none is given.
        options: fields of `SentinelAgent`; ``aleatory`` and ``epistemic`` also as text (``"cvar:0.25"``);
            ``preset`` (``"learner"``, one that learns, or ``"paper"``, its constants) and ``reading`` (``"sound"`` or
            ``"literal"``: how its open places are read); ``head`` also by name; ``atoms`` of the laws, ``v_min`` and
            ``v_max`` of categorical ones, or the ``reward_range`` of a step from which to derive them.

    Raises:
        UsageError: for an unknown option or a value out of range.

    Example:
        >>> spec = EnvSpec("CartPole-v0", 4, 2, reward_range=(1.0, 1.0), max_steps=200)
        >>> make_sentinel(spec, k=8, aleatory="wang:0.1").support.high.__round__(3)
        100.0
        >>> type(make_sentinel(EnvSpec("Mine", 4, 2)).head).__name__
        'QuantileHead'
    """
    require_known(options, OPTIONS)
    chosen = dict(options)
    preset = chosen.get("preset", next(iter(PRESETS)))
    chosen = {**_named(PRESETS, "preset", chosen), **_named(READINGS, "reading", chosen), **chosen}
    known = {name: chosen.pop(name, None) for name in _LAW_OPTIONS}
    chosen["gamma"] = discount_for(spec) if chosen["gamma"] is None else chosen["gamma"]
    for name in ("aleatory", "epistemic"):
        if name in chosen:
            chosen[name] = measure(name, chosen[name])
    chosen = checked(SentinelAgent, chosen)
    if chosen.get("alpha_start") is not None and not _tightens(chosen):
        raise UsageError(
            f"alpha_start tightens cvar and evar, and the measures are {chosen['epistemic']} and {chosen['aleatory']}: "
            "leave it out, or give epistemic or aleatory as one of these"
        )
    # What a run is named after says which networks and laws it has, not that they were chosen.
    chosen |= _encoder_of(spec, chosen)
    head = make_head(chosen.pop("head"), spec, float(chosen["gamma"]), chosen["time_limit"], **known)
    if isinstance(head, QuantileHead):
        encoder = chosen["encoder"] if isinstance(chosen["encoder"], str) else ""
        changed = {**QUANTILES.get(preset, {}), **ENCODERS.get(preset, {}).get(encoder, {})}
        chosen |= {name: value for name, value in changed.items() if name not in options}
        if not _tightens(chosen):
            chosen["alpha_start"] = None
    return SentinelAgent(head, **chosen)


def _tightens(chosen: Mapping[str, Any]) -> bool:
    """Whether a schedule of alpha changes anything with these measures."""
    return has_alpha(chosen["aleatory"]) or has_alpha(chosen["epistemic"])


def baseline_options(agent: type[Any], spec: EnvSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of VDQN or UA-DQN that options stand for, those of a preset included.

    Raises:
        UsageError: for an unknown preset, or a value out of range.
    """
    own = dict(options)
    preset = dict(_named(BASELINE_PRESETS, "preset", own))
    if "gamma" in preset:
        preset["gamma"] = discount_for(spec)
    chosen = checked(agent, {**preset, **own})
    if chosen.get("encoder") is not None:
        if known_encoder(chosen["encoder"]) == "auto" and spec.structure == "states":
            chosen["encoder"] = "mlp"  # a table is no encoder, after which a posterior could stand
        chosen |= _encoder_of(spec, chosen)
    elif chosen.get("layer_norm"):
        raise UsageError(
            f"layer_norm needs one of the encoders {', '.join(NORMALISABLE)}, and there is none: give encoder='mlp' or "
            "preset='learner', or leave layer_norm out"
        )
    return chosen


def _encoder_of(spec: EnvSpec, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The encoder that options stand for, and its sizes."""
    of = chosen["encoder"], chosen.get("hidden"), chosen.get("layer_norm")
    return dict(zip(("encoder", "hidden"), resolve_encoder(spec, *of), strict=True))


def discount_for(spec: EnvSpec) -> float:
    """The discount of the learner: two thirds of a long time limit's steps count, and no more than some hundred.

    ``1 - 2 / max_steps``, at least .95 and at most .99; .99 without a time limit.

    Example:
        >>> [discount_for(EnvSpec("Mine", 4, 2, max_steps=limit)) for limit in (10, 40, 100, 500, None)]
        [0.95, 0.95, 0.98, 0.99, 0.99]
    """
    return 0.99 if spec.max_steps is None else min(max(1 - 2 / spec.max_steps, 0.95), 0.99)


def preset_of(pace: Any) -> str | None:
    """The preset whose pace this is: the one thing of a preset that is no option."""
    for name, preset in PRESETS.items():
        others = (QUANTILES.get(name, {}), *ENCODERS.get(name, {}).values())
        if pace in (preset["pace"], *(changed.get("pace") for changed in others)):
            return name
    return None


def _named(table: Mapping[str, Mapping[str, Any]], what: str, options: dict[str, Any]) -> Mapping[str, Any]:
    """The options that a preset or reading stands for; its own name is taken out."""
    name = options.pop(what, next(iter(table)))
    if not isinstance(name, str) or name not in table:
        hint = (
            f": that is a reading, reading={name!r}"
            if what == "preset" and isinstance(name, str) and name in READINGS
            else ""
        )
        raise UsageError(f"unknown {what} {shown(name)}{hint}: choose one of {', '.join(table)}")
    return table[name]


def measure(name: str, given: object) -> RiskMeasure:
    """The measure that an option names, an object or text.

    Raises:
        UsageError: for what is not a risk measure of one law.
    """
    try:
        found = parse_risk(given) if isinstance(given, str) else given
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if isinstance(found, BeliefMeasure):
        raise UsageError(f"{name}={given!s} is a composite: give one measure for aleatory and one for epistemic")
    if not isinstance(found, RiskMeasure):
        raise UsageError(f"{name} is a risk measure, or text such as 'cvar:0.25', got {shown(given)}")
    return found


def checked(agent: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an agent unless one is a wrong word, of another type or out of range.

    Where a program is compiled, a wrong one could pass. Sizes are limited as well: a slip of the pen must not fill the
    memory.

    Raises:
        UsageError: with what is allowed.
    """
    for field in dataclasses.fields(agent):
        if field.name not in options:
            continue
        value, words = options[field.name], get_args(field.type)
        if get_origin(field.type) is Literal and not (isinstance(value, str) and value in words):
            raise UsageError(f"{field.name} must be one of {', '.join(words)}, got {shown(value)}")
        if get_origin(field.type) is Literal:
            continue
        if field.type is bool and not isinstance(value, bool):
            raise UsageError(f"{field.name} must be true or false, got {shown(value)}")
        if field.name in _RANGES:
            holds, told = _RANGES[field.name]
            if value is None and field.default is None:  # the agent chooses
                continue
            if not holds(value):
                raise UsageError(f"{field.name} must be {told}, got {shown(value)}")
    static = [field.name for field in dataclasses.fields(agent) if field.metadata.get("static")]
    return {name: _hashable(value) if name in static else _fitting(value) for name, value in options.items()}


def _fitting(value: Any) -> Any:
    """A whole number beyond 32 bits as a float, which compiled programs take."""
    return float(value) if is_whole(value, 2**31, 10**300) else value


def _hashable(value: Any) -> Any:
    """A field that programs are compiled for: a tuple in place of a list, a number in place of an array of one."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    single = isinstance(value, np.ndarray | np.generic | jax.Array) and np.ndim(value) == 0
    return _fitting(value.item() if single else value)


def _count(most: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: is_whole(value, 1, most), f"a whole number of at least 1 and at most {most}"


def _number(low: float, high: float, told: str, above: bool = False) -> tuple[Callable[[Any], bool], str]:
    return lambda value: is_number(value, low, high) and not (above and value <= low), told


# The largest finite number of a step: float32 holds its square.
_LARGEST = 1e15
_LARGE = _count(1_000_000_000)
_NOT_NEGATIVE = _number(0, _LARGEST, f"at least 0 and at most {_LARGEST:g}")
_POSITIVE = _number(0, _LARGEST, f"a number above 0 and at most {_LARGEST:g}", above=True)
_SHARE = _number(0, 1, "in (0, 1]", above=True)
_WIDEST, _DEEPEST = 65_536, 64
# By name: an option of several agents means the same in all of them.
_RANGES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("k", "quantiles"), _count(10_000)),
    **dict.fromkeys(("samples", "batch", "draws"), _count(1_000_000)),
    "capacity": _count(100_000_000),
    **dict.fromkeys(("target_every", "n_step", "average_over"), _LARGE),
    "lam": _number(0, float("inf"), "at least 0"),
    **dict.fromkeys(("learning_rate", "learning_rate_end", "adam_eps", "kappa", "beta", "aversion"), _NOT_NEGATIVE),
    **dict.fromkeys(("noise", "initial_sd", "anchor_noise", "gain"), _POSITIVE),
    **dict.fromkeys(("gamma", "mask_rate", "alpha_start", "alpha_fraction"), _SHARE),
    "prior_scale": _NOT_NEGATIVE,
    "prior_on": (lambda place: isinstance(place, str) and place in ("outputs", "mean"), "one of outputs, mean"),
    "max_grad_norm": _POSITIVE,
    "layer_norm": (lambda chosen: isinstance(chosen, bool), "true or false"),
    "head": (lambda head: isinstance(head, (str, Head)), "a name or a sentinel_rl.heads.Head"),
    "hidden": (
        lambda sizes: (
            isinstance(sizes, tuple | list)
            and len(sizes) <= _DEEPEST
            and all(is_whole(size, 1, _WIDEST) for size in sizes)
        ),
        f"sizes of at least 1 and at most {_WIDEST}, at most {_DEEPEST} of them, for example (32, 32)",
    ),
    # Of the drivers of the highway.
    **dict.fromkeys(("horizon", "sight", "right", "ahead", "margin", "near", "free"), _NOT_NEGATIVE),
    "lanes": _count(100),
}
