"""Agents whose laws are written down, and worlds whose returns are known: what calibration must find out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from sentinel_rl.agents.agent import FixedPolicy, best_action
from sentinel_rl.belief import Belief
from sentinel_rl.envs.spec import EnvSpec, TimeStep
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Composite, CVaR, Expectation


class Prize(eqx.Module):
    """One decision; the reward of either action is drawn from N(mean, 1) with the mean that is seen."""

    shift: float = 0.0

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Prize", obs_size=1, num_actions=2, max_steps=1)

    def reset(self, key: jax.Array) -> tuple[Array, Array]:
        mean = jax.random.uniform(key, (1,))
        return mean, mean

    def step(self, state: Array, action: Array, key: jax.Array) -> tuple[Array, TimeStep]:
        reward = state[0] + self.shift + jax.random.normal(key)
        return state, TimeStep(state, reward, jnp.array(False), jnp.array(True))


class Steady(eqx.Module):
    """Pays 1 at every step, and is cut off after three of them."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Steady", obs_size=1, num_actions=2, max_steps=3)

    def reset(self, key: jax.Array) -> tuple[Array, Array]:
        return jnp.zeros((), jnp.int32), jnp.zeros(1)

    def step(self, state: Array, action: Array, key: jax.Array) -> tuple[Array, TimeStep]:
        after = TimeStep(jnp.zeros(1), jnp.ones(()), jnp.array(False), state + 1 >= 3)
        return state + 1, after


class Trap(eqx.Module):
    """One decision: action 0 pays 1, but where 1 is seen, with a given chance, it ends badly; action 1 pays 0."""

    chance: float = 0.25

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Trap", obs_size=1, num_actions=2, max_steps=1)

    def reset(self, key: jax.Array) -> tuple[Array, Array]:
        seen = (jax.random.uniform(key, (1,)) < self.chance).astype(jnp.float32)
        return seen, seen

    def step(self, state: Array, action: Array, key: jax.Array) -> tuple[Array, TimeStep]:
        bad = (action == 0) & (state[0] > 0)
        return state, TimeStep(state, jnp.where(action == 0, 1.0, 0.0) - 2.0 * bad, bad, ~bad)


class Known(FixedPolicy):
    """Two members that predict N(seen, sd^2) of both actions; where 1 is seen their means differ by `apart`."""

    sd: float | Array = 1.0
    apart: float | Array = 0.0
    gamma: float = eqx.field(static=True, default=0.9)
    time_limit: str = eqx.field(static=True, default="terminal")
    neutral: bool = eqx.field(static=True, default=False)

    def belief(self, state: Any, obs: Array) -> Belief:
        z = jnp.linspace(-6.0, 6.0, 101)
        edges = jnp.concatenate([jnp.array([-jnp.inf]), (z[1:] + z[:-1]) / 2, jnp.array([jnp.inf])])
        probs = jnp.diff(jax.scipy.stats.norm.cdf(edges))
        gap = jnp.where(obs[0] == 1, self.apart, 0.0)
        means = jnp.stack([obs[0] - gap / 2, obs[0] + gap / 2])
        # Action 1 is worth a little less: action 0 is preferred.
        centres = means[:, None] - jnp.array([[0.0, 0.1]])
        atoms = centres[..., None] + self.sd * z[None, None]
        return Belief(CategoricalReturn(atoms, jnp.broadcast_to(probs, atoms.shape)))

    @property
    def composite(self) -> Composite:
        return Composite(Expectation() if self.neutral else CVaR(0.5), Expectation())

    def greedy(self, state: Any, obs: Array, key: jax.Array) -> Array:
        return best_action(self.composite(self.belief(state, obs)))

    def act(self, state: Any, obs: Array, epsilon: Array, key: jax.Array) -> Array:
        return self.greedy(state, obs, key)
