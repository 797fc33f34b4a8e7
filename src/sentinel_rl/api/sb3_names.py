"""SB3's names for options, and what they are here.

A name whose meaning is the same, or can be computed, is taken. For any other the error names ours.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from sentinel_rl.errors import UsageError

# Names that mean the same.
SAME: Mapping[str, str] = {
    "buffer_size": "capacity",
    "learning_starts": "warmup",
    "batch_size": "batch",
    "exploration_initial_eps": "epsilon_start",
    "exploration_final_eps": "epsilon_end",
    "exploration_fraction": "epsilon_fraction",
}
# Names whose values are computed.
COMPUTED = ("train_freq", "gradient_steps", "target_update_interval", "learning_rate", "policy_kwargs")
# What to use instead of those that have no place here.
INSTEAD: Mapping[str, str] = {
    "tau": "target networks are copied whole, every target_every updates",
    "max_grad_norm": "gradients are not clipped by an option of this name",
    "replay_buffer_class": "the replay is the agent's own, of the size capacity",
    "replay_buffer_kwargs": "the replay is the agent's own, of the size capacity",
    "optimize_memory_usage": "the replay is the agent's own, of the size capacity",
    "n_steps": "targets look one step ahead",
    "policy_delay": "an update trains all networks",
    "ent_coef": "exploration is epsilon's: epsilon_start, epsilon_end and epsilon_fraction",
    "use_sde": "actions are discrete: exploration is epsilon's",
    "stats_window_size": "log lines average the last 100 episodes",
    "custom_objects": "files hold no pickled objects: give options of the agent by their names",
}
# Values at which an option of SB3 does what is done here anyway.
HARMLESS: Mapping[str, Any] = {
    "tau": 1.0,
    "replay_buffer_class": None,
    "replay_buffer_kwargs": None,
    "optimize_memory_usage": False,
    "n_steps": 1,
    "use_sde": False,
    "stats_window_size": 100,
    "custom_objects": None,
}


def understood(options: Mapping[str, Any], known: tuple[str, ...], resolve: Callable[[dict[str, Any]], Any]) -> Any:
    """Options under our names.

    Args:
        options: as they were given.
        known: our names, which are never translated.
        resolve: gives the value of ours that others stand for: a function of the options that returns a dictionary
            with ``batch``, ``samples`` and ``learn_every``.

    Raises:
        UsageError: for a name of SB3 that has no place here, or that is given twice.
    """
    given = {name: value for name, value in options.items() if name in known and name != "learning_rate"}
    theirs = {name: value for name, value in options.items() if name not in given}
    taken: dict[str, Any] = {}
    for name, value in theirs.items():
        if name in SAME:
            taken[SAME[name]] = value
        elif name in HARMLESS and _same(HARMLESS[name], value):
            continue
        elif name in INSTEAD:
            raise UsageError(f"SB3's option {name}={value!r} has no place here: {INSTEAD[name]}")
        elif name not in COMPUTED:
            taken[name] = value  # nothing of SB3: known elsewhere, or refused there
    if "learning_rate" in theirs:
        taken |= _learning_rate(theirs["learning_rate"])
    if theirs.get("policy_kwargs"):
        taken |= _networks(theirs["policy_kwargs"])
    if "train_freq" in theirs:
        taken["learn_every"] = _steps(theirs["train_freq"])
    twice = sorted(set(taken) & set(given))
    if twice:
        raise UsageError(f"{twice[0]} is given twice, by its name here and by SB3's: give one of them")
    ours = {**given, **taken}
    if not set(theirs) & {"gradient_steps", "target_update_interval", "batch_size"}:
        return ours
    return ours | _counted(theirs, ours, resolve)


def _counted(theirs: Mapping[str, Any], ours: dict[str, Any], resolve: Callable[[dict[str, Any]], Any]) -> Any:
    """What SB3 counts in other units: gradient steps per update, and steps between copies of the target networks."""
    found, counted = resolve(ours), {}
    every = found["learn_every"]
    if "gradient_steps" in theirs:
        steps = int(theirs["gradient_steps"])
        if steps == -1 and isinstance(every, int):
            steps = every
        if steps < 1:
            raise UsageError(
                f"gradient_steps={theirs['gradient_steps']} needs a train_freq in steps: an update makes "
                "samples / batch gradient steps, give samples and batch"
            )
        counted["samples"] = steps * found["batch"]
    elif "batch_size" in theirs and "samples" not in ours and found["samples"] < found["batch"]:
        counted["samples"] = found["batch"]  # an update has one minibatch at least
    if "target_update_interval" in theirs:
        if not isinstance(every, int):
            raise UsageError(
                f"target_update_interval={theirs['target_update_interval']} is in steps, and updates are {every}: give "
                "target_every, a number of updates"
            )
        counted["target_every"] = max(1, round(int(theirs["target_update_interval"]) / every))
    twice = sorted(set(counted) & set(ours))
    if twice:
        raise UsageError(f"{twice[0]} is given twice, by its name here and by SB3's: give one of them")
    return counted


def _learning_rate(given: Any) -> dict[str, Any]:
    """A number, or a schedule of SB3: a function of the share of the training that is left, constant or linear."""
    if not callable(given):
        return {"learning_rate": given}
    start, middle, end = (float(given(left)) for left in (1.0, 0.5, 0.0))
    if abs(middle - (start + end) / 2) > 1e-9 * max(abs(start), abs(end)):
        raise UsageError("a learning rate is constant or linear: give learning_rate, and learning_rate_end")
    return {"learning_rate": start} if start == end else {"learning_rate": start, "learning_rate_end": end}


def _networks(given: Mapping[str, Any]) -> dict[str, Any]:
    """SB3's description of the networks, of which the sizes are taken."""
    others = sorted(set(given) - {"net_arch", "n_quantiles"})
    if others or not isinstance(given.get("net_arch", ()), (list, tuple)):
        what = others[0] if others else f"net_arch={given['net_arch']!r}"
        raise UsageError(
            f"policy_kwargs: {what} has no place here. Give hidden=(256, 256) for the sizes of the layers, "
            "encoder='mlp', 'set', 'cnn' or one of your own for their kind"
        )
    sizes = {"hidden": tuple(given["net_arch"])} if "net_arch" in given else {}
    return sizes | ({"quantiles": given["n_quantiles"]} if "n_quantiles" in given else {})


def _steps(given: Any) -> int:
    """SB3's frequency of training: a number of steps, or that with its unit."""
    number, unit = given if isinstance(given, (list, tuple)) else (given, "step")
    if unit != "step":
        raise UsageError(f"train_freq={given!r}: updates are made after steps here, not {unit}s, give learn_every=4")
    return int(number)


def require_device(device: str) -> None:
    """Raise `UsageError` unless JAX computes where SB3's option `device` asks for; that is chosen before it starts."""
    backend, kind = jax.default_backend(), str(device).partition(":")[0]
    wanted = {"auto": backend, "cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "tpu": "tpu"}.get(kind)
    if wanted is None:
        raise UsageError(f"device is 'auto', 'cpu', 'cuda' or 'tpu', got {device!r}")
    if wanted != backend:
        how = {"cpu": "set JAX_PLATFORMS=cpu", "gpu": "pip install 'sentinel-rl[gpu]'"}.get(wanted, "install jax[tpu]")
        raise UsageError(f"device={device!r}, but JAX computes on {backend}: {how} before Python starts")


def _same(one: Any, other: Any) -> bool:
    return type(one) in (type(other), float) and one == other
