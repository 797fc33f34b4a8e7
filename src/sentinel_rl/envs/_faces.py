"""What the single and the vector face of an environment share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, UnsupportedMode
from jaxtyping import Array, Float, UInt32
from numpy.typing import NDArray

from sentinel_rl.envs.registry import make_jax_env
from sentinel_rl.envs.spec import Drawable, Env, EnvSpec, TimeStep

Observation = NDArray[np.float32]


def resolve(env: Env | str, settings: dict[str, Any]) -> Env:
    """Take an environment as it is, or make it from its name and settings."""
    if isinstance(env, str):
        made = make_jax_env(env, **settings)
        if made is None:
            raise ValueError(f"{env!r} is not a JAX environment: use gymnasium.make({env!r})")
        return made
    if settings:
        raise TypeError(f"settings {sorted(settings)} need an environment given by name, not {env!r}")
    return env


def face_metadata(env: Env, render_mode: str | None) -> dict[str, Any]:
    """What Gymnasium may know about drawing; refuses a mode that the environment does not have."""
    metadata: dict[str, Any] = {"render_modes": []}
    if isinstance(env, Drawable):
        metadata = {"render_modes": ["rgb_array"], "render_fps": env.render_fps}
    modes = metadata["render_modes"]
    if render_mode is not None and render_mode not in modes:
        raise UnsupportedMode(
            f"{env.spec.name} has no render_mode {render_mode!r}: allowed are {[None, *modes]}"
            + ('; gymnasium.make(..., render_mode="human") shows the pictures in a window' if modes else "")
        )
    return metadata


def observation_space(spec: EnvSpec) -> "spaces.Box[np.float32]":
    """The box of an environment's observations."""
    low = -np.inf if spec.obs_low is None else np.array(spec.obs_low, np.float32)
    high = np.inf if spec.obs_high is None else np.array(spec.obs_high, np.float32)
    return spaces.Box(low, high, shape=(spec.obs_size,), dtype=np.float32)


def action_space(spec: EnvSpec) -> "spaces.Discrete[np.int64]":
    """The actions 0, ..., n - 1."""
    return spaces.Discrete(spec.num_actions)


def refuse_options(options: dict[str, Any] | None) -> None:
    """Raise on reset options: none are known, and none is ignored in silence."""
    if options:
        raise ValueError(
            f"reset takes no options, got {sorted(options)}: settings go to gymnasium.make(..., name=value)"
        )


def invalid_action(action: object, space: spaces.Space[Any]) -> InvalidAction:
    """The error for an action that does not exist."""
    return InvalidAction(f"action {action!r} ({type(action).__name__}) does not exist: it must be in {space}")


def words_of(rng: np.random.Generator) -> UInt32[np.ndarray, " 2"]:
    """Draw 64 random bits for a JAX key."""
    return rng.integers(2**32, size=2, dtype=np.uint32)


def key_of(words: UInt32[Array, " 2"]) -> jax.Array:
    """Make a JAX key of 64 random bits, in whatever generator JAX is set to."""
    return jax.random.fold_in(jax.random.key(words[0]), words[1])


def pack(after: TimeStep) -> Float[Array, " row"]:
    """What follows an action as one row of numbers: one transfer to the host instead of four."""
    rest = jnp.stack([after.reward, after.terminated, after.truncated])
    return jnp.concatenate([after.obs, rest.astype(after.obs.dtype)])


def unpack(rows: Float[Array, "... row"]) -> tuple[Observation, Any, Any, Any]:
    """Observation, reward, terminated and truncated of rows that `pack` made, as arrays of the leading axes."""
    values = as_observation(rows)
    return values[..., :-3].copy(), values[..., -3].copy(), values[..., -2] != 0, values[..., -1] != 0


def as_observation(obs: Float[Array, "..."]) -> Observation:
    """Copy to NumPy float32: users keep observations and write into them."""
    return np.array(obs, np.float32)
