"""gymnax's environments as ours, and ours as gymnax's.

Both sides are pure functions, so that either way nothing is stepped from Python. gymnax, from version 1.0 on, tells
termination from truncation as we do; its `step` resets by itself, which its `step_env` does not.
"""

import dataclasses
import importlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sentinel_rl.envs.spec import Env, EnvSpec, TimeStep
from sentinel_rl.errors import UsageError

# Names of gymnax's environments begin with it.
PREFIX = "gymnax/"
_UNBOUNDED = 1e30


@dataclasses.dataclass(frozen=True, eq=False)
class GymnaxSource:
    """An environment of gymnax, which two adapters share only when it is the same object.

    Args:
        kind: the qualified name of its class.
        settings: its own plain attributes, which name it in files.
    """

    kind: str
    settings: dict[str, Any]

    @property
    def env(self) -> Any:
        """The environment."""
        return self.__dict__["_env"]

    @classmethod
    def of(cls, env: Any) -> "GymnaxSource":
        """Hold an environment."""
        own = {
            name: value
            for name, value in vars(env).items()
            if isinstance(value, (bool, int, float, str))
            or (isinstance(value, tuple) and all(isinstance(part, (bool, int, float, str)) for part in value))
        }
        source = cls(f"{type(env).__module__}.{type(env).__qualname__}", own)
        source.__dict__["_env"] = env
        return source


class FromGymnax(eqx.Module):
    """An environment of gymnax 1.x, to be trained on compiled and side by side like any of ours.

    Observations are flattened to one row of numbers: discrete ones become one-hot, parts of dictionaries stand one
    after the other, and images keep their shape in the spec, so that the right encoder is chosen.

    `from_gymnax` makes one.

    Args:
        params: of the environment.
        source: the environment of gymnax, or an object with its methods.
        spec: its sizes.
    """

    params: Any
    source: GymnaxSource = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)

    def reset(self, key: jax.Array) -> tuple[Any, Float[Array, " obs"]]:
        """Draw an initial state."""
        obs, state = self.source.env.reset(key, self.params)
        return state, self._row(obs)

    def step(self, state: Any, action: Int[Array, ""], key: jax.Array) -> tuple[Any, TimeStep]:
        """Advance by one decision, without a reset; an action that does not exist makes the reward NaN."""
        env = self.source.env
        known = (action >= 0) & (action < self.spec.num_actions)
        taken = jnp.clip(action, 0, self.spec.num_actions - 1)
        if _steps_without_reset(env):
            seen, after, reward, terminated, _ = env.step_env(key, state, taken, self.params)
            truncated = env.is_truncated(after, self.params)
        else:
            _, after, reward, terminated, truncated, info = env.step(key, state, taken, self.params)
            seen = info["final_observation"]
        paid = jnp.where(known, jnp.asarray(reward, jnp.float32).reshape(()), jnp.nan)
        ended = (jnp.asarray(flag, bool).reshape(()) for flag in (terminated, truncated))
        return after, TimeStep(self._row(seen), paid, *ended)

    def _row(self, obs: Any) -> Float[Array, " obs"]:
        return _flat(self.source.env.observation_space(self.params), obs)


class GymnaxParams(NamedTuple):
    """The parameters of an environment of ours in gymnax: its settings are fields of its own."""

    max_steps_in_episode: int


class GymnaxState(NamedTuple):
    """The state of an environment of ours in gymnax.

    Args:
        inner: the environment's own.
        time: decisions of the episode so far.
        truncated: whether a time limit has cut the episode off.
    """

    inner: Any
    time: Int[Array, ""]
    truncated: Any


