"""Record an agent: play episodes, and keep of every decision what was seen, what was known and what was chosen."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from sentinel_rl._checks import is_whole
from sentinel_rl.agents.agent import Account, Agent, BaseAgent
from sentinel_rl.envs.handle import EnvHandle, EnvLike, require_sizes, resolve_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.registry import make_env
from sentinel_rl.envs.spec import Drawable
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import assess_laws, has_laws
from sentinel_rl.training.schedule import require_seed
from sentinel_rl.training.trips import Trip, play_gymnasium, play_jax
from sentinel_rl.viewer import pictures
from sentinel_rl.viewer.recording import Recording
from sentinel_rl.viewer.schema import About, TimeLimit, View

# Observations are explained in batches of this many: one program serves all episodes.
_BATCH = 64
_PER_SECOND = 15.0
SILENT = "It does not tell what its actions are worth: 1 is the action that it takes."


def record(
    agent: Any,
    env: EnvLike = None,
    episodes: int = 5,
    seed: int = 7,
    *,
    state: Any = None,
    first: int = 0,
    longest: int = 500,
) -> Recording:
    """Play whole episodes with the frozen policy of an agent, and keep the reasons of every decision.

    Args:
        agent: an agent of the familiar classes (`sentinel_rl.Sentinel` and the others), or one of
            `sentinel_rl.agents` with its `state`.
        env: a name, a Gymnasium environment or a JAX one, of the sizes the agent was trained for; its own when None.
            A Gymnasium environment is drawn if it can be (``render_mode="rgb_array"``).
        episodes: how many.
        seed: of the episodes, which are those of `sentinel_rl.evaluate` with this seed.
        state: of an agent that is not of the familiar classes.
        first: the number of the first episode, where earlier ones are not wanted.
        longest: decisions that are kept of an episode.

    Raises:
        UsageError: for an agent that cannot explain itself, or one without an environment.
        IncompatibleError: for an environment of other sizes.
    """
    _require_count("episodes", episodes, 1)
    _require_count("longest", longest, 1)
    _require_count("first", first, 0)
    seed = require_seed(seed)
    who, known, handle = _resolved(agent, state, env)
    gamma = float(getattr(who, "gamma", handle.spec.gamma))
    time_limit: TimeLimit = getattr(who, "time_limit", "terminal")
    course = range(first, first + episodes), seed, gamma, time_limit == "bootstrap", longest
    if handle.is_jax:
        trips = play_jax(who, known, handle.env, *course)
        view, picture = _jax_picture(handle.env, trips)
    else:
        draws = getattr(handle.env, "render_mode", None) == "rgb_array"

        def draw() -> bytes | None:
            return pictures.encode(handle.env.render()) if draws else None

        trips = play_gymnasium(who, known, handle, *course, draw)
        view = "frames" if draws else "chart"
        picture = pictures.pack_images([image for trip in trips for image in trip.scenes]) if draws else {}
    steps = _steps(trips, gamma)
    told, words = told_at(who, known, steps["obs"], steps["action"], handle.spec.num_actions)
    about = describe(who, str(getattr(agent, "kind", type(who).__name__)), handle, seed, view, words)
    return Recording(about, steps | told | picture)


def describe(agent: Agent, name: str, handle: EnvHandle, seed: int, view: View, words: dict[str, Any]) -> About:
    """What a recording of an agent says in words; `words` are those of `told_at`."""
    road = {"lanes": handle.env.lanes_count, "substeps": _substeps(handle.env)} if view == "road" else {}
    return About(
        env=handle.spec.name,
        agent=name,
        objective=agent.objective,
        note=agent.caveat if _tells(agent) else SILENT,
        actions=_names(handle),
        seed=seed,
        gamma=float(getattr(agent, "gamma", handle.spec.gamma)),
        time_limit=getattr(agent, "time_limit", "terminal"),
        per_second=_per_second(handle),
        view=view,
        **words,
        **road,
    )


def told_at(
    agent: Agent, state: Any, obs: np.ndarray, actions: np.ndarray, count: int, batch: int = _BATCH
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What an agent knows at observations ``[T, O]`` where it chose `actions`: arrays, and the words of them.

    Args:
        agent: the agent.
        state: its state.
        obs: what it saw.
        actions: what it did, for an agent that only acts.
        count: how many actions there are.
        batch: observations that are explained at once.
    """
    return _told(agent, state, obs, batch) if _tells(agent) else _silent(actions, count)


def drawn_env(env: EnvLike) -> EnvHandle:
    """The handle of an environment; one that is named is made so that it can be drawn, where that is possible."""
    handle = resolve_env(env)
    if handle.is_jax or not isinstance(env, str):
        return handle
    try:
        drawn = make_env(env, render_mode="rgb_array")
        drawn.reset(seed=0)
        blank = np.ptp(drawn.render()) == 0  # so draws highway-env where SDL_VIDEODRIVER=dummy
    except Exception:  # whatever a drawing library that is not there provokes
        return handle
    if blank:
        return handle
    return EnvHandle(handle.spec, drawn, handle.obs_shape, handle.first_action, handle.name)


def _resolved(agent: Any, state: Any, env: EnvLike) -> tuple[Agent, Any, EnvHandle]:
    """The agent, its state, and where it plays."""
    if state is None and not all(hasattr(agent, name) for name in ("agent", "state", "handle")):
        raise UsageError(f"{agent!r} is recorded with its state: record(agent, env, state=state)")
    own: EnvHandle | None = agent.handle if state is None else None
    given = env if env is not None else own.name if own is not None and own.name is not None else own
    handle = drawn_env(given)
    if handle.env is None:
        raise UsageError("this agent has no environment to play in: give one, record(agent, env)")
    if own is not None:
        require_sizes(handle.spec, own.spec, "the agent")
    return (agent.agent, agent.state, handle) if state is None else (agent, state, handle)


