"""A pole balanced on a cart: the world of Gymnasium's ``CartPole-v0`` and ``CartPole-v1``."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl.envs._cartpole_view import draw_cartpole
from sentinel_rl.envs.spec import EnvSpec, TimeStep

_NAMES = {200: "CartPole-v0", 500: "CartPole-v1"}


class CartPoleState(NamedTuple):
    """Where cart and pole are, and how many steps the episode has taken."""

    motion: Float[Array, " 4"]
    time: Int[Array, ""]


class CartPole(eqx.Module):
    """Keep a pole upright by pushing its cart to the left (action 0) or to the right (action 1).

    The observation is ``(x, dx/dt, theta, dtheta/dt)``: the place and speed of the cart, the angle (radians from the
    vertical) and angular speed of the pole. Every step is worth 1, the last one too. The episode *terminates* when
    the cart leaves ``|x| <= x_limit`` or the pole ``|theta| <= theta_limit``, and is *truncated* at `max_steps`; on
    the last step both may be true, as in Gymnasium. It starts with all four values uniform in [-0.05, 0.05].

    With the mass ``M`` of cart and pole together, the mass ``m`` and half length ``l`` of the pole and the force ``F``
    the accelerations are (Barto, Sutton and Anderson 1983; Florian 2007, without friction)

        u         = (F + m l (dtheta/dt)^2 sin theta) / M
        d2theta   = (g sin theta - u cos theta) / (l (4/3 - m cos^2 theta / M))
        d2x       = u - m l d2theta cos theta / M

    and one explicit Euler step of `tau` seconds is taken per action. Inside ``jit`` nothing can raise: an action
    other than 0 and 1 makes the state NaN, and a NaN state stays NaN and never terminates.

    Args:
        max_steps: time limit; 200 is ``CartPole-v0``, 500 is ``CartPole-v1``, None is no limit.

    Example:
        >>> env = CartPole()
        >>> state, obs = env.reset(jax.random.key(0))
        >>> state, after = env.step(state, jnp.array(1), jax.random.key(1))
        >>> print(after.reward, after.terminated, after.truncated)
        1.0 False False
    """

    max_steps: int | None = eqx.field(static=True, default=200)
    gravity: float = eqx.field(static=True, default=9.8)
    cart_mass: float = eqx.field(static=True, default=1.0)
    pole_mass: float = eqx.field(static=True, default=0.1)
    half_length: float = eqx.field(static=True, default=0.5)
    force: float = eqx.field(static=True, default=10.0)
    tau: float = eqx.field(static=True, default=0.02)
    x_limit: float = eqx.field(static=True, default=2.4)
    theta_limit: float = eqx.field(static=True, default=12 * 2 * math.pi / 360)

    def __check_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"CartPole max_steps = {self.max_steps} is not allowed: give at least 1, or None")

    @property
    def spec(self) -> EnvSpec:
        """Four numbers, two actions, reward 1; the bounds are Gymnasium's, twice the limits of an episode."""
        high = (2 * self.x_limit, math.inf, 2 * self.theta_limit, math.inf)
        return EnvSpec(
            name=_NAMES.get(self.max_steps or 0, "CartPole"),
            obs_size=4,
            num_actions=2,
            reward_range=(1.0, 1.0),
            max_steps=self.max_steps,
            obs_low=tuple(-bound for bound in high),
            obs_high=high,
        )

    @property
    def total_mass(self) -> float:
        """``M``, the mass of cart and pole."""
        return self.cart_mass + self.pole_mass

    @property
    def pole_moment(self) -> float:
        """``m l``, the mass of the pole times its half length."""
        return self.pole_mass * self.half_length

    @property
    def render_fps(self) -> int:
        """Pictures per second of the cart's own time."""
        return round(1 / self.tau)

    def reset(self, key: jax.Array) -> tuple[CartPoleState, Float[Array, " 4"]]:
        """Start near the upright rest, uniform in [-0.05, 0.05]^4."""
        motion = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
        return CartPoleState(motion, jnp.zeros((), jnp.int32)), motion

    def step(self, state: CartPoleState, action: Int[Array, ""], key: jax.Array) -> tuple[CartPoleState, TimeStep]:
        """Push for `tau` seconds. The key is not used: nothing is random here."""
        motion, time = self._euler(state.motion, self._push(action)), state.time + 1
        truncated = jnp.array(False) if self.max_steps is None else time >= self.max_steps
        after = TimeStep(motion, jnp.ones((), motion.dtype), self._fallen(motion), truncated)
        return CartPoleState(motion, time), after

    def render(self, state: CartPoleState) -> UInt8[np.ndarray, "400 600 3"]:
        """Draw cart, pole and track."""
        x, _, theta, _ = (float(value) for value in state.motion)
        return draw_cartpole(x, theta, self.x_limit, 2 * self.half_length)

    def _push(self, action: Int[Array, ""]) -> Float[Array, ""]:
        """The force of an action; NaN for one that does not exist."""
        return jnp.where(action == 1, self.force, jnp.where(action == 0, -self.force, jnp.nan))

    def _euler(self, motion: Float[Array, " 4"], force: Float[Array, ""]) -> Float[Array, " 4"]:
        """Advance by one explicit Euler step: places move with the speeds *before* the step."""
        _, speed, theta, spin = motion
        sin, cos = jnp.sin(theta), jnp.cos(theta)
        u = (force + self.pole_moment * spin**2 * sin) / self.total_mass
        inertia = self.half_length * (4 / 3 - self.pole_mass * cos**2 / self.total_mass)
        spin_rate = (self.gravity * sin - cos * u) / inertia
        speed_rate = u - self.pole_moment * spin_rate * cos / self.total_mass
        return motion + self.tau * jnp.stack([speed, speed_rate, spin, spin_rate])

    def _fallen(self, motion: Float[Array, " 4"]) -> Bool[Array, ""]:
        """Whether cart or pole left their limits; comparisons with NaN are false."""
        return (jnp.abs(motion[0]) > self.x_limit) | (jnp.abs(motion[2]) > self.theta_limit)
