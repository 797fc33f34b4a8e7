"""What a saved policy holds beside the networks where its training is included: all that is needed to go on."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import CorruptError
from sentinel_rl.replay import filled_part, padded_like
from sentinel_rl.storage.manifest import Manifest
from sentinel_rl.storage.validation import LARGEST_AXIS, entries, from_file, whole
from sentinel_rl.training.history import History
from sentinel_rl.training.standing import Standing

_COUNTERS = ("t", "before", "horizon", "episode")
_WORLD, _HISTORY = "['training']['world'][", "['training']['history']['"


def training_tree(standing: Standing) -> dict[str, Any]:
    """The arrays of a training, the replay without its empty part."""
    world = [] if standing.world is None else jax.tree.leaves(standing.world)
    if any(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in world):
        world = []  # an environment that keeps keys begins a new episode
    state = filled_part(standing.state, standing.clock)
    return {"state": state, "world": world, "history": dict(standing.history or {})}


def training_about(standing: Standing) -> dict[str, int]:
    """The counters of a training."""
    return {name: int(getattr(standing, name) or 0) for name in _COUNTERS}


def training_form(agent: Agent, spec: EnvSpec, manifest: Manifest) -> dict[str, Any]:
    """The form of `training_tree` as a file has it."""
    clock = manifest.about["training"]["t"] + manifest.about["training"]["before"]
    whole_state = state_form(agent, spec)
    with jax.enable_x64(True):  # shapes only, and no type is narrowed
        state = jax.eval_shape(lambda tree: filled_part(tree, clock), whole_state)
    leaves = {leaf.path: leaf.form() for leaf in manifest.leaves if leaf.prng is None}
    world = [leaf for path, leaf in leaves.items() if path.startswith(_WORLD)]
    history = {
        path.removeprefix(_HISTORY).removesuffix("']"): leaf
        for path, leaf in leaves.items()
        if path.startswith(_HISTORY)
    }
    return {"state": state, "world": world, "history": history}


def read_training(
    tree: Mapping[str, Any], about: Mapping[str, Any], agent: Agent, spec: EnvSpec, where: str
) -> Standing:
    """Where the training of a file stands.

    Raises:
        CorruptError: for what no training can have been.
    """
    counters = about["training"]
    try:
        state = jax.tree.map(padded_like, tree["state"], state_form(agent, spec))
    except (MemoryError, RuntimeError) as error:
        raise CorruptError(f"{where} asks for a replay that does not fit into memory: {error}") from error
    history = {name: np.asarray(values) for name, values in tree["history"].items()}
    horizon = counters["horizon"] or None
    if history:
        with from_file(where, "training"):
            steps = max(counters["t"], horizon or 1)
            History(1, steps, 200, spec.gamma, horizon).restore(counters["t"], history)
    return Standing(
        state=state,
        t=counters["t"],
        before=counters["before"],
        horizon=horizon,
        world=list(tree["world"]) or None,
        episode=counters["episode"],
        history=history or None,
    )


def check_counters(about: Mapping[str, Any]) -> None:
    """Raise `ValueError` for counters that no training has."""
    entries("training", about["training"], set(_COUNTERS))
    for name in _COUNTERS:
        whole(f"training.{name}", about["training"][name], 0, LARGEST_AXIS)


def state_form(agent: Agent, spec: EnvSpec) -> Any:
    """The shapes of the whole state of an agent; nothing is computed or allocated."""
    return jax.eval_shape(lambda key: agent.init(spec, key), jax.random.key(0))