@dataclasses.dataclass(frozen=True)
class ToGymnax:
    """Any JAX environment with the methods of gymnax 1.x: for its wrappers, and for trainers that know gymnax.

    ``step`` returns six values and resets by itself; the true successor of the last step of an episode is
    ``info["final_observation"]``. Trainers that were written for gymnax before 1.0, such as rejax, want five values.

    Args:
        env: the environment.
        legacy: ``step`` returns five values: whether the episode has ended stands for ``terminated`` and ``truncated``.

    Example:
        >>> from sentinel_rl.envs import CartPole
        >>> env = ToGymnax(CartPole(500))
        >>> obs, state = env.reset(jax.random.key(0), env.default_params)
        >>> obs, state, reward, terminated, truncated, info = env.step(jax.random.key(1), state, 1)
        >>> obs.shape, float(reward)
        ((4,), 1.0)
    """

    env: Env
    legacy: bool = False

    @property
    def name(self) -> str:
        """Of the environment."""
        return self.env.spec.name

    @property
    def num_actions(self) -> int:
        """How many actions there are."""
        return self.env.spec.num_actions

    @property
    def default_params(self) -> GymnaxParams:
        """The time limit; a large number where there is none."""
        return GymnaxParams(self.env.spec.max_steps or int(np.iinfo(np.int32).max))

    def reset(self, key: jax.Array, params: GymnaxParams | None = None) -> tuple[Array, GymnaxState]:
        """Draw an initial state; returns its observation first, as gymnax does."""
        return self.reset_env(key, params or self.default_params)

    def step(
        self, key: jax.Array, state: GymnaxState, action: Any, params: GymnaxParams | None = None
    ) -> tuple[Any, ...]:
        """Advance by one decision, and reset where the episode has ended.

        Returns:
            ``(obs, state, reward, terminated, truncated, info)``, or ``(obs, state, reward, done, info)`` if `legacy`.
        """
        params = params or self.default_params
        step_key, reset_key = jax.random.split(key)
        seen, after, reward, terminated, info = self.step_env(step_key, state, action, params)
        truncated = self.is_truncated(after, params)
        fresh_obs, fresh = self.reset_env(reset_key, params)
        done = terminated | truncated
        obs, following = jax.tree.map(lambda new, old: jnp.where(done, new, old), (fresh_obs, fresh), (seen, after))
        info = {**info, "terminated": terminated, "truncated": truncated, "final_observation": seen}
        ended = (done,) if self.legacy else (terminated, truncated)
        return obs, following, reward, *ended, info

    def reset_env(self, key: jax.Array, params: GymnaxParams) -> tuple[Array, GymnaxState]:
        """Draw an initial state."""
        state, obs = self.env.reset(key)
        return obs, GymnaxState(state, jnp.zeros((), jnp.int32), jnp.zeros((), bool))

    def step_env(
        self, key: jax.Array, state: GymnaxState, action: Any, params: GymnaxParams
    ) -> tuple[Array, GymnaxState, Array, Array, dict[str, Any]]:
        """Advance by one decision, without a reset."""
        inner, after = self.env.step(state.inner, jnp.asarray(action, jnp.int32), key)
        following = GymnaxState(inner, state.time + 1, jnp.asarray(after.truncated, bool))
        discount = 1.0 - after.terminated.astype(jnp.float32)
        return after.obs, following, after.reward, after.terminated, {"discount": discount}

    def is_truncated(self, state: GymnaxState, params: GymnaxParams) -> Any:
        """Whether the environment's own time limit, or one of the parameters, was reached."""
        return state.truncated | (state.time >= params.max_steps_in_episode)

    def action_space(self, params: GymnaxParams | None = None) -> Any:
        """Gymnax's space of the actions."""
        return _spaces().Discrete(self.env.spec.num_actions)

    def observation_space(self, params: GymnaxParams | None = None) -> Any:
        """Gymnax's box of the observations."""
        spec = self.env.spec
        low, high = (
            np.full(spec.obs_size, sign * np.inf) if bound is None else np.asarray(bound)
            for sign, bound in ((-1, spec.obs_low), (1, spec.obs_high))
        )
        return _spaces().Box(low.astype(np.float32), high.astype(np.float32), (spec.obs_size,), jnp.float32)


def from_gymnax(env: Any, params: Any = None, **settings: Any) -> FromGymnax:
    """An environment of gymnax as ours.

    Args:
        env: its name, such as ``"Breakout-MinAtar"``, or the environment.
        params: of the environment; its defaults when None.
        settings: replace parameters of the same names.

    Raises:
        UsageError: when gymnax is missing or older than 1.0, for actions that are not discrete, and for an unknown name
            or parameter.
    """
    name = env if isinstance(env, str) else str(getattr(env, "name", type(env).__name__))
    if isinstance(env, str):
        env, params = _made(env, params)
    params = env.default_params if params is None else params
    if settings:
        try:
            params = params.replace(**settings)
        except TypeError as error:
            known = ", ".join(vars(params))
            raise UsageError(f"{PREFIX}{name} has the parameters {known}, got {', '.join(settings)}") from error
    _require_six_values(env, params, name)
    return FromGymnax(params, GymnaxSource.of(env), _spec(env, params, name))


