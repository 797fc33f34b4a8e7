"""Gymnasium's vector face of a JAX environment: many copies, one device call per step."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import UInt8
from numpy.typing import NDArray

from sentinel_rl.envs import _faces as faces
from sentinel_rl.envs._batch import Batch, next_step, same_step, start
from sentinel_rl.envs._faces import Observation
from sentinel_rl.envs.spec import Drawable, Env

Step = tuple[Observation, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class GymVectorEnv(VectorEnv[Observation, Any, NDArray[Any]]):
    """Copies of a JAX environment as a `gymnasium.vector.VectorEnv`.

    Copy ``i`` of a vector reset with ``seed`` sees what a single environment reset with ``seed + i`` sees, over
    all its episodes.

    Args:
        env: the environment, or its name.
        num_envs: number of copies.
        max_episode_steps: truncate episodes here, besides any limit of the environment itself; None or -1: not.
        render_mode: None or ``"rgb_array"``.
        autoreset_mode: when an episode has ended, the next call ignores the action and returns the first
            observation of the next one, with reward 0 (``NEXT_STEP``, Gymnasium's default); or the same call returns
            it, and the true successor in ``info["final_obs"]`` (``SAME_STEP``).
        settings: of the environment, where it is given by name.

    Example:
        >>> envs = GymVectorEnv("CartPole-v1", num_envs=3)
        >>> obs, info = envs.reset(seed=0)
        >>> obs, rewards, terminations, truncations, info = envs.step(np.array([0, 1, 1]))
        >>> obs.shape, rewards
        ((3, 4), array([1., 1., 1.], dtype=float32))
    """

    def __init__(
        self,
        env: Env | str,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs = {num_envs} is not allowed: it must be at least 1")
        self.env = faces.resolve(env, settings)
        self.num_envs, self.render_mode = num_envs, render_mode
        self._mode, self._limit = _supported(autoreset_mode), _limit(max_episode_steps)
        self.metadata = faces.face_metadata(self.env, render_mode) | {"autoreset_mode": self._mode}
        self.single_observation_space = faces.observation_space(self.env.spec)
        self.single_action_space = faces.action_space(self.env.spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch: Batch | None = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in every copy.

        Args:
            seed: ``seed + i`` for copy ``i``, or one for each; a copy without one goes on with its random stream.
            options: there are none.
        """
        seeds = _one_each(seed, self.num_envs)
        super().reset(seed=None if isinstance(seed, Sequence) else seeds[0])
        faces.refuse_options(options)
        self._batch, obs = start(self.env, self._seeded(seeds))
        return faces.as_observation(obs), {}

    def step(self, actions: Any) -> Step:
        """Take one action in every copy: integers of shape ``[num_envs]``.

        Raises:
            InvalidAction: when one of the actions does not exist.
            ResetNeeded: before the first reset.
        """
        actions = np.asarray(actions)
        if actions.dtype.kind not in "biu" or not self.action_space.contains(actions):
            raise faces.invalid_action(actions, self.action_space)
        if self._batch is None:
            raise ResetNeeded("no episode is running: call reset() before step()")
        chosen = actions.astype(np.int32)
        if self._mode is AutoresetMode.NEXT_STEP:
            self._batch, rows = next_step(self.env, self._batch, chosen, self._limit)
            return *faces.unpack(rows), {}
        self._batch, rows, fresh = same_step(self.env, self._batch, chosen, self._limit)
        final, reward, terminated, truncated = faces.unpack(rows)
        return faces.as_observation(fresh), reward, terminated, truncated, _final_info(final, terminated | truncated)

    def render(self) -> tuple[UInt8[np.ndarray, "height width 3"], ...] | None:
        """Draw every copy, in the mode ``"rgb_array"``."""
        if self._batch is None:
            raise ResetNeeded("there is no state to draw: call reset() before render()")
        if self.render_mode is None or not isinstance(self.env, Drawable):
            gymnasium.logger.warn('render() draws nothing: make the environment with render_mode="rgb_array"')
            return None
        states = jax.device_get(self._batch.state)
        return tuple(self.env.render(_copy(states, i)) for i in range(self.num_envs))

    def _seeded(self, seeds: list[int | None]) -> jax.Array:
        """The key of every copy: from its seed, or where it has none, from where its stream stands."""
        rngs = [self.np_random if seed is None else seeding.np_random(seed)[0] for seed in seeds]
        fresh: jax.Array = _keys_of(np.stack([faces.words_of(rng) for rng in rngs]))
        if self._batch is None:
            return fresh
        given = np.array([seed is not None for seed in seeds])
        return jax.lax.select(jnp.asarray(given), fresh, self._batch.keys)


_keys_of = jax.jit(jax.vmap(faces.key_of))


def _one_each(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """The seed of every copy."""
    if seed is None or isinstance(seed, int | np.integer):
        return [None if seed is None else int(seed) + i for i in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(f"{len(seed)} seeds for num_envs = {num_envs}: give one for each, or one number")
    return [None if one is None else int(one) for one in seed]


def _copy(states: Any, i: int) -> Any:
    """The state of one copy."""
    return jax.tree.map(lambda leaf: leaf[i], states)


def _final_info(final: Observation, ended: NDArray[np.bool_]) -> dict[str, Any]:
    """Gymnasium's account of the episodes that ended in this step: the observation each ended with."""
    if not ended.any():
        return {}
    obs = np.full(ended.shape, None, object)
    for i in np.flatnonzero(ended):
        obs[i] = final[i].copy()
    return {"final_obs": obs, "_final_obs": ended.copy(), "final_info": {}, "_final_info": ended.copy()}


def _limit(steps: int | None) -> int | None:
    if steps is not None and steps != -1 and steps < 1:
        raise ValueError(f"max_episode_steps = {steps} is not allowed: give at least 1, or -1 for no limit")
    return None if steps == -1 else steps


def _supported(mode: AutoresetMode | str) -> AutoresetMode:
    allowed = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
    if mode not in [*allowed, *(one.value for one in allowed)]:
        raise ValueError(f"autoreset_mode {mode!r} is not supported: use one of {[one.value for one in allowed]}")
    return AutoresetMode(mode)