def _jax_picture(env: Any, trips: Sequence[Trip]) -> tuple[Any, dict[str, np.ndarray]]:
    if isinstance(env, Highway):
        return "road", pictures.road_arrays(env, trips)
    if isinstance(env, Drawable):
        return "frames", pictures.image_arrays(trips, env.render)
    return "chart", {}


def _steps(trips: Sequence[Trip], gamma: float) -> dict[str, np.ndarray]:
    """What happened, all episodes one after the other."""
    lengths = np.array([len(trip.action) for trip in trips], np.int32)
    ends = np.cumsum(lengths) - 1
    terminated, truncated = np.zeros((2, int(lengths.sum())), bool)
    terminated[ends] = [trip.terminated for trip in trips]
    truncated[ends] = [trip.truncated for trip in trips]
    return {
        "lengths": lengths,
        "obs": np.concatenate([trip.obs for trip in trips]),
        "action": np.concatenate([trip.action for trip in trips]),
        "reward": np.concatenate([trip.reward[: len(trip.action)] for trip in trips]).astype(np.float32),
        "terminated": terminated,
        "truncated": truncated,
        "realised": np.concatenate([trip.realised(gamma) for trip in trips]),
    }


def _told(agent: Agent, state: Any, obs: np.ndarray, batch: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What the agent knows at every observation: arrays, and their names."""
    if not has_laws(agent):
        account = _in_batches(_accounts, agent, state, obs, batch)
        names = tuple(account.parts)
        parts = np.stack([account.parts[name] for name in names], axis=1) if names else np.zeros((len(obs), 0, 1))
        parts = np.broadcast_to(parts, (*parts.shape[:2], account.value.shape[1]))
        arrays = {"value": account.value, "parts": parts}
        return {name: np.array(array, np.float32) for name, array in arrays.items()}, {"parts": names}
    belief, told = _in_batches(_beliefs, agent, state, obs, batch)
    composite = agent.composite  # type: ignore[attr-defined]
    arrays = {
        "value": told.composite,
        "parts": np.stack([told.mean, told.additive], axis=1),
        "atoms": _atoms(belief.members.atoms, belief.members.probs.shape),
        "probs": belief.members.probs,
        "weights": belief.weights,
    }
    words = {
        "parts": ("mean", "additive"),
        "aleatory": str(composite.aleatory),
        "epistemic": str(composite.epistemic),
        "aggregate": composite.aggregate,
    }
    return {name: np.array(array, np.float32) for name, array in arrays.items()}, words


def _atoms(atoms: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The support that all laws share, ``[n]``, or that of every law, ``[T, K, A, n]``."""
    flat = atoms.reshape(-1, atoms.shape[-1])
    if bool((flat == flat[0]).all()):
        one: np.ndarray = flat[0]
        return one
    missing = len(shape) - atoms.ndim
    return np.broadcast_to(atoms.reshape(atoms.shape[0], *(1,) * missing, *atoms.shape[1:]), shape)


def _tells(agent: Agent) -> bool:
    """Whether an agent explains its decisions."""
    return has_laws(agent) or getattr(type(agent), "account", BaseAgent.account) is not BaseAgent.account


def _silent(actions: np.ndarray, count: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What is shown of an agent that only acts: 1 for what it does."""
    value = np.eye(count, dtype=np.float32)[actions]
    return {"value": value, "parts": np.zeros((len(actions), 0, value.shape[1]), np.float32)}, {}


def _in_batches(function: Any, agent: Agent, state: Any, obs: np.ndarray, batch: int) -> Any:
    """Call a compiled function on observations in batches of one size, and join what it gives."""
    found = []
    for start in range(0, len(obs), batch):
        rows = np.minimum(np.arange(start, start + batch), len(obs) - 1)
        found.append(jax.device_get(function(agent, state, obs[rows])))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(obs)], *found)


@jax.jit
def _beliefs(agent: Agent, state: Any, obs: Any) -> Any:
    return jax.vmap(lambda seen: assess_laws(agent, state, seen))(obs)


@jax.jit
def _accounts(agent: Agent, state: Any, obs: Any) -> Account:
    return jax.vmap(lambda seen: agent.account(state, seen)._replace(draws=None))(obs)


def _names(handle: EnvHandle) -> tuple[str, ...]:
    """The names of the actions, or their numbers."""
    numbers = range(handle.first_action, handle.first_action + handle.spec.num_actions)
    return handle.spec.action_names or tuple(f"[{number}]" for number in numbers)


def _substeps(env: Highway) -> int:
    return env.simulation_frequency // env.policy_frequency


def _per_second(handle: EnvHandle) -> float:
    """Decisions per second of the world's time."""
    metadata = {} if handle.is_jax else getattr(handle.env, "metadata", {})
    config = getattr(getattr(handle.env, "unwrapped", None), "config", None)
    if isinstance(config, dict) and "policy_frequency" in config:
        return float(config["policy_frequency"])
    return float(getattr(handle.env, "render_fps", None) or metadata.get("render_fps") or _PER_SECOND)


def _require_count(name: str, number: object, least: int) -> None:
    if not is_whole(number, least, 2**31 - 1):
        raise UsageError(f"{name} must be a whole number of at least {least} and at most 2147483647, got {number!r}")
