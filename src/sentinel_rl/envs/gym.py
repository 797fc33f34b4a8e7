"""Gymnasium's face of a JAX environment."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.error import ResetNeeded
from jaxtyping import Array, Float, Int, UInt8

from sentinel_rl.envs import _faces as faces
from sentinel_rl.envs._faces import Observation
from sentinel_rl.envs.spec import Drawable, Env


class GymEnv(gymnasium.Env[Observation, Any]):
    """Any JAX environment as a `gymnasium.Env`: one compiled call per step, NumPy out.

    ``reset(seed=...)`` makes a JAX key from ``np_random``, and with it every later step and unseeded reset is
    determined. Compiled functions are shared between all instances with equal settings.

    Args:
        env: the environment, or its name.
        render_mode: None or ``"rgb_array"``; the latter where the environment can draw itself.
        settings: of the environment, where it is given by name.

    Example:
        >>> env = GymEnv("CartPole-v1")
        >>> obs, info = env.reset(seed=0)
        >>> obs, reward, terminated, truncated, info = env.step(1)
        >>> obs.dtype, reward, terminated, truncated
        (dtype('float32'), 1.0, False, False)
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium's attribute)

    def __init__(self, env: Env | str, render_mode: str | None = None, **settings: Any):
        self.env = faces.resolve(env, settings)
        self.metadata = faces.face_metadata(self.env, render_mode)
        self.render_mode = render_mode
        self.observation_space, self.action_space = (
            faces.observation_space(self.env.spec),
            faces.action_space(self.env.spec),
        )
        self._key: jax.Array | None = None
        self._state: Any = None
        self._over = True

    @property
    def state(self) -> Any:
        """The state of the JAX environment; None before the first reset."""
        return self._state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, with a seed reproducibly; there are no options."""
        super().reset(seed=seed)
        faces.refuse_options(options)
        if seed is not None or self._key is None:
            self._key = _key_of(faces.words_of(self.np_random))
        self._state, self._key, obs = _reset(self.env, self._key)
        self._over = False
        return faces.as_observation(obs), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one action, an integer of any kind.

        Raises:
            InvalidAction: for an action that does not exist.
            ResetNeeded: when no episode is running.
        """
        choice = np.asarray(action)[()] if isinstance(action, jax.Array) else action
        if not self.action_space.contains(choice):
            raise faces.invalid_action(action, self.action_space)
        if self._over:
            raise ResetNeeded("no episode is running: call reset() before step()")
        self._state, self._key, row = _step(self.env, self._state, self._key, np.int32(choice))
        obs, reward, terminated, truncated = faces.unpack(row)
        self._over = bool(terminated or truncated)
        return obs, float(reward), bool(terminated), bool(truncated), {}

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Draw the state, in the mode ``"rgb_array"``."""
        if self._state is None:
            raise ResetNeeded("there is no state to draw: call reset() before render()")
        if self.render_mode is None or not isinstance(self.env, Drawable):
            gymnasium.logger.warn('render() draws nothing: make the environment with render_mode="rgb_array"')
            return None
        return self.env.render(self._state)


_key_of = jax.jit(faces.key_of)


@jax.jit
def _reset(env: Env, key: jax.Array) -> tuple[Any, jax.Array, Float[Array, " obs"]]:
    key, now = jax.random.split(key)
    state, obs = env.reset(now)
    return state, key, obs


@jax.jit
def _step(env: Env, state: Any, key: jax.Array, action: Int[Array, ""]) -> tuple[Any, jax.Array, Float[Array, " row"]]:
    key, now = jax.random.split(key)
    state, after = env.step(state, action, now)
    return state, key, faces.pack(after)