def _made(name: str, params: Any) -> tuple[Any, Any]:
    gymnax = _gymnax()
    try:
        env, defaults = gymnax.make(name)
    except (ValueError, KeyError, ImportError) as error:
        known = ", ".join(getattr(gymnax, "registered_envs", ()))
        raise UsageError(f"gymnax cannot make {name!r} ({error}): it has {known}") from error
    return env, defaults if params is None else params


def _gymnax() -> Any:
    try:
        return importlib.import_module("gymnax")
    except ImportError as error:
        raise UsageError(
            f"environments of gymnax need the package gymnax, from version 1.0 on ({error}): pip install gymnax six"
        ) from error


def _spaces() -> Any:
    _gymnax()
    return importlib.import_module("gymnax.environments.spaces")


def _steps_without_reset(env: Any) -> bool:
    """Whether an environment has what its `step` is made of; wrappers show only that of what they wrap."""
    return "_env" not in vars(env) and hasattr(env, "step_env") and hasattr(env, "is_truncated")


def _require_six_values(env: Any, params: Any, name: str) -> None:
    def tried(key: jax.Array) -> Any:
        _, state = env.reset(key, params)
        return env.step(key, state, jnp.zeros((), jnp.int32), params)

    try:
        returned = jax.eval_shape(tried, jax.random.key(0))
    except Exception as error:  # whatever an environment of somebody else's provokes
        raise UsageError(f"{name} cannot be stepped as gymnax does: {type(error).__name__}: {error}") from error
    if len(returned) != 6 or "final_observation" not in returned[-1]:
        raise UsageError(
            f"step of {name} returns {len(returned)} values, as gymnax before 1.0 does: it does not tell terminated "
            "from truncated, and hides the last observation of an episode. Install gymnax 1.0 or newer"
        )


def _spec(env: Any, params: Any, name: str) -> EnvSpec:
    actions, space = env.action_space(params), env.observation_space(params)
    if not hasattr(actions, "n"):
        raise UsageError(f"{PREFIX}{name} has the action space {actions}: agents choose among discrete actions")
    size = jax.eval_shape(lambda key: _flat(space, env.reset(key, params)[0]), jax.random.key(0)).shape[0]
    shape = tuple(int(side) for side in getattr(space, "shape", ()))
    image = len(shape) == 3 and not hasattr(space, "n")
    limit = getattr(params, "max_steps_in_episode", None)
    return EnvSpec(
        f"{PREFIX}{name}",
        size,
        int(actions.n),
        None,
        int(limit) if limit is not None else None,
        *_bounds(space, size),
        obs_shape=shape if image else None,
        structure="image" if image else None,
    )


def _bounds(space: Any, size: int) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """The bounds of a box, None where it has none."""
    if not (hasattr(space, "low") and hasattr(space, "high")):
        return None, None
    both = []
    for bound in (space.low, space.high):
        wide = np.broadcast_to(np.asarray(bound, np.float64), space.shape).reshape(-1)
        both.append(tuple(float(x) if abs(x) < _UNBOUNDED else float(np.copysign(np.inf, x)) for x in wide))
    return (both[0], both[1]) if len(both[0]) == size else (None, None)


def _flat(space: Any, obs: Any) -> Float[Array, " obs"]:
    """One row of numbers from an observation of a space, or of the spaces of its parts."""
    if hasattr(space, "spaces"):
        parts = space.spaces
        pairs = [(parts[key], obs[key]) for key in (parts if isinstance(parts, dict) else range(len(parts)))]
        return jnp.concatenate([_flat(part, one) for part, one in pairs])
    if hasattr(space, "n"):
        return jax.nn.one_hot(jnp.asarray(obs).reshape(()), int(space.n))
    return jnp.asarray(obs, jnp.float32).reshape(-1)
