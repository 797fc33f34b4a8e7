"""What users want to be called for during training: functions, or objects like SB3's callbacks."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from sentinel_rl.errors import UsageError
from sentinel_rl.training.episodes import Episode
from sentinel_rl.training.host_envs import HostStep

Locals = dict[str, Any]
StepFunction = Callable[[Locals, Locals], Any]


class StepCallback(Protocol):
    """The methods of SB3's ``BaseCallback`` that training calls; nothing needs to be inherited."""

    def init_callback(self, model: Any) -> None:
        """Get to know the agent, before training."""
        ...

    def on_training_start(self, locals_: Locals, globals_: Locals) -> None:
        """Training begins."""
        ...

    def on_rollout_start(self) -> None:
        """Steps without an update follow."""
        ...

    def update_locals(self, locals_: Locals) -> None:
        """See ``rewards``, ``dones``, ``infos``, ``actions`` and ``new_obs`` of a step."""
        ...

    def on_step(self) -> bool:
        """A step was made; False stops the training."""
        ...

    def on_rollout_end(self) -> None:
        """An update was made."""
        ...

    def on_training_end(self) -> None:
        """Training is over."""
        ...


CallbackLike = StepFunction | StepCallback | Sequence[StepFunction | StepCallback] | None


def seen_locals(model: Any, happened: HostStep, actions: np.ndarray, ended: Sequence[Episode | None]) -> Locals:
    """What callbacks see of a step, under the names of SB3's loops.

    Args:
        model: the agent that is trained.
        happened: the step; its arrays have a leading axis of environments.
        actions: as the environments count them.
        ended: per environment the episode that ended with the step, if one did.
    """
    infos: list[Locals] = [{"TimeLimit.truncated": bool(cut)} for cut in happened.truncated & ~happened.terminated]
    for info, episode, last in zip(infos, ended, happened.successor, strict=True):
        if episode is not None:
            info["episode"] = {"r": episode.reward, "l": episode.length, "t": episode.time}
            info["terminal_observation"] = last
    return {
        "self": model,
        "actions": actions,
        "rewards": happened.reward,
        "dones": happened.terminated | happened.truncated,
        "infos": infos,
        "new_obs": happened.obs,
    }


class Callbacks:
    """Functions and objects, called in order.

    Args:
        given: a function ``f(locals, globals)``, an object like SB3's callbacks, or a sequence of such.
        model: the agent that is trained.

    Raises:
        UsageError: for anything else.
    """

    def __init__(self, given: Any, model: Any):
        several = given if isinstance(given, (list, tuple)) else [] if given is None else [given]
        self._functions, self._objects = [], []
        for one in several:
            if hasattr(one, "on_step"):
                self._objects.append(one)
            elif callable(one):
                self._functions.append(one)
            else:
                raise UsageError(
                    f"a callback is a function of (locals, globals) or an object with on_step(), got {one!r}"
                )
        for one in self._objects:
            one.init_callback(model)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._functions or self._objects)

    def start(self, seen: Locals) -> None:
        """Training begins."""
        for one in self._objects:
            one.on_training_start(seen, {})
            one.on_rollout_start()

    def step(self, seen: Locals, updated: bool) -> bool:
        """A step was made, with an update or not; False when any of them wants to stop."""
        proceed = True
        for function in self._functions:
            proceed &= function(seen, {}) is not False
        for one in self._objects:
            one.update_locals(seen)
            proceed &= one.on_step() is not False
            if updated:
                one.on_rollout_end()
                one.on_rollout_start()
        return proceed

    def end(self) -> None:
        """Training is over."""
        for one in self._objects:
            one.on_rollout_end()
            one.on_training_end()
