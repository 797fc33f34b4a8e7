"""What a command that trains was asked for: typed options on top of a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sentinel_rl.agents.registry import agent_names
from sentinel_rl.cli.configuration import Configuration, read_configuration
from sentinel_rl.cli.environments import EnvRequest, parse_env_settings, require_trust
from sentinel_rl.cli.options import parse_seeds, parse_settings
from sentinel_rl.errors import UsageError


class TrainingRequest(NamedTuple):
    """What to train, where, for how long and with which seeds."""

    agent: str
    env: EnvRequest
    steps: int
    seeds: list[int]
    options: dict[str, Any]


def training_request(
    typed: Mapping[str, Any],
    env: str | None,
    env_settings: Sequence[str] | None,
    wrappers: Sequence[str] | None,
    named: Mapping[str, Any],
    settings: Sequence[str] | None,
    config: Path | None,
    trust: bool,
) -> TrainingRequest:
    """Put together what was typed and what a file says; where both say something, the typed one wins.

    Args:
        typed: ``agent``, ``steps`` and ``seeds``, None where they were not typed.
        env: the name of the environment, if it was typed.
        env_settings: ``name=value`` settings of the environment; they are added to those of the file.
        wrappers: in place of those of the file.
        named: options of the agent that have an option of the command line, None where they were not typed.
        settings: ``name=value`` options of agent and plan.
        config: the file.
        trust: whether code that a run's folder names may be imported.

    Raises:
        UsageError: for an environment that nobody names, and for what is not known.
    """
    found = Configuration({}, False) if config is None else read_configuration(config)
    content = found.content
    typed = {name: value for name, value in typed.items() if value is not None}
    name = env if env is not None else content.get("env")
    if name is None:
        raise UsageError("which environment? Give --env NAME, or a --config file that names one")
    agent = str(typed.get("agent", content.get("agent", "sentinel")))
    if agent not in agent_names():
        raise UsageError(f"--agent {agent}: choose one of {', '.join(agent_names())}")
    # Another environment has other settings, and another agent other options.
    same = env in (None, content.get("env"))
    kept, listed = (content.get("env_kwargs", {}), content.get("wrappers", [])) if same else ({}, [])
    if found.foreign:
        from_file = EnvRequest(str(name) if env is None else "", {}, tuple(listed) if wrappers is None else ())
        require_trust(from_file, config, trust)
    request = EnvRequest(
        str(name), {**kept, **parse_env_settings(env_settings or [])}, tuple(listed if wrappers is None else wrappers)
    )
    options = content.get("options", {}) if agent == content.get("agent", agent) else {}
    given = {option: value for option, value in named.items() if value is not None}
    seeds = typed.get("seeds", content.get("seeds", "1"))
    return TrainingRequest(
        agent,
        request,
        int(typed.get("steps", content.get("steps", 100_000))),
        parse_seeds(seeds if isinstance(seeds, str) else _seed_text(seeds)),
        {**options, **given, **parse_settings(settings or [], agent)},
    )


def _seed_text(seeds: Any) -> str:
    """Seeds of a file as they would be typed."""
    return str(seeds) if isinstance(seeds, int) else "".join(f"{seed}," for seed in seeds)
