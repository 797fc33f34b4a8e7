"""The agents by the names that users give them; anyone may add one."""

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sentinel_rl.agents.agent import Agent, BaseAgent, FixedPolicy
from sentinel_rl.agents.cdqn import CDQN_OPTIONS, make_cdqn
from sentinel_rl.agents.highway import (
    RULE_OPTIONS,
    SEARCH_OPTIONS,
    HighwayRule,
    HighwaySearch,
    make_highway_rule,
    make_highway_search,
)
from sentinel_rl.agents.options import OPTIONS, make_sentinel, preset_of, require_known
from sentinel_rl.agents.random import RANDOM_OPTIONS, RandomAgent, make_constant, make_random
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.agents.uadqn import UADQN_OPTIONS, UADQNAgent, make_uadqn
from sentinel_rl.agents.vdqn import VDQN_OPTIONS, VDQNAgent, make_vdqn, make_vdqn_cvar
from sentinel_rl.envs.handle import EnvLike, resolve_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.heads import Head

# Makes an agent for an environment of a spec from options, or raises `UsageError`.
Maker = Callable[..., Any]


class Kind(NamedTuple):
    """How an agent is made, from which options, and the class that comes out."""

    make: Maker
    options: tuple[str, ...]
    agent: type[Any]


_KINDS: dict[str, Kind] = {
    "sentinel": Kind(make_sentinel, OPTIONS, SentinelAgent),
    "cdqn": Kind(make_cdqn, CDQN_OPTIONS, SentinelAgent),
    "vdqn": Kind(make_vdqn, VDQN_OPTIONS, VDQNAgent),
    "vdqn-cvar": Kind(make_vdqn_cvar, VDQN_OPTIONS, VDQNAgent),
    "uadqn": Kind(make_uadqn, UADQN_OPTIONS, UADQNAgent),
    "random": Kind(make_random, RANDOM_OPTIONS, RandomAgent),
    "constant": Kind(make_constant, RANDOM_OPTIONS, RandomAgent),
    "highway-rule": Kind(make_highway_rule, RULE_OPTIONS, HighwayRule),
    "highway-search": Kind(make_highway_search, SEARCH_OPTIONS, HighwaySearch),
}


def agent_names() -> list[str]:
    """The names of all agents, those of users included."""
    return list(_KINDS)


def fixed_names() -> list[str]:
    """The names of the policies that learn nothing: they need no training."""
    return [name for name, kind in _KINDS.items() if issubclass(kind.agent, FixedPolicy)]


def agent_kind(name: str) -> Kind:
    """What is registered under a name.

    Raises:
        UsageError: for an unknown name, with the nearest.
    """
    if name not in _KINDS:
        near = difflib.get_close_matches(name, _KINDS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"unknown agent {name!r}: {hint}known are {', '.join(_KINDS)}")
    return _KINDS[name]


def register_agent(name: str, make: Maker, options: Sequence[str] | None = None) -> None:
    """Give an agent a name that `make_agent`, the command line, studies and saved policies know.

    Args:
        name: for users; an agent that was registered under it before is replaced.
        make: a class of agents, whose fields are its options, or a function ``make(spec, **options)`` that returns an
            agent.
        options: the names of the options; by default the fields of the class or the parameters of the function.

    Raises:
        UsageError: for a name that the library itself uses, or something that makes no agent.

    Example:
        >>> from sentinel_rl.agents.random import RandomAgent
        >>> register_agent("always-left", lambda spec: RandomAgent(action=0))
        >>> make_agent("always-left", EnvSpec("CartPole-v1", 4, 2)).action
        0
    """
    if name in _BUILT_IN:
        raise UsageError(f"the agent {name!r} belongs to the library: choose another name")
    if not name or not callable(make):
        raise UsageError(f"register_agent needs a name and a class or function, got {name!r} and {make!r}")
    if isinstance(make, type):
        if not dataclasses.is_dataclass(make):
            raise UsageError(f"{make.__name__} is no agent: derive it from sentinel_rl.agents.agent.BaseAgent")
        cls, fields = make, tuple(field.name for field in dataclasses.fields(make) if field.init)
        known = fields if options is None else tuple(options)
        _KINDS[name] = Kind(_refusing(lambda spec, **given: cls(**given), fields), known, cls)
        return
    parameters = list(inspect.signature(make).parameters.values())[1:]
    named = tuple(each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD))
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    known = named if options is None else tuple(options)
    _KINDS[name] = Kind(make if takes_all else _refusing(make, named), known, BaseAgent)


def _refusing(make: Maker, known: tuple[str, ...]) -> Maker:
    """Make an agent unless an option is not known."""

    def made(spec: EnvSpec, **options: Any) -> Any:
        require_known(options, known)
        return make(spec, **options)

    return made


_BUILT_IN = frozenset(_KINDS)


def make_agent(name: str, env: EnvLike, **options: Any) -> Agent:
    """Make an agent by its name.

    Args:
        name: of a registered agent, for example ``"sentinel"``.
        env: the environment, as a name, a Gymnasium or a JAX one, or its `EnvSpec`.
        options: of the agent.

    Raises:
        UsageError: for an unknown name or option, or a value out of range.

    Example:
        >>> make_agent("uadqn", EnvSpec("CartPole-v0", 4, 2), quantiles=20).quantiles
        20
    """
    return require_agent(agent_kind(name).make(resolve_env(env).spec, **options))


def require_agent(agent: Any) -> Agent:
    """Return an agent unless a method of the protocol is missing.

    Raises:
        UsageError: with what is missing.
    """
    missing = [name for name in _MEMBERS if not hasattr(type(agent), name)]
    if missing:
        raise UsageError(
            f"{type(agent).__name__} is no agent: it lacks {', '.join(missing)}. "
            "Derive it from sentinel_rl.agents.BaseAgent, which has a default for most"
        )
    return cast(Agent, agent)


_MEMBERS: tuple[str, ...] = tuple(name for name in vars(Agent) if not name.startswith("_"))


def named_options(agent: Any) -> tuple[str, dict[str, Any]] | None:
    """The name of an agent and the options that make it again; None for one of a class that is not registered.

    Example:
        >>> agent = make_agent("sentinel", EnvSpec("CartPole-v0", 4, 2, (1.0, 1.0), 200), k=2)
        >>> name, options = named_options(agent)
        >>> name, options["k"], options["atoms"]
        ('sentinel', 2, 51)
    """
    for name, kind in _KINDS.items():
        if kind.agent is type(agent):
            values = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)}
            preset = preset_of(values.pop("pace", None))
            # What the others are by themselves needs no name.
            if preset is not None and "preset" in kind.options and (name == "sentinel" or preset != "paper"):
                values["preset"] = preset
            values.pop("updates", None)  # a training fills it in
            if isinstance(head := values.get("head"), Head):
                values |= head.options()
            return name, values
    return None


def options_of_kind(name: str) -> Mapping[str, Any]:
    """The options of a registered agent with their defaults, where its class has them."""
    defaults = {field.name: field.default for field in dataclasses.fields(agent_kind(name).agent)}
    return {option: defaults.get(option, dataclasses.MISSING) for option in agent_kind(name).options}
