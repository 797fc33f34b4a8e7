"""Saved policies: one small file with the networks and what is needed to act with them."""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import agent_kind, agent_names, make_agent, named_options, options_of_kind
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import CorruptError, IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.risk import BeliefMeasure, RiskMeasure, parse_risk
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.configuration import plain, restored
from sentinel_rl.storage.validation import (
    LARGEST_AXIS,
    LARGEST_WHOLE,
    LONGEST_NAME,
    entries,
    from_file,
    names,
    number,
    require,
    sizes,
    text,
    whole,
)
from sentinel_rl.training import legacy
from sentinel_rl.training.schedule import PLAN_OPTIONS
from sentinel_rl.training.standing import Standing
from sentinel_rl.training.training_file import (
    check_counters,
    read_training,
    state_form,
    training_about,
    training_form,
    training_tree,
)

VERSION = 2
_SHIPPED = Path(__file__).parent / "policies"


class SavedPolicy(NamedTuple):
    """A policy that was loaded.

    Args:
        agent: the agent it belongs to.
        state: one that can act and explain.
        handle: the sizes of the environment it was trained in.
        kind: the name of the agent.
        options: of the agent and of its training, all of them.
        seed: of its run.
        steps: that it was trained for.
        training: where its training stands, if the file tells.
    """

    agent: Agent
    state: Any
    handle: EnvHandle
    kind: str
    options: dict[str, Any]
    seed: int
    steps: int
    training: Standing | None = None


def policy_file(folder: Path, seed: int) -> Path:
    """Where the policy of a seed is written in a run's folder."""
    return folder / f"policy_seed_{seed}.zip"


def best_file(folder: Path, seed: int) -> Path:
    """Where the best policy of a seed by its evaluations is written in a run's folder."""
    return folder / f"best_seed_{seed}.zip"


def save_policy(
    path: str | Path,
    agent: Agent,
    state: Any,
    handle: EnvHandle,
    kind: str,
    options: Mapping[str, Any],
    seed: int,
    steps: int,
    *,
    compress: bool = False,
    training: Standing | None = None,
) -> Path:
    """Save what is needed to act, and the training if it is given, as one file without pickle.

    A bare name gets ``.zip``.

    The file notes every option, those that were not given with their values: it does not depend on defaults. A risk
    measure of the user's own cannot be written down: a warning says that loading will need it.

    Raises:
        UsageError: for an agent that has no registered name.
    """
    if kind not in agent_names():
        raise UsageError(f"{kind!r} is not the name of an agent: give it one with register_agent, so that it can load")
    found, known = named_options(agent), options_of_kind(kind)
    if found is not None and agent_kind(kind).agent is type(agent):
        options = {**options, **{name: value for name, value in found[1].items() if name in known}}
    written, missing = {}, []
    for name, value in options.items():
        if isinstance(value, RiskMeasure):
            if not _parses_back(value):
                missing.append(name)
                continue
            value = str(value)
        written[name] = value
    target = Path(path) if Path(path).suffix else Path(f"{path}.zip")
    if missing:
        needed = ", ".join(f"{name}={type(options[name]).__name__}(...)" for name in missing)
        warnings.warn(
            f"{target} cannot hold the risk measure of {' and '.join(missing)}, which has no registered name: "
            f"loading needs it again, load({target.name!r}, {needed})",
            SentinelWarning,
            stacklevel=3,
        )
    about = {
        "version": VERSION,
        "agent": kind,
        "options": written,
        "needs": missing,
        "spec": dataclasses.asdict(handle.spec),
        "obs_shape": handle.obs_shape,
        "first_action": handle.first_action,
        "seed": seed,
        "num_timesteps": steps,
    }
    tree = agent.policy(state)
    if training is not None:
        tree, about["training"] = {"policy": tree, "training": training_tree(training)}, training_about(training)
    return save_archive(target, tree, plain(about), compress=compress)


def shipped_policies() -> dict[str, Path]:
    """The files of the trained policies that come with the library, by name.

    Example:
        >>> list(shipped_policies())
        ['highway-composite', 'highway-neutral']
    """
    return {path.stem: path for path in sorted(_SHIPPED.glob("*.zip"))}


def policy_path(path: str | Path) -> Path:
    """The file of a policy; its ending may be left out, and the name of a shipped one is taken if there is no file."""
    path = Path(path)
    if path.exists():
        return path
    whole_name = Path(f"{path}.zip")
    return whole_name if whole_name.is_file() else shipped_policies().get(str(path), path)


