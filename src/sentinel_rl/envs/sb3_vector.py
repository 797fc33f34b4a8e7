"""SB3's vectors of environments (`VecEnv`, `VecNormalize`) with Gymnasium's face; nothing of SB3 is imported."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


@runtime_checkable
class SB3VecEnv(Protocol):
    """The members of SB3's ``VecEnv`` by which it is known."""

    num_envs: int

    def step_async(self, actions: Any) -> None:
        """Begin a step in every environment."""
        ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of every environment."""
        ...


def is_sb3_vector(env: Any) -> bool:
    """Whether something has the methods of SB3's ``VecEnv``, and is not Gymnasium's vector."""
    return isinstance(env, SB3VecEnv) and not isinstance(env, VectorEnv)


class SB3Vector(VectorEnv[Any, Any, Any]):
    """A vector of SB3, with its wrappers.

    SB3 starts the next episode in the step that ends one, and puts the last observation, normalised as the others are,
    into ``infos[i]["terminal_observation"]``. It tells a time limit by ``infos[i]["TimeLimit.truncated"]``.

    Args:
        venv: the vector.
    """

    def __init__(self, venv: Any):
        self.venv, self.num_envs = venv, int(venv.num_envs)
        self.single_observation_space, self.single_action_space = venv.observation_space, venv.action_space
        self.observation_space = batch_space(venv.observation_space, self.num_envs)
        self.action_space = batch_space(venv.action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.spec = next((spec for spec in _attribute(venv, "spec") if spec is not None), None)

    @property
    def unwrapped(self) -> Any:
        """The innermost vector, whose name tells what it is."""
        return getattr(self.venv, "unwrapped", self.venv)

    @property
    def normalised(self) -> Any:
        """The ``VecNormalize`` around the environments, or None."""
        venv = self.venv
        while venv is not None and not hasattr(venv, "obs_rms"):
            venv = vars(venv).get("venv")
        return venv

    def reset(self, *, seed: int | list[int | None] | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment."""
        if seed is not None:
            self.venv.seed(seed)
        return self.venv.reset(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take an action in every environment, and begin the next episode where one ended."""
        obs, rewards, dones, infos = self.venv.step(np.asarray(actions))
        ended = np.asarray(dones, bool)
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos]) & ended
        final = np.empty(self.num_envs, object)
        for place in np.flatnonzero(ended):
            final[place] = infos[place]["terminal_observation"]
        return obs, np.asarray(rewards), ended & ~cut, cut, {"final_obs": final}

    def close(self, **kwargs: Any) -> None:
        """Close the environments."""
        self.venv.close()


def _attribute(venv: Any, name: str) -> list[Any]:
    """An attribute of every environment; nothing where they have none."""
    try:
        return list(venv.get_attr(name))
    except AttributeError:
        return []
