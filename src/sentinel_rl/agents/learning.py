"""What agents share that learn from a replay: hyperparameters, epochs of minibatches, target networks."""

import abc
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Shaped

from sentinel_rl.agents.agent import BaseAgent, Metrics, best_action, epsilon_greedy
from sentinel_rl.replay import Horizon, Transition

# Observations that a report of a learning agent averages over.
REPORTED_OBSERVATIONS = 64
# Steps of a warm-up that is a share of the steps, at most.
LONGEST_WARMUP = 1_000

TimeLimit = Literal["terminal", "bootstrap"]
# Of the parameters, a minibatch, and the number of the minibatch in its epoch.
Loss = Callable[[Any, Any, Int[Array, ""]], Float[Array, ""]]


@dataclasses.dataclass(frozen=True)
class Pace:
    """When an agent learns and explores, where the plan of a training names nothing else.

    Args:
        learn_every: steps between two updates, or ``"triangular"``.
        warmup_fraction: share of the steps before the first update, at most 1 000 of them; never less than enough for
            one update.
        epsilon_start: exploration before and during the warm-up.
        epsilon_end: exploration after its decline.
        epsilon_fraction: share of the steps after the warm-up over which epsilon declines.
        longest_bout: steps for which an exploring action is repeated, at most; None for one.
    """

    learn_every: int | str = 100
    warmup_fraction: float = 0.0
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_fraction: float = 0.25
    longest_bout: int | None = None


