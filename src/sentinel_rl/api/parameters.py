"""The parameters of an agent as arrays by name, and the replay as a file: SB3's methods for both."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl._checks import is_whole
from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import CorruptError, IncompatibleError, UsageError
from sentinel_rl.replay import Replay, filled_part, padded_like
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.configuration import Difference, table
from sentinel_rl.training.schedule import LARGEST_STEP
from sentinel_rl.training.training_file import state_form

Parameters = dict[str, dict[str, np.ndarray]]


def parameters_of(state: Any) -> Parameters:
    """The arrays of a state by part and place, all but the replay: ``{"online": {".weights[0]": ...}, ...}``."""
    return {name: _named(part) for name, part in _parts(state).items()}


def with_parameters(state: Any, given: Mapping[str, Mapping[str, Any]], exact_match: bool) -> Any:
    """A state with other parameters.

    Args:
        state: that it is made from.
        given: as `parameters_of` gives them.
        exact_match: all parts must be given; otherwise the others stay as they are.

    Raises:
        IncompatibleError: for other names or shapes, with a table.
    """
    parts = _parts(state)
    unknown = sorted(set(given) - set(parts))
    missing = sorted(set(parts) - set(given)) if exact_match else []
    if unknown or missing:
        what = f"no {unknown[0]!r}" if unknown else f"{missing[0]!r}, which is not given: give it, or exact_match=False"
        raise IncompatibleError(f"the parameters are {', '.join(parts)}: there is {what}")
    changed = {}
    for name, arrays in given.items():
        known = _named(parts[name])
        rows = [
            Difference(f"{name}{place}", _kind(arrays.get(place)), _kind(known.get(place)))
            for place in dict.fromkeys([*known, *arrays])
            if _kind(arrays.get(place)) != _kind(known.get(place))
        ]
        if rows:
            raise IncompatibleError(f"these parameters are those of another agent:\n{table(rows)}")
        tree = jax.tree.structure(parts[name])
        dtypes = [leaf.dtype for leaf in jax.tree.leaves(parts[name])]
        leaves = [jnp.asarray(arrays[place], dtype) for place, dtype in zip(known, dtypes, strict=True)]
        changed[name] = jax.tree.unflatten(tree, leaves)
    return dataclasses.replace(state, **changed)


def _parts(state: Any) -> dict[str, Any]:
    """The fields of a state that hold parameters."""
    if not dataclasses.is_dataclass(state):
        raise UsageError(f"the state of this agent, {type(state).__name__}, has no named parts: use save and load")
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    keyless = {
        name: part
        for name, part in fields.items()
        if not any(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in jax.tree.leaves(part))
    }
    return {name: part for name, part in keyless.items() if not isinstance(part, Replay) and jax.tree.leaves(part)}


def _named(tree: Any) -> dict[str, np.ndarray]:
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}


def _kind(array: Any) -> str:
    return "absent" if array is None else str(list(np.shape(array)))


def save_replay(path: str | Path, state: Any, clock: int) -> Path:
    """Save the replay of a state, of which `clock` transitions were taken in; a bare name gets ``.zip``."""
    replay = _replay(state)
    target = Path(path) if Path(path).suffix else Path(f"{path}.zip")
    return save_archive(target, filled_part(replay, clock), {"replay": {"clock": clock, "obs_size": replay.obs_size}})


def load_replay(path: str | Path, agent: Agent, spec: EnvSpec, state: Any) -> tuple[Any, int]:
    """A state with a saved replay, and how many transitions were taken in.

    Raises:
        IncompatibleError: for the replay of another agent, or a file of something else.
        CorruptError: for a damaged file, or one with numbers that no environment may give.
    """
    form = _replay(state_form(agent, spec))
    path = Path(path) if Path(path).suffix or Path(path).exists() else Path(f"{path}.zip")
    about = read_archive_manifest(path).about.get("replay")
    if not isinstance(about, dict) or not is_whole(about.get("clock"), 0, LARGEST_STEP):
        raise IncompatibleError(f"{path} holds no replay: give a file that save_replay_buffer wrote")
    clock: int = about["clock"]
    cut = jax.eval_shape(lambda replay: filled_part(replay, clock), form)
    found, _ = load_archive(path, cut)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found) if np.issubdtype(leaf.dtype, np.floating)):
        raise CorruptError(f"{path} has transitions that are not finite, from which nothing is learnt: record it again")
    return dataclasses.replace(state, replay=jax.tree.map(padded_like, found, form)), clock


def _replay(state: Any) -> Replay:
    found = getattr(state, "replay", None)
    if not isinstance(found, Replay):
        raise UsageError("this agent has no replay")
    return found
