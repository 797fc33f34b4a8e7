"""What users call an environment: a name, a Gymnasium environment, or a JAX one."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from jaxtyping import Float

from sentinel_rl.envs.gym import GymEnv
from sentinel_rl.envs.originals import ORIGINALS, make_original
from sentinel_rl.envs.registry import make_env
from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.training.host_envs import GymnasiumWorld, HostEnv, JaxWorld, VectorWorld, single_spaces, spec_of

WorldLike = str | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any] | Env | EnvSpec | None


class Alone(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment with what SB3's callbacks ask a vector of them for."""

    num_envs = 1


@dataclasses.dataclass(frozen=True)
class Place:
    """An environment to learn in, or only what must be known to act in it.

    Args:
        spec: its sizes.
        env: a JAX or Gymnasium environment, a vector of the latter, or None.
        obs_shape: in which users hand in an observation.
        first_action: the number of the first action, in the environment's count.
    """

    spec: EnvSpec
    env: Any
    obs_shape: tuple[int, ...]
    first_action: int

    @property
    def stepped_from_python(self) -> bool:
        """Whether the environment is Gymnasium's, and not compiled with the agent."""
        return isinstance(self.env, gymnasium.Env | VectorEnv)

    @property
    def gymnasium(self) -> Any:
        """The environment or environments with Gymnasium's face, or None."""
        return self.env if self.env is None or self.stepped_from_python else GymEnv(self.env)

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
        obs = np.asarray(observation, np.float32)
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


def find_place(world: WorldLike) -> Place:
    """Find the JAX environment of a name, where there is one, else Gymnasium's, and read its sizes.

    A name of `ORIGINALS` stands for the environment of another package, with the settings of its twin here.

    Raises:
        UsageError: for an environment that is not known or cannot be used.

    Example:
        >>> find_place("CartPole-v1").spec.obs_size
        4
    """
    env: Any = _by_name(world) if isinstance(world, str) else world
    if isinstance(env, EnvSpec):
        return Place(env, None, (env.obs_size,), 0)
    if isinstance(env, gymnasium.Env | VectorEnv):
        spec, (actions, observations) = spec_of(env), single_spaces(env)
        if isinstance(world, str) and world in ORIGINALS:
            twin = ORIGINALS[world].twin
            spec = dataclasses.replace(spec, reward_range=twin.reward_range, max_steps=twin.max_steps)
        return Place(spec, env, tuple(observations.shape or ()), int(getattr(actions, "start", 0)))
    if not isinstance(getattr(env, "spec", None), EnvSpec):
        raise UsageError(
            f"an environment is needed to know its sizes, got {env!r}: give a name or a Gymnasium environment"
        )
    return Place(env.spec, env, (env.spec.obs_size,), 0)


def _by_name(name: str) -> Any:
    try:
        if name in ORIGINALS:
            return make_original(name)
        twin = make_env(name)
        return gymnasium.make(name) if twin is None else twin
    except (ValueError, gymnasium.error.Error) as error:
        raise UsageError(str(error)) from error


def require_sizes(asked: EnvSpec, saved: EnvSpec, where: str) -> None:
    """Raise `IncompatibleError` unless an environment has the sizes of the one that an agent was trained on."""
    if (asked.obs_size, asked.num_actions) != (saved.obs_size, saved.num_actions):
        raise IncompatibleError(
            f"{where} was trained on {saved.name} ({saved.obs_size} numbers, {saved.num_actions} actions), but "
            f"{asked.name} has {asked.obs_size} and {asked.num_actions}: give the environment it was trained on"
        )


def host_world(place: Place, seed: int) -> HostEnv:
    """The environment of a place, to be stepped from Python."""
    if isinstance(place.env, VectorEnv):
        return VectorWorld(place.env, seed)
    return GymnasiumWorld(place.env, seed) if place.stepped_from_python else JaxWorld(place.env)
