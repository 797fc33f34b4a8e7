"""The methods of SB3's agents beyond `learn`, `predict`, `save` and `load`."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sentinel_rl.agents.agent import Agent
from sentinel_rl.api.parameters import Parameters, load_replay, parameters_of, save_replay, with_parameters
from sentinel_rl.api.sb3_names import require_device
from sentinel_rl.envs.handle import EnvHandle, EnvLike, require_sizes, resolve_env
from sentinel_rl.envs.sb3_vector import SB3Vector
from sentinel_rl.errors import UsageError
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.standing import Standing


class SB3Face:
    """What SB3's users expect of an agent: other environments, parameters, replays and loggers."""

    agent: Agent
    handle: EnvHandle
    state: Any
    logger: Any
    # Where training stands; None before the first step.
    _standing: Standing | None
    # Why this agent cannot learn, where its file held only what acting needs.
    _acts_only: str | None
    # A logger of the user's own.
    _given_logger: Any

    def set_env(self, env: EnvLike, force_reset: bool = True) -> None:
        """Learn in another environment of the same sizes from now on; its first episode begins with `learn`.

        Args:
            env: see the class.
            force_reset: is there for SB3's users; an environment is always reset.
        """
        handle = resolve_env(env)
        require_sizes(handle.spec, self.handle.spec, "this agent")
        self.handle = handle
        if self._standing is not None:
            self._standing = self._standing.elsewhere()

    def get_vec_normalize_env(self) -> Any:
        """SB3's ``VecNormalize`` around the environments, where there is one, or None."""
        env = self.handle.env
        return env.normalised if isinstance(env, SB3Vector) else None

    def get_parameters(self) -> Parameters:
        """The parameters as NumPy arrays by part and place: ``{"online": {".weights[0]": ...}, "optimiser": ...}``."""
        return parameters_of(self.state)

    def set_parameters(
        self,
        load_path_or_dict: str | Path | Mapping[str, Mapping[str, Any]],
        exact_match: bool = True,
        device: str = "auto",
    ) -> Self:
        """Take over parameters, of a dictionary that `get_parameters` gave, or of a file.

        Args:
            load_path_or_dict: the dictionary, or the file that an agent's `save` wrote.
            exact_match: all parts must be given; otherwise the others stay as they are. A file without its training has
                the networks that act (``online``), and target networks take these over, too.
            device: as in the class.

        Raises:
            IncompatibleError: for the parameters of another agent, with a table; nothing is changed then.
        """
        require_device(device)
        given: Any = load_path_or_dict
        if not isinstance(given, Mapping):
            saved = load_policy(given)
            given = parameters_of(saved.state)
            if saved.training is None and "online" in given and "target" in parameters_of(self.state):
                given = {**given, "target": given["online"]}
        self.state = with_parameters(self.state, given, exact_match)
        if self._acts_only is None:
            stands = self._standing or Standing(self.state)
            self._standing = dataclasses.replace(stands, state=self.state)
        return self

    def save_replay_buffer(self, path: str | Path) -> Path:
        """Save the transitions in the replay as one file without pickle; a bare name gets ``.zip``."""
        return save_replay(path, self.state, 0 if self._standing is None else self._standing.clock)

    def load_replay_buffer(self, path: str | Path) -> None:
        """Take over the transitions that `save_replay_buffer` wrote, of an agent of the same sizes."""
        if self._acts_only is not None:
            raise UsageError(f"this agent cannot learn: {self._acts_only}")
        self.state, clock = load_replay(path, self.agent, self.handle.spec, self.state)
        stands = self._standing or Standing(self.state)
        self._standing = dataclasses.replace(stands, state=self.state, before=clock - stands.t)

    def set_logger(self, logger: Any) -> None:
        """Log with a logger of SB3, or anything with ``record(key, value)`` and ``dump(step)``, in place of our own."""
        if not (hasattr(logger, "record") and hasattr(logger, "dump")):
            raise UsageError(f"a logger has the methods record(key, value) and dump(step), got {logger!r}")
        self._given_logger = self.logger = logger
