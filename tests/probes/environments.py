"""Five worlds in which one fault of an agent shows at once; each asks one thing more than the one before.

All are tables of two states and two actions, so that they are run side by side and compiled once for an agent.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sentinel_rl.envs.spec import EnvSpec, TimeStep


class Probe(eqx.Module):
    """Two states, seen as -1 and 1; from the first one goes to the second, unless the episode ends there."""

    second_start: Float[Array, ""]
    reward: Float[Array, "2 A"]
    ends: Bool[Array, " 2"]

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Probe", obs_size=1, num_actions=self.reward.shape[1])

    def reset(self, key: jax.Array) -> tuple[Int[Array, ""], Float[Array, " 1"]]:
        state = (jax.random.uniform(key) < self.second_start).astype(jnp.int32)
        return state, _seen(state)

    def step(self, state: Array, action: Array, key: jax.Array) -> tuple[Array, TimeStep]:
        following = jnp.ones_like(state)
        return following, TimeStep(_seen(following), self.reward[state, action], self.ends[state], jnp.array(False))


def _seen(state: Array) -> Array:
    return (2.0 * state - 1.0)[None]


def _probe(second_start: float, reward: list[list[float]], ends: list[bool]) -> Probe:
    return Probe(jnp.float32(second_start), jnp.array(reward, jnp.float32), jnp.array(ends))


# One step, reward 1 whatever is done: the loss and the optimiser.
ONE_REWARD = _probe(0.0, [[1, 1], [0, 0]], [True, True])
# One step, the reward is the observation: the network sees.
REWARD_IS_SEEN = _probe(0.5, [[-1, -1], [1, 1]], [True, True])
# Two steps, reward 1 at the end: the discount and the target network.
LATE_REWARD = _probe(0.0, [[0, 0], [1, 1]], [False, True])
# One step, reward -1 for the first action and 1 for the second: the choice.
CHOICE = _probe(0.0, [[-1, 1], [0, 0]], [True, True])
# One step, reward 1 for the action that the observation asks for: the policy.
CHOICE_IS_SEEN = _probe(0.5, [[1, -1], [-1, 1]], [True, True])