def load_policy(path: str | Path, **measures: Any) -> SavedPolicy:
    """Load what `save_policy` wrote, now or in version 0.1.

    Args:
        path: of the file, or the name of a shipped policy (see `shipped_policies`).
        measures: options that the file could not hold, such as ``aleatory``, or other values of options of the agent.

    Raises:
        IncompatibleError: for a file that holds no policy, or one of an unknown agent.
        UsageError: when a measure is needed and not given.
    """
    path = policy_path(path)
    manifest = read_archive_manifest(path)
    about = manifest.about
    if "spec" not in about:
        raise IncompatibleError(f"{path} holds no policy: give a file that an agent's save() wrote")
    kind = str(about.get("agent", "sentinel"))
    if kind not in agent_names():
        raise IncompatibleError(
            f"{path} holds an agent of the unknown kind {kind[:LONGEST_NAME]!r}: register it with register_agent before"
            " loading, or use the version that wrote it"
        )
    with from_file(str(path), "policy"):
        spec = _checked_spec(about)
        # Only what makes the agent and its plan: a file does not choose where anything is written.
        known = {*options_of_kind(kind), *PLAN_OPTIONS, *legacy.AGENTS.get(kind, {})}
        entries("options", about["options"], known)
        options = restored(about["options"])
    if "version" not in about:
        options = legacy.full_options(kind, options)
    lacking = [name for name in about.get("needs", ()) if name not in measures]
    if lacking:
        given = ", ".join(f"{name}=..." for name in lacking)
        raise UsageError(f"{path} was saved without the risk measure of {' and '.join(lacking)}: load it with {given}")
    options |= measures
    own = {name: value for name, value in options.items() if name not in PLAN_OPTIONS}
    with warnings.catch_warnings():  # what was worth a warning was warned about before it was trained
        warnings.simplefilter("ignore", SentinelWarning)
        try:
            agent = make_agent(kind, spec, **own)
        except UsageError as error:
            if measures:
                raise
            raise CorruptError(f"{path} is no policy of sentinel-rl, or was edited: {error}") from error
    form, training = policy_form(agent, spec), None
    if "training" in about:
        with from_file(str(path), "policy"):
            check_counters(about)
            form = {"policy": form, "training": training_form(agent, spec, manifest)}
    policy, _ = load_archive(path, form)
    if "training" in about:
        training = read_training(policy["training"], about, agent, spec, str(path))
        # Both sets of networks in the file: those that act, and those that training goes on with.
        policy = policy["policy"]
    networks = jax.tree.leaves((policy, () if training is None else agent.policy(training.state)))
    if not all(np.isfinite(leaf).all() for leaf in networks if jnp.issubdtype(leaf.dtype, jnp.floating)):
        raise CorruptError(f"{path} has weights that are not finite, and can choose nothing: restore it from a copy")
    handle = EnvHandle(spec, None, tuple(about["obs_shape"]), int(about["first_action"]))
    state = agent.with_policy(policy)
    if training is not None:
        state = training.state
    elif str(jax.tree.structure(state)) == str(jax.tree.structure(state_form(agent, spec))):
        # The policy of some agents is the whole of them.
        training = Standing(state, int(about["num_timesteps"]), horizon=int(about["num_timesteps"]) or None)
    return SavedPolicy(agent, state, handle, kind, options, int(about["seed"]), int(about["num_timesteps"]), training)


def _checked_spec(about: Mapping[str, Any]) -> EnvSpec:
    """The sizes of the environment that a file names, checked with the other numbers beside them.

    Raises:
        ValueError: or another error that `from_file` takes in.
    """
    given = about["spec"]
    entries("spec", given, {field.name for field in dataclasses.fields(EnvSpec)})
    text("spec.name", given["name"])
    whole("spec.obs_size", given["obs_size"], 1, LARGEST_AXIS)
    whole("spec.num_actions", given["num_actions"], 1, LARGEST_AXIS)
    number("spec.gamma", given.get("gamma", 0.99), 0.0, 1.0)
    whole("spec.copies", given.get("copies", 1), 1, LARGEST_AXIS)
    require(isinstance(given.get("in_bytes", False), bool), "spec.in_bytes", given.get("in_bytes"), "true or false")
    for name in ("obs_low", "obs_high"):
        require(given.get(name) is None or len(given[name]) == given["obs_size"], f"spec.{name}", "others", "one each")
    if given.get("action_names") is not None:
        names("spec.action_names", given["action_names"])
    if given.get("max_steps") is not None:
        whole("spec.max_steps", given["max_steps"], 1)
    if (rewards := given.get("reward_range")) is not None:
        low, high = rewards
        number("spec.reward_range", low)
        number("spec.reward_range", high, low)
    sizes("obs_shape", about["obs_shape"], 1)
    require(math.prod(about["obs_shape"]) == given["obs_size"], "obs_shape", about["obs_shape"], "that of obs_size")
    whole("first_action", about["first_action"], -LARGEST_WHOLE)
    whole("seed", about["seed"])
    whole("num_timesteps", about["num_timesteps"])
    names("needs", about.get("needs", ()))
    return EnvSpec(**restored(given))


def policy_form(agent: Agent, spec: EnvSpec) -> Any:
    """The shapes of a policy; nothing is computed or allocated."""
    return jax.eval_shape(lambda key: agent.policy(agent.init(spec, key)), jax.random.key(0))


def _parses_back(measure: RiskMeasure) -> bool:
    """Whether the text of a measure stands for the same measure."""
    try:
        found: RiskMeasure | BeliefMeasure = parse_risk(str(measure))
    except ValueError:
        return False
    return type(found) is type(measure)
