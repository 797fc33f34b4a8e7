"""The three-state world of the paper's appendix, whose return laws are known exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from sentinel_rl.envs import _gaussian_laws
from sentinel_rl.envs.spec import EnvSpec, TimeStep
from sentinel_rl.returns.categorical import CategoricalReturn, Support
from sentinel_rl.returns.gaussian import GaussianMixture


class Toy(eqx.Module):
    """One decision in ``s0``, then the end in ``s1`` or ``s2``, with a Gaussian reward for the place reached.

    Action 0 leads to ``s1`` with probability ``weights[0]`` and else to ``s2``; action 1 leads to ``s2``. Reaching
    the i-th of the two pays ``N(means[i], stds[i]^2)`` and ends the episode, so that the return laws are

        Z(s0, a0) = weights[0] N(means[0], stds[0]^2) + weights[1] N(means[1], stds[1]^2)
        Z(s0, a1) = N(means[1], stds[1]^2),

    the paper's ``.5 N(1, .1) + .5 N(.95, .1)`` and ``N(.95, .1)``, whatever the discount is. The paper gives these
    laws and the number of states, not the transitions: those are ours. The observation is the state, one-hot.

    Args:
        weights: probabilities of ``s1`` and ``s2`` after action 0.
        means: expected rewards of ``s1`` and ``s2``.
        stds: their standard deviations.

    Example:
        >>> toy = Toy()
        >>> print(toy.mean(0), toy.mean(1), toy.law(0).std().round(5))
        0.975 0.95 0.10308
        >>> print(f"{toy.distance(0, toy.law(1)):.4f}")
        0.0250
    """

    weights: tuple[float, float] = eqx.field(static=True, default=(0.5, 0.5))
    means: tuple[float, float] = eqx.field(static=True, default=(1.0, 0.95))
    stds: tuple[float, float] = eqx.field(static=True, default=(0.1, 0.1))

    def __check_init__(self) -> None:
        self.law(0)

    @property
    def spec(self) -> EnvSpec:
        """Three states, two actions; rewards are Gaussian and so not bounded."""
        return EnvSpec("sentinel/Toy-v0", obs_size=3, num_actions=2, obs_low=(0.0,) * 3, obs_high=(1.0,) * 3)

    def reset(self, key: jax.Array) -> tuple[Int[Array, ""], Float[Array, " 3"]]:
        """Start in ``s0``. The key is not used."""
        start = jnp.zeros((), jnp.int32)
        return start, _one_hot(start)

    def step(self, state: Int[Array, ""], action: Int[Array, ""], key: jax.Array) -> tuple[Int[Array, ""], TimeStep]:
        """Go to ``s1`` or ``s2`` and end there; both absorb, with reward 0. The reward of any other action is NaN."""
        place_key, reward_key = jax.random.split(key)
        lucky = (action == 0) & (jax.random.uniform(place_key) < self.weights[0])
        reached = jnp.where(lucky, 0, 1)
        paid = jnp.array(self.means)[reached] + jnp.array(self.stds)[reached] * jax.random.normal(reward_key)
        over = state > 0
        reward = jnp.where(over, 0.0, jnp.where((action == 0) | (action == 1), paid, jnp.nan))
        state = jnp.where(over, state, 1 + reached).astype(jnp.int32)
        return state, TimeStep(_one_hot(state), reward, jnp.array(True), jnp.array(False))

    def law(self, action: int) -> GaussianMixture:
        """The exact law of the return of an action in ``s0``."""
        if action not in (0, 1):
            raise ValueError(f"action {action} does not exist: the toy world has the actions 0 and 1")
        if action == 1:
            return GaussianMixture.gaussian(self.means[1], self.stds[1])
        return GaussianMixture(*(jnp.array(part) for part in (self.means, self.stds, self.weights)))

    def mean(self, action: int) -> Float[Array, ""]:
        """The exact expected return of an action."""
        return self.law(action).mean()

    def cdf(self, action: int, x: ArrayLike) -> Float[Array, "..."]:
        """The exact probability of a return of at most `x`."""
        return self.law(action).cdf(x)

    def categorical(self, action: int, support: Support) -> CategoricalReturn:
        """The law on a grid, its mass split between neighbouring atoms: what a categorical network converges to.

        Its Wasserstein-1 distance to the law itself is about a quarter of the grid's step.

        Example:
            >>> grid = Support(0.0, 2.0, 51)
            >>> on_grid = Toy().categorical(1, grid)
            >>> print(on_grid.mean().round(4), (Toy().distance(1, on_grid) / grid.step).round(2))
            0.95 0.25
        """
        law: CategoricalReturn = _on_grid(self.law(action), support)
        return law

    def distance(self, action: int, estimate: CategoricalReturn | GaussianMixture) -> Float[Array, "..."]:
        """Wasserstein-1 distance ``int |F - G| dz`` between an action's law and an estimate of it.

        Leading axes of a categorical estimate (members, states) are kept.
        """
        distance: Array = _wasserstein1(self.law(action), estimate)
        return distance


_on_grid = jax.jit(_gaussian_laws.on_grid)
_wasserstein1 = jax.jit(_gaussian_laws.wasserstein1)


def _one_hot(state: Int[Array, ""]) -> Float[Array, " 3"]:
    return jax.nn.one_hot(state, 3)
