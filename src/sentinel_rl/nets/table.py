"""A table of outputs, for observations that are the number of a state."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError

# States times actions up to which the learner takes a table: with 51 outputs and 4 members about 40 MB an array.
LARGEST = 50_000


class Table(eqx.Module):
    """K members: ``entries[k, s]`` are the outputs of all actions in state s, divided by the root of their number.

    States have nothing in common that a network could learn: what a wrong move costs in one must not be believed of
    all others. A table begins with zeros. Where rewards are negative that is optimistic, and what was never tried is
    tried. The factor makes one-hot observations as large as standardised ones, so that an optimiser moves the returns
    of many states, which it meets rarely, further each time than those of a few.
    """

    entries: Float[Array, "K states outputs"]
    num_actions: int = eqx.field(static=True)

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, "K A n"]:
        """Return the outputs of every member and action for one observation, which is one-hot.

        A product, which adds zeros to the outputs of the state: policies that are exported need no reading of places.
        """
        return self._outputs(jnp.einsum("s,kso->ko", obs, self.entries))

    def batch(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K batch A n"]:
        """Return the outputs of every member and action for many observations."""
        return self._outputs(self.entries[:, _state(obs)])

    def per_member(self, obs: Float[Array, "K batch obs"]) -> Float[Array, "K batch A n"]:
        """Return each member's outputs on observations of its own."""
        return self._outputs(jax.vmap(lambda table, state: table[state])(self.entries, _state(obs)))

    def columns(self, obs: Float[Array, "batch obs"]) -> Float[Array, "K A n batch"]:
        """Return the outputs of every member and action, observations along the last axis."""
        return jnp.moveaxis(self.batch(obs), 1, -1)

    def features(self, obs: Float[Array, " obs"]) -> Float[Array, "K features"]:
        """Return the one-hot observation, which is all that a member sees."""
        return jnp.broadcast_to(obs, (self.entries.shape[0], obs.size))

    @property
    def parameters(self) -> int:
        """The number of learnable parameters."""
        return self.entries.size

    def _outputs(self, entries: Float[Array, "... outputs"]) -> Float[Array, "... A n"]:
        scaled = entries * math.sqrt(self.entries.shape[1])
        return scaled.reshape(*scaled.shape[:-1], self.num_actions, -1)


def init_table(members: int, spec: EnvSpec, outputs: int) -> Table:
    """A table of zeros.

    Raises:
        UsageError: for an environment whose observations are not the number of a state.
    """
    if spec.structure != "states":
        raise UsageError(
            f"the encoder 'table' needs the number of a state, and {spec.name} says structure={spec.structure!r}: "
            "give its EnvSpec structure='states' where the observation is one-hot, or use encoder='mlp'"
        )
    return Table(jnp.zeros((members, spec.obs_size, spec.num_actions * outputs)), spec.num_actions)


def _state(obs: Float[Array, "... obs"]) -> Int[Array, "..."]:
    """The number of the state."""
    return jnp.argmax(obs, axis=-1)
