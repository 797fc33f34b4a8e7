"""UA-DQN: quantile regression whose two anchored posterior networks tell risk from ignorance (Clements et al. 2019)."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._checks import known, on_or_none
from sentinel_rl._numerics import safe_sqrt
from sentinel_rl.agents.agent import Account
from sentinel_rl.agents.learning import ReplayState, Sample, SoleAgent, chosen, chosen_for_loss
from sentinel_rl.agents.options import baseline_options, options_of, require_known
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.heads import quantile_huber_loss
from sentinel_rl.nets import EncodedNetworks, Networks, init_networks, make_networks, orthogonal
from sentinel_rl.replay import Transition, init_replay

Centring = Literal["action", "all"]
Evaluation = Literal["risk", "neutral"]

POSTERIORS = slice(1, 3)
Nets = Networks | EncodedNetworks


class UADQNState(ReplayState):
    """``online`` are the networks f, g1 and g2 in this order, ``target`` is the copy of f, ``anchors`` the first g."""

    anchors: Any


class Estimates(NamedTuple):
    """What the quantiles of f, g1 and g2 say of every action."""

    mean: Float[Array, " A"]
    epistemic_variance: Float[Array, " A"]
    aleatory_sd: Float[Array, " A"]


class UADQNAgent(SoleAgent):
    """The hyperparameters of UA-DQN, beside those of `SoleAgent`.

    Args:
        quantiles: N of every law, at the levels ``(i + .5) / N``.
        kappa: where the Huber loss turns linear; 0 is the absolute loss.
        beta: scale of the epistemic standard deviation in Thompson sampling.
        aversion: the weight lambda of the aleatory standard deviation.
        anchor_noise: noise of the data, against which the anchors weigh.
        centring: the covariance of g1 and g2 is taken around the means of each ``"action"``, or around those over
            ``"all"`` actions as in the public code, which punishes actions whose value differs from the average.
        evaluation: the frozen policy weighs ``"risk"`` as acting does, or is ``"neutral"`` as in the public code.
        gain: of the orthogonal initial weights; an encoder draws its own.
        hidden: sizes of the hidden layers; those that go with the encoder where there is one.
        encoder: None has three dense networks, as the agent's own paper. With an encoder, by its name (see
            `sentinel_rl.nets.make_networks`) or a `sentinel_rl.nets.Encoder`, each of f, g1 and g2 has one of its own:
            g1 and g2 are two draws of a posterior over whole networks, and with features in common they would agree
            wherever these do. The anchors hold all weights of g1 and g2, those of the encoders included.
        layer_norm: the sums of an encoder's hidden dense layers are normalised before ReLU (Ba et al. 2016,
            `sentinel_rl.nets.layer_norm`); the anchors hold the gains and shifts, too. None is False.
    """

    quantiles: int = eqx.field(static=True, default=50)
    kappa: float = eqx.field(static=True, default=1.0)
    beta: float | Array = 0.2
    aversion: float | Array = 0.1
    anchor_noise: float | Array = 1.0
    centring: Centring = eqx.field(static=True, default="action")
    evaluation: Evaluation = eqx.field(static=True, default="risk")
    gain: float = eqx.field(static=True, default=3.0)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256,))
    encoder: Any = eqx.field(static=True, default=None)
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)

    def init(self, spec: EnvSpec, key: jax.Array) -> UADQNState:
        """Draw f, g1 and g2 independently; the posterior networks' first parameters are their anchors."""
        online: Nets
        if self.encoder is None:
            sizes = (3, spec.obs_size, spec.num_actions, self.quantiles)
            online = init_networks(key, *sizes, self.hidden, "shared", orthogonal(self.gain))
        else:
            of = 3, spec, self.quantiles, self.encoder, self.hidden
            online = make_networks(key, *of, draw=orthogonal(self.gain), layer_norm=self.layer_norm)
        replay = init_replay(self.capacity, spec.obs_size, 1, spec.copies, spec.in_bytes)
        average = None if self.average_over is None else online
        adam, anchors = self._adam.init(online), members(online, POSTERIORS)
        return UADQNState(online, self._copied(online), adam, replay, anchors, average=average)

    def estimates(self, networks: Nets, obs: Float[Array, " obs"]) -> Estimates:
        """The mean and both uncertainties of every action at one observation."""
        return estimates(networks(obs), self.centring)

    def values(self, state: UADQNState, obs: Float[Array, " obs"]) -> Float[Array, " A"]:
        """``mu_a - lambda sd_a``, or ``mu_a`` where the frozen policy is neutral."""
        told = self.estimates(self.policy(state), obs)
        return told.mean if self.evaluation == "neutral" else self._averse(told)

    def drawn_values(self, state: UADQNState, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, " A"]:
        """A draw of ``N(mu_a - lambda sd_a, beta^2 e_a)``."""
        told = self.estimates(state.online, obs)
        return self._averse(told) + self.beta * jnp.sqrt(told.epistemic_variance) * jax.random.normal(
            key, told.mean.shape
        )

    def account(self, state: UADQNState, obs: Float[Array, " obs"]) -> Account:
        """The value of every action, and the agent's estimates of its mean and of both uncertainties."""
        told = self.estimates(self.policy(state), obs)
        spread = {"epistemic_sd": jnp.sqrt(told.epistemic_variance), "aleatory_sd": told.aleatory_sd}
        return Account(self.values(state, obs), {"mean": told.mean, **spread})

    def with_policy(self, policy: Nets) -> UADQNState:
        """A state without target network, optimiser, replay and anchors."""
        return UADQNState(policy, None, None, None, None)

    @property
    def objective(self) -> str:
        """The mean, with or without the aleatory penalty."""
        if self.evaluation == "neutral":
            return "the mean"
        # Of stacked agents and inside compiled functions it is no number; a check of the protocol reads it also there.
        single = known(self.aversion) and jnp.ndim(self.aversion) == 0
        return f"mean - {f'{float(self.aversion):g}' if single else 'aversion *'} aleatory_sd"

    @property
    def caveat(self) -> str:
        """Estimates, no laws."""
        return (
            "epistemic_sd and aleatory_sd are estimates from two posterior networks: how far they are apart, and how "
            "much they spread alike; there are no laws of the return"
        )

    def _averse(self, told: Estimates) -> Float[Array, " A"]:
        return told.mean - self.aversion * told.aleatory_sd

    def _copied(self, online: Nets) -> Nets:
        return members(online, slice(0, 1))

    def _targets(
        self, state: UADQNState, transitions: Transition, discount: Float[Array, " batch"], key: jax.Array
    ) -> Float[Array, "batch N"]:
        """``y = r + gamma f'(s')[a*]``, a* by the mean of the quantiles of f'; the same for all three networks."""
        laws = state.target.per_member(transitions.next_obs[None])[0]
        best = jnp.argmax(jnp.mean(laws, axis=-1), axis=-1)
        return transitions.reward[:, None] + discount[:, None] * chosen(laws, best)

    def _loss(self, parameters: Nets, batch: Sample, state: UADQNState, key: jax.Array) -> Float[Array, ""]:
        """The quantile losses of f, g1 and g2, and the pull of the anchors, which weakens with the data."""
        outputs = jax.vmap(parameters, out_axes=1)(batch.obs)
        taken = chosen_for_loss(outputs, jnp.broadcast_to(batch.action, outputs.shape[:2]))
        each = jax.vmap(quantile_huber_loss, in_axes=(0, 0, None))
        losses = jax.vmap(each, in_axes=(0, None, None))(taken, batch.target, self.kappa)
        data = jnp.maximum(jnp.minimum(state.replay.count[0], state.replay.capacity), 1)
        away = jax.tree.map(
            lambda new, first: jnp.sum((new - first) ** 2), members(parameters, POSTERIORS), state.anchors
        )
        weight = self.anchor_noise**2 / (prior_scale(state.anchors) ** 2 * data)
        return jnp.sum(jnp.mean(losses, axis=1)) + weight * sum(jax.tree.leaves(away))