class ReplayAgent(BaseAgent):
    """The hyperparameters of learning from a replay; the numbers are pytree leaves and can be vmapped over.

    Args:
        gamma: discount.
        learning_rate: of Adam.
        learning_rate_end: what it declines to, linearly over the updates of a training; constant where it is None.
        adam_eps: of Adam; it matters (the paper does not print it).
        samples: transitions that are drawn for an update.
        batch: size of the minibatches of the one epoch over them; the last may be short.
        capacity: transitions kept.
        target_every: updates between two updates of the target networks.
        time_limit: a time limit ends the return (``"terminal"``) or is bootstrapped through (``"bootstrap"``).
        n_step: rewards that a target adds up before it asks the networks for the rest of the return.
        max_grad_norm: longer gradients of a minibatch are shortened to this norm; None leaves them.
        average_over: a frozen policy acts with the mean of the networks at about so many of the latest updates of the
            target networks, see `averaged_if`; None for the latest networks.
        pace: when it learns and explores, where the plan of a training names nothing else.
        updates: of the training, which `planned` fills in where the learning rate declines.
    """

    gamma: float | Array = eqx.field(kw_only=True, default=0.99)
    learning_rate: float | Array = eqx.field(kw_only=True, default=2.5e-4)
    learning_rate_end: float | Array | None = eqx.field(kw_only=True, default=None)
    adam_eps: float | Array = eqx.field(kw_only=True, default=1e-7)
    samples: int = eqx.field(static=True, kw_only=True, default=100)
    batch: int = eqx.field(static=True, kw_only=True, default=32)
    capacity: int = eqx.field(static=True, kw_only=True, default=100_000)
    target_every: int = eqx.field(static=True, kw_only=True, default=10)
    time_limit: TimeLimit = eqx.field(static=True, kw_only=True, default="terminal")
    n_step: int = eqx.field(static=True, kw_only=True, default=1)
    max_grad_norm: float | Array | None = eqx.field(kw_only=True, default=None)
    average_over: int | Array | None = eqx.field(kw_only=True, default=None)
    pace: Pace = eqx.field(static=True, kw_only=True, default=Pace())
    updates: int | Array | None = eqx.field(kw_only=True, default=None)

    def plan_defaults(self, steps: int) -> dict[str, Any]:
        """The pace, for so many steps."""
        pace = dataclasses.asdict(self.pace)
        share = min(int(pace.pop("warmup_fraction") * steps), LONGEST_WARMUP)
        return {**pace, "warmup": max(self.samples, share)}

    def planned(self, updates: int) -> Self:
        """The agent with the length of the decline of its learning rate."""
        return self if self.learning_rate_end is None else dataclasses.replace(self, updates=updates)

    def policy(self, state: Any) -> Any:
        """The networks that a frozen policy acts with: the averaged ones, or the online ones."""
        return state.online if state.average is None else state.average

    def _averaged(self, update: Int[Array, ""], online: Any, state: Any) -> Any:
        """The averaged networks after an update, where there are some."""
        if self.average_over is None or state.average is None:
            return None
        return averaged_if(self._due(update), update // self.target_every, self.average_over, online, state.average)

    def report(self, state: Any) -> Metrics:
        """What `account` tells of the preferred action, averaged over the latest observations."""
        observations = state.replay.latest(REPORTED_OBSERVATIONS).obs
        told = jax.vmap(lambda obs: self.account(state, obs))(observations)
        best = jnp.argmax(told.value, axis=-1)[:, None]
        return {name: jnp.mean(jnp.take_along_axis(part, best, axis=-1)) for name, part in told.parts.items()}

    @property
    def _adam(self) -> optax.GradientTransformation:
        """Adam at the first update; its state does not depend on the learning rate."""
        return optax.adam(self.learning_rate, eps=self.adam_eps)

    def _adam_at(self, update: Int[Array, ""]) -> optax.GradientTransformation:
        """Adam with the learning rate of an update."""
        if self.learning_rate_end is None or self.updates is None:
            return self._adam
        share = jnp.clip((update - 1) / jnp.maximum(self.updates - 1, 1), 0.0, 1.0)
        return optax.adam(self.learning_rate + share * (self.learning_rate_end - self.learning_rate), eps=self.adam_eps)

    @property
    def _horizon(self) -> Horizon:
        """How far a draw looks ahead."""
        return Horizon(self.gamma, self.n_step, self.time_limit == "terminal")

    def _clipped(self, gradient: Any) -> Any:
        """A gradient that is no longer than allowed."""
        return gradient if self.max_grad_norm is None else shortened(gradient, self.max_grad_norm)

    def _due(self, update: Int[Array, ""]) -> Array:
        """Whether the target networks are due at this update."""
        return update % self.target_every == 0

    def _minimise(
        self,
        loss: Loss,
        adam: optax.GradientTransformation,
        parameters: Any,
        optimiser: optax.OptState,
        batch: Any,
        axis: int,
    ) -> tuple[Any, optax.OptState, Float[Array, ""]]:
        """One pass over the draws along `axis` in minibatches; the last is short where the size does not divide.

        Returns:
            the parameters, the optimiser's state and the mean loss of the minibatches.
        """

        def step(carry: tuple[Any, optax.OptState], now: tuple[Any, Array]) -> tuple[tuple[Any, optax.OptState], Array]:
            parameters, state = carry
            value, gradient = jax.value_and_grad(loss)(parameters, *now)
            change, state = adam.update(self._clipped(gradient), state, parameters)
            return (optax.apply_updates(parameters, change), state), value

        count = self.samples // self.batch
        first, rest = _split(batch, count * self.batch, axis)
        parts = jax.tree.map(partial(_minibatches, size=self.batch, axis=axis), first)
        carry, losses = jax.lax.scan(step, (parameters, optimiser), (parts, jnp.arange(count)))
        if count * self.batch < self.samples:
            carry, last = step(carry, (rest, jnp.asarray(count)))
            losses = jnp.append(losses, last)
        return *carry, jnp.mean(losses)


class ReplayState(eqx.Module):
    """Everything that changes: the parameters, those that targets are made with, Adam's moments, what was seen.

    ``average`` are the averaged parameters that a frozen policy acts with, where there are some.
    """

    online: Any
    target: Any
    optimiser: optax.OptState
    replay: Any
    average: Any = eqx.field(kw_only=True, default=None)


class Sample(NamedTuple):
    """Transitions with their targets."""

    obs: Float[Array, "batch obs"]
    action: Int[Array, " batch"]
    target: Float[Array, "batch ..."]


class SoleAgent(ReplayAgent):
    """One learner that sees all data, explores by what it does not know, and copies its target network.

    Args:
        use_epsilon: explore at random as well, with the epsilon of the course.
    """

    use_epsilon: bool = eqx.field(static=True, kw_only=True, default=False)

    @abc.abstractmethod
    def values(self, state: Any, obs: Float[Array, " obs"]) -> Float[Array, " A"]:
        """What the frozen policy maximises: a function of the state and the observation alone."""

    @abc.abstractmethod
    def drawn_values(self, state: Any, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, " A"]:
        """What is maximised while learning: values as they might be."""

    @abc.abstractmethod
    def _targets(
        self, state: Any, transitions: Transition, discount: Float[Array, " batch"], key: jax.Array
    ) -> Float[Array, "batch ..."]:
        """What the values of the actions taken are compared with."""

    @abc.abstractmethod
    def _loss(self, parameters: Any, batch: Sample, state: Any, key: jax.Array) -> Float[Array, ""]:
        """The loss of a minibatch."""

    def _copied(self, online: Any) -> Any:
        """What the target network copies."""
        return online

    def act(self, state: Any, obs: Array, epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest drawn value; exact ties at random."""
        value_key, key = jax.random.split(key)
        values = self.drawn_values(state, obs, value_key)
        return epsilon_greedy(values, epsilon if self.use_epsilon else jnp.zeros(()), key)

    def greedy(self, state: Any, obs: Array, key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest value, the first of equals."""
        return best_action(self.values(state, obs))

    def observe(self, state: Any, t: Array, transition: Transition, key: jax.Array) -> Any:
        """Keep a transition."""
        return dataclasses.replace(state, replay=state.replay.add(t, transition, jnp.ones(1)))

    def learn(self, state: Any, update: Array, key: jax.Array) -> tuple[Any, Metrics]:
        """One epoch of minibatches over fresh draws; every `target_every`-th update copies the target network."""
        sample_key, target_key, loss_key = jax.random.split(key, 3)
        # What `sample` would draw, without its search for what is alive, whose every turn a GPU asks the host for.
        drawn = state.replay.sample_shared(sample_key, self.samples, self._horizon)
        transitions = drawn.transitions
        target = self._targets(state, transitions, drawn.discount, target_key)
        batch = Sample(transitions.obs, transitions.action, target)

        def loss(parameters: Any, part: Sample, number: Array) -> Array:
            return self._loss(parameters, part, state, jax.random.fold_in(loss_key, number))

        online, optimiser, mean = self._minimise(
            loss, self._adam_at(update), state.online, state.optimiser, batch, axis=0
        )
        moved = copied_if(self._due(update), self._copied(online), state.target)
        average = self._averaged(update, online, state)
        after = dataclasses.replace(state, online=online, target=moved, optimiser=optimiser, average=average)
        return after, {"loss": mean}


def shortened(gradient: Any, longest: float | Array) -> Any:
    """A gradient with a norm of at most `longest`, over all its arrays."""
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda leaf: leaf * (longest / jnp.maximum(norm, longest)), gradient)


def copied_if(due: Array, new: Any, old: Any) -> Any:
    """The new parameters if a copy is due, else the old ones: a branch, for to select reads and writes them all."""
    return jax.lax.cond(due, lambda fresh, kept: fresh, lambda fresh, kept: kept, new, old)


def averaged_if(due: Array, copies: Int[Array, ""], over: int | Array, new: Any, average: Any) -> Any:
    """The mean of the parameters at the copies so far, and after `over` copies an exponential one as long.

    The parameters at the end of a training are one draw of a walk around good ones, their mean is nearer to the middle
    (Polyak and Juditsky 1992; Izmailov et al. 2018). Before the first copy the average follows the parameters.

    Args:
        due: whether the parameters are copied now.
        copies: so far, this one included.
        over: copies that the mean goes back over.
        new: the parameters.
        average: their mean so far.
    """
    share = 1.0 / jnp.clip(copies, 1, over)

    def moved(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda one, mean: mean + share * (one - mean), new, old)

    return jax.lax.cond(due | (copies == 0), moved, lambda new, old: old, new, average)


def chosen(outputs: Float[Array, "*batch A n"], action: Int[Array, "*batch"]) -> Float[Array, "*batch n"]:
    """The outputs of one action each."""
    return jnp.take_along_axis(outputs, action[..., None, None], axis=-2)[..., 0, :]


def chosen_for_loss(outputs: Float[Array, "*batch A n"], action: Int[Array, "*batch"]) -> Float[Array, "*batch n"]:
    """`chosen` as a product with zeros and ones, whose gradient is cheaper than that of a gather."""
    picks = jax.nn.one_hot(action, outputs.shape[-2], dtype=outputs.dtype)
    return jnp.sum(outputs * picks[..., None], axis=-2)


def _split(batch: Any, place: int, axis: int) -> tuple[Any, Any]:
    """The draws before and from a place."""
    before = jax.tree.map(lambda leaf: jax.lax.slice_in_dim(leaf, 0, place, axis=axis), batch)
    return before, jax.tree.map(lambda leaf: jax.lax.slice_in_dim(leaf, place, None, axis=axis), batch)


def _minibatches(x: Shaped[Array, "..."], size: int, axis: int) -> Shaped[Array, "..."]:
    """Cut an axis into parts of equal size; the parts come first."""
    return jnp.moveaxis(x.reshape(*x.shape[:axis], -1, size, *x.shape[axis + 1 :]), axis, 0)
