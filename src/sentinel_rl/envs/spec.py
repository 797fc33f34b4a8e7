"""What a world is: the protocol that every environment follows."""

import math
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl._checks import is_whole
from sentinel_rl.errors import UsageError


class EnvSpec(eqx.Module):
    """What an agent may know of an environment before it has seen it.

    Args:
        name: how users call it, for example ``"CartPole-v0"``.
        obs_size: length of the flat observation.
        num_actions: number of discrete actions.
        reward_range: smallest and largest reward of a step, where known.
        max_steps: time limit of an episode, where there is one.
        obs_low: smallest value of each entry of the observation; unbounded when None.
        obs_high: largest value of each entry of the observation; unbounded when None.
        action_names: what users call the actions; their numbers when None.
        obs_shape: in which the flat observation is to be read; a vector when None.
        structure: ``"rows"`` when the observation is a list of rows of which all but the first can be exchanged: the
            first is the agent's own; ``"image"`` when it is one, of the shape (height, width, channels); ``"states"``
            when it is one-hot, the number of a state.
        gamma: the discount by which evaluations of the task judge a policy, whatever an agent learns with.
        copies: environments that are stepped together, whose transitions come in turn.
        in_bytes: the numbers of an observation are whole ones from 0 to 255, as those of images, and can be kept so.
    """

    name: str = eqx.field(static=True)
    obs_size: int = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    reward_range: tuple[float, float] | None = eqx.field(static=True, default=None)
    max_steps: int | None = eqx.field(static=True, default=None)
    obs_low: tuple[float, ...] | None = eqx.field(static=True, default=None)
    obs_high: tuple[float, ...] | None = eqx.field(static=True, default=None)
    action_names: tuple[str, ...] | None = eqx.field(static=True, default=None)
    gamma: float = eqx.field(static=True, default=0.99)
    obs_shape: tuple[int, ...] | None = eqx.field(static=True, default=None)
    structure: Literal["rows", "image", "states"] | None = eqx.field(static=True, default=None)
    copies: int = eqx.field(static=True, default=1)
    in_bytes: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        for what, size in (("obs_size", self.obs_size), ("num_actions", self.num_actions)):
            if not is_whole(size, 1):
                raise UsageError(f"{self.name} has {what}={size!r}: it must be a whole number of at least 1")
        if self.action_names is not None and len(self.action_names) != self.num_actions:
            raise ValueError(f"{self.name} has {self.num_actions} actions, but the action_names {self.action_names}")
        if self.obs_shape is not None and math.prod(self.obs_shape) != self.obs_size:
            raise ValueError(f"{self.name} has {self.obs_size} numbers to see, but the obs_shape {self.obs_shape}")
        if self.structure == "rows" and (self.obs_shape is None or len(self.obs_shape) != 2):
            raise ValueError(f"structure='rows' of {self.name} needs obs_shape=(rows, features), got {self.obs_shape}")
        if self.structure == "image" and (self.obs_shape is None or len(self.obs_shape) != 3):
            raise ValueError(
                f"structure='image' of {self.name} needs obs_shape=(height, width, channels), got {self.obs_shape}"
            )


class TimeStep(NamedTuple):
    """What follows an action: the true successor, before any reset."""

    obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class Env(Protocol):
    """A world as pure functions of an explicit state. It never resets itself: the runner does.

    An environment is a pytree (an equinox module), so that compiled functions take it as an argument. Inside them
    nothing can raise: an action that does not exist makes a NaN of the state or the reward, which whoever steps sees.
    """

    @property
    def spec(self) -> EnvSpec:
        """The sizes and bounds that agents may know."""
        ...

    def reset(self, key: jax.Array) -> tuple[Any, Float[Array, " obs"]]:
        """Draw an initial state; returns it with its observation."""
        ...

    def step(self, state: Any, action: Int[Array, ""], key: jax.Array) -> tuple[Any, TimeStep]:
        """Advance by one decision."""
        ...


@runtime_checkable
class Diagnosed(Protocol):
    """What an environment adds whose states tell more of a policy than its rewards."""

    def diagnostics(self, state: Any) -> dict[str, Float[Array, "..."]]:
        """Numbers about the state after a decision, by name; evaluations report their means over the decisions."""
        ...


@runtime_checkable
class Drawable(Protocol):
    """What an environment adds that can show itself."""

    @property
    def render_fps(self) -> int:
        """Decisions per second of the world's own time."""
        ...

    def render(self, state: Any) -> UInt8[np.ndarray, "height width 3"]:
        """Draw one state as an image, on the host."""
        ...
