"""Where the training of one agent stands, so that another call, or another process, can go on with it."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.replay import map_replays


@dataclasses.dataclass(frozen=True)
class Standing:
    """Where the training of one agent stands.

    Args:
        state: of the agent: networks, optimiser, replay.
        t: steps since the counter began.
        before: transitions that the agent took in before that.
        horizon: steps that its schedules are planned for.
        world: state and observation of a JAX environment, in the middle of an episode, or the list of their arrays as a
            file has them; elsewhere None, and training goes on with the next episode.
        episode: number of the next episode of a Gymnasium environment.
        history: episodes and curves so far.
    """

    state: Any
    t: int = 0
    before: int = 0
    horizon: int | None = None
    world: tuple[Any, Any] | list[Any] | None = None
    episode: int = 0
    history: Mapping[str, np.ndarray] | None = None

    @property
    def clock(self) -> int:
        """Transitions that the agent took in, all in all."""
        return self.before + self.t

    def state_for(self, copies: int) -> Any:
        """The state of the agent, to go on with transitions of so many environments in turn."""
        return map_replays(lambda replay: dataclasses.replace(replay, copies=copies), self.state)

    def reset(self) -> Self:
        """The counter and the schedules begin again with a new episode; the agent keeps what it has."""
        return dataclasses.replace(self, t=0, before=self.clock, horizon=None, world=None, history=None)

    def elsewhere(self) -> Self:
        """To go on in another environment: what was the middle of an episode is its end."""
        return dataclasses.replace(self, world=None, history=_between_episodes(self.history))

    def in_env(self, handle: EnvHandle) -> Self:
        """To go on in an environment; one that cannot be in this state begins a new episode."""
        if not isinstance(self.world, list):
            return self
        if not handle.is_jax:
            return self.elsewhere()
        form = jax.eval_shape(handle.env.reset, jax.random.key(0))
        leaves, tree = jax.tree.flatten(form)
        found = [jnp.asarray(leaf) for leaf in self.world]
        if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(leaf.shape, leaf.dtype) for leaf in found]:
            return self.elsewhere()
        return dataclasses.replace(self, world=jax.tree.unflatten(tree, found))


# Sums of the episode that goes on, as `History.state` names them.
PARTIAL = ("partial/reward", "partial/discounted", "partial/length")


def _between_episodes(history: Mapping[str, np.ndarray] | None) -> Mapping[str, np.ndarray] | None:
    """A history in which no episode goes on."""
    if history is None:
        return None
    return {name: np.zeros_like(values) if name in PARTIAL else values for name, values in history.items()}
