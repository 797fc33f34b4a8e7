"""Whatever users give as an environment (a name, a Gymnasium environment, a JAX one), with its sizes."""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from jaxtyping import Float

from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.envs.observations import Observations, observations_of
from sentinel_rl.envs.originals import ORIGINALS
from sentinel_rl.envs.registry import make_env
from sentinel_rl.envs.sb3_vector import SB3VecEnv, SB3Vector, is_sb3_vector
from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError


class SingleEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment with what SB3's callbacks ask a vector of them for."""

    num_envs = 1


@dataclasses.dataclass(frozen=True)
class EnvHandle:
    """An environment to learn in, or only what must be known to act in it (`env` is then None).

    Args:
        spec: its sizes.
        env: a JAX or Gymnasium environment, a vector of the latter, or None.
        obs_shape: in which users hand in an observation.
        first_action: the number of the first action, in the environment's count.
        name: by which it was asked for, where it was.
        observations: how they become rows of numbers; known where there is a Gymnasium environment.
        settings: that it was made with by its name.
        wrappers: that were put around it, as ``module:name``.
    """

    spec: EnvSpec
    env: Any
    obs_shape: tuple[int, ...]
    first_action: int
    name: str | None = None
    observations: Observations | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    wrappers: tuple[str, ...] = ()

    @property
    def is_jax(self) -> bool:
        """Whether the environment is compiled with the agent, and not stepped from Python."""
        return self.env is not None and not isinstance(self.env, gymnasium.Env | VectorEnv)

    @property
    def gymnasium(self) -> Any:
        """The environment or environments with Gymnasium's face, or None."""
        return GymEnv(self.env) if self.is_jax else self.env

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """The box of the observations of one environment."""
        if self.env is None:
            return spaces.Box(-float("inf"), float("inf"), self.obs_shape)
        space: spaces.Space[Any] = single_spaces(self.gymnasium)[1]
        return space

    @property
    def action_space(self) -> "spaces.Discrete[Any]":
        """The actions."""
        return spaces.Discrete(self.spec.num_actions, start=self.first_action)

    def batch(self, observation: Any) -> tuple[Float[np.ndarray, "batch obs"], bool]:
        """Flatten one observation or several, and tell whether there was only one.

        Raises:
            UsageError: for another shape, or numbers that are not finite.
        """
        if self.observations is not None and self.observations.is_one(observation):
            observation = self.observations.row(observation)
        try:
            obs = np.asarray(observation, np.float32)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"an observation of {self.spec.name} is needed, got {type(observation).__name__}: give one of its "
                "observation space, or its numbers as an array"
            ) from error
        shapes = (self.obs_shape, (self.spec.obs_size,))
        single = obs.shape in shapes
        if not single and (obs.ndim == 0 or obs.shape[1:] not in shapes or len(obs) == 0):
            raise UsageError(
                f"an observation of {self.spec.name} has the shape {self.obs_shape}, got {obs.shape}: "
                f"give one, or a batch of them"
            )
        if not np.isfinite(obs).all():
            raise UsageError(f"an observation holds {obs[~np.isfinite(obs)][0]}: its numbers must be finite")
        return obs.reshape(1 if single else len(obs), -1), single


EnvLike = str | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any] | SB3VecEnv | Env | EnvSpec | EnvHandle | None


def resolve_env(given: EnvLike) -> EnvHandle:
    """Find the JAX environment of a name, where there is one, else Gymnasium's, and read its sizes.

    A vector of SB3 (``VecEnv``, also within ``VecNormalize``) is taken as Gymnasium's vectors are.

    A name of `ORIGINALS` stands for the environment of another package, with the settings of its twin here.

    Raises:
        UsageError: for an environment that is not known or cannot be used.

    Example:
        >>> resolve_env("CartPole-v1").spec.obs_size
        4
    """
    if isinstance(given, EnvHandle):
        return given
    name = given if isinstance(given, str) else None
    env: Any = make_env(given) if isinstance(given, str) else given
    if is_sb3_vector(env):
        env = SB3Vector(env)
    if isinstance(env, EnvSpec):
        return EnvHandle(env, None, (env.obs_size,), 0)
    if isinstance(env, gymnasium.Env | VectorEnv):
        spec, (actions, space) = spec_of(env), single_spaces(env)
        observed = observations_of(space, spec.name)
        if observed.left_out:
            parts = " and ".join(observed.left_out)
            told = f"{spec.name}: {parts} of its observations is not made of numbers, and is not seen by agents"
            warnings.warn(told, SentinelWarning, stacklevel=2)
        if isinstance(given, str) and given in ORIGINALS:
            twin = ORIGINALS[given].twin
            known = ("reward_range", "max_steps", "action_names", "obs_shape", "structure")
            spec = dataclasses.replace(spec, **{name: getattr(twin, name) for name in known})
        return EnvHandle(spec, env, observed.shape, int(getattr(actions, "start", 0)), name, observed)
    if not isinstance(getattr(env, "spec", None), EnvSpec):
        raise UsageError(
            f"an environment is needed to know its sizes, got {env!r}: give a name or a Gymnasium environment"
        )
    return EnvHandle(env.spec, env, (env.spec.obs_size,), 0, name)


def require_sizes(asked: EnvSpec, saved: EnvSpec, where: str) -> None:
    """Raise `IncompatibleError` unless an environment has the sizes of the one that an agent was trained on."""
    if (asked.obs_size, asked.num_actions) != (saved.obs_size, saved.num_actions):
        raise IncompatibleError(
            f"{where} was trained on {saved.name} ({saved.obs_size} numbers, {saved.num_actions} actions), but "
            f"{asked.name} has {asked.obs_size} and {asked.num_actions}: give the environment it was trained on"
        )


def spec_of(env: Any) -> EnvSpec:
    """Read the sizes of a Gymnasium environment, or say why it cannot be used and what to do."""
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    actions, observations = single_spaces(env)
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise UsageError(
            f"{name} has the action space {actions}: SENTINEL chooses among Discrete(n) actions. "
            f"Wrap it with gymnasium.wrappers.TransformAction to offer a list of discrete choices"
        )
    observed = observations_of(observations, name)
    limit = env.spec.max_episode_steps if env.spec is not None else None
    ones = isinstance(observations, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))
    in_bytes = ones or (isinstance(observations, spaces.Box) and observations.dtype == np.uint8)
    spec = EnvSpec(name, observed.size, int(actions.n), None, limit, in_bytes=in_bytes)
    if isinstance(observations, spaces.Discrete):
        return dataclasses.replace(spec, structure="states")
    if observed.image is None:
        low, high = _bounds(observations)
        return dataclasses.replace(spec, obs_low=low, obs_high=high)
    return dataclasses.replace(spec, obs_shape=observed.image, structure="image")


def _bounds(space: gymnasium.Space[Any]) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """The bounds of the numbers of a box that is a vector; None for other spaces."""
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        return None, None
    return tuple(map(float, space.low)), tuple(map(float, space.high))


def single_spaces(env: Any) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """The spaces of one environment, also where many are vectorised."""
    return (
        getattr(env, "single_action_space", env.action_space),
        getattr(env, "single_observation_space", env.observation_space),
    )