def members(networks: Nets, part: slice) -> Nets:
    """Some of the networks f, g1 and g2."""
    some: Nets = jax.tree.map(lambda leaf: leaf[part], networks)
    return some


def prior_scale(anchors: Nets) -> Float[Array, ""]:
    """The mean over the parameter tensors of g1 and g2 of their standard deviation; zero biases count."""
    deviations = [jnp.std(leaf.reshape(leaf.shape[0], -1), axis=1) for leaf in jax.tree.leaves(anchors)]
    return jnp.mean(jnp.stack(deviations))


def estimates(quantiles: Float[Array, "3 A N"], centring: Centring = "action") -> Estimates:
    """Read f, g1 and g2 of every action.

    ``mu = mean_i f_i``; epistemic variance ``mean_i (g1_i - g2_i)^2 / 2``: half of what two draws of a posterior are
    apart; aleatory ``sd = sqrt(max(cov, 0))``, ``cov = mean_i (g1_i - m1) (g2_i - m2)``: what both spread alike.
    """
    f, *both = quantiles
    axes = -1 if centring == "action" else None
    first, second = (g - jnp.mean(g, axis=axes, keepdims=True) for g in both)
    return Estimates(
        mean=jnp.mean(f, axis=-1),
        epistemic_variance=jnp.mean((both[0] - both[1]) ** 2, axis=-1) / 2,
        aleatory_sd=safe_sqrt(jnp.maximum(jnp.mean(first * second, axis=-1), 0.0)),
    )


UADQN_OPTIONS = ("preset", *options_of(UADQNAgent))


def make_uadqn(spec: EnvSpec, **options: Any) -> UADQNAgent:
    """Make UA-DQN from options: fields of `UADQNAgent`, and ``preset``.

    The preset ``"paper"`` changes nothing. ``"learner"`` learns as SENTINEL's default does: the encoder that fits the
    observation, updates, batch, discount, time limit and exploration.

    Raises:
        UsageError: for an unknown option or a value out of range.

    Example:
        >>> make_uadqn(EnvSpec("CartPole-v0", 4, 2), aversion=0.5).aversion
        0.5
    """
    require_known(options, UADQN_OPTIONS)
    return UADQNAgent(**baseline_options(UADQNAgent, spec, options))
