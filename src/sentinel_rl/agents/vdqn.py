"""VDQN: Q-learning with a Gaussian posterior over the network (Tang & Kucukelbir 2017), and its CVaR form."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sentinel_rl._checks import on_or_none
from sentinel_rl.agents.agent import Account
from sentinel_rl.agents.learning import ReplayState, Sample, SoleAgent, chosen, chosen_for_loss
from sentinel_rl.agents.options import baseline_options, measure, options_of, require_known
from sentinel_rl.agents.posterior import (
    EncodedPosterior,
    Posterior,
    init_encoded_posterior,
    init_posterior,
    standard_normals,
)
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.nets import encoder_for
from sentinel_rl.replay import Transition, init_replay
from sentinel_rl.risk import Expectation, RiskMeasure

Acting = Literal["step", "episode", "score"]
Bootstrap = Literal["greedy", "score"]
Weights = Posterior | EncodedPosterior

# VDQN-CVaR is this agent with other defaults.
CVAR = {"risk": "cvar:0.25", "acting": "score", "bootstrap": "score"}


class VDQNState(ReplayState):
    """Posteriors, Adam's moments, what was seen, and the key of the network that acts in this episode."""

    episode: jax.Array


class VDQNAgent(SoleAgent):
    """The hyperparameters of VDQN, beside those of `SoleAgent`.

    The return of an action is modelled as ``Z(s, a) = Q_theta(s, a) + noise * xi`` with ``theta`` from the posterior
    and ``xi`` standard normal: its only aleatory spread is the constant `noise`.

    Args:
        noise: standard deviation of the likelihood ``d ~ N(Q_theta(s, a), noise^2)``.
        risk: the score of an action is this measure of `draws` draws of Z, with common draws for all actions.
        acting: Thompson sampling with a fresh network at every ``"step"`` or ``"episode"``, or by the ``"score"``.
        bootstrap: the successor's action is the best of the target's own draw (``"greedy"``), or has the best
            ``"score"`` under the target posterior.
        draws: of the return that a score is made of.
        hidden: sizes of the hidden layers; those that go with the encoder where there is one.
        initial_sd: standard deviation of every weight at the beginning.
        encoder: None has a posterior over all weights of one network, as the agent's own paper. With an encoder, by its
            name (see `sentinel_rl.nets.make_networks`) or a `sentinel_rl.nets.Encoder`, the posterior is over the
            linear layer after it, and the encoder's weights are learnt as a point.
        layer_norm: the sums of an encoder's hidden dense layers are normalised before ReLU (Ba et al. 2016,
            `sentinel_rl.nets.layer_norm`). None is False.
    """

    noise: float | Array = 0.1
    risk: RiskMeasure = Expectation()
    acting: Acting = eqx.field(static=True, default="step")
    bootstrap: Bootstrap = eqx.field(static=True, default="greedy")
    draws: int = eqx.field(static=True, default=100)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(100,))
    initial_sd: float | Array = 0.017
    encoder: Any = eqx.field(static=True, default=None)
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)

    def init(self, spec: EnvSpec, key: jax.Array) -> VDQNState:
        """Draw the posterior's means; the target posterior starts as a copy."""
        net_key, episode_key = jax.random.split(key)
        online: Weights
        if self.encoder is None:
            online = init_posterior(net_key, spec.obs_size, spec.num_actions, self.hidden, self.initial_sd)
        else:
            encoder = encoder_for(spec, self.encoder, self.hidden, self.layer_norm)
            online = init_encoded_posterior(net_key, spec, encoder, self.initial_sd)
        replay = init_replay(self.capacity, spec.obs_size, 1, spec.copies, spec.in_bytes)
        average = None if self.average_over is None else online
        return VDQNState(online, online, self._adam.init(online), replay, episode_key, average=average)

    def values(self, state: VDQNState, obs: Float[Array, " obs"]) -> Float[Array, " A"]:
        """The score of every action, made of the same draws at every observation."""
        return self.score(self.returns(self.policy(state), obs, _common_key()))

    def drawn_values(self, state: VDQNState, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, " A"]:
        """The values under one network of the posterior (Thompson sampling), or the score."""
        if self.acting == "score":
            return self.score(self.returns(state.online, obs, key))
        posterior: Weights = state.online
        if self.acting == "episode":
            return posterior.draw(state.episode)(obs)[0, :, 0]
        return posterior.outputs(obs, posterior.noise(key, 1))[0]

    def returns(self, posterior: Weights, obs: Float[Array, " obs"], key: jax.Array) -> Float[Array, "draws A"]:
        """Draws of Z at one observation, the same networks and noise for all actions."""
        numbers = standard_normals(key, (self.draws, posterior.units + 1))  # the last of a draw is its xi
        return posterior.outputs(obs, numbers[:, :-1]) + self.noise * numbers[:, -1:]

    def score(self, returns: Float[Array, "draws A"]) -> Float[Array, " A"]:
        """The risk measure of the draws of every action."""
        scores: Array = self.risk.of(returns, axis=0)
        return scores

    def account(self, state: VDQNState, obs: Float[Array, " obs"]) -> Account:
        """The score of every action, the mean and the spread of its value over the posterior, and the noise."""
        values = self.posterior_values(state, obs)
        aleatory = jnp.broadcast_to(jnp.asarray(self.noise, values.dtype), values.shape[1:])
        spread = {"epistemic_sd": jnp.std(values, axis=0), "aleatory_sd": aleatory}
        parts = {"mean": jnp.mean(values, axis=0), **spread}
        return Account(self.values(state, obs), parts, values)

    def with_policy(self, policy: Weights) -> VDQNState:
        """A state without target posterior, optimiser and replay."""
        return VDQNState(policy, None, None, None, jax.random.key(0))

    @property
    def objective(self) -> str:
        """The measure of the draws."""
        return f"{self.risk} over draws of the return"

    @property
    def caveat(self) -> str:
        """The noise is a constant."""
        return (
            "epistemic_sd is the spread of the posterior's draws; aleatory_sd is the model's constant noise: "
            "how the return scatters is not learnt"
        )

    def posterior_values(self, state: VDQNState, obs: Float[Array, " obs"]) -> Float[Array, "draws A"]:
        """The values of every action under the networks that an account is made of."""
        posterior: Weights = self.policy(state)
        numbers = standard_normals(_common_key(), (self.draws, posterior.units + 1))
        return posterior.outputs(obs, numbers[:, :-1])

    def observe(self, state: VDQNState, t: Array, transition: Transition, key: jax.Array) -> VDQNState:
        """Keep a transition; after the last of an episode another network acts."""
        episode = jnp.where(transition.terminated | transition.truncated, key, state.episode)
        kept: VDQNState = super().observe(state, t, transition, key)
        return dataclasses.replace(kept, episode=episode)

    def _targets(
        self, state: VDQNState, transitions: Transition, discount: Float[Array, " batch"], key: jax.Array
    ) -> Float[Array, " batch"]:
        """``d = r + gamma Q_theta'(s', a*)`` with an independent network of the target posterior per sample."""
        own_key, score_key = jax.random.split(key)
        own = state.target.noise(own_key, self.samples)
        values = jax.vmap(lambda obs, eps: state.target.outputs(obs, eps[None])[0])(transitions.next_obs, own)
        if self.bootstrap == "greedy":
            following = jnp.max(values, axis=-1)
        else:
            # Common numbers for all samples: the score of each has the law it would have with its own.
            scores = jax.vmap(lambda obs: self.score(self.returns(state.target, obs, score_key)))(transitions.next_obs)
            following = chosen(values[..., None], jnp.argmax(scores, axis=-1))[..., 0]
        return transitions.reward + discount * following

    def _loss(self, parameters: Weights, batch: Sample, state: VDQNState, key: jax.Array) -> Float[Array, ""]:
        return free_energy(parameters, batch, self.noise, key)


def _common_key() -> jax.Array:
    """The key of the draws that frozen policies and accounts are made of, common to all observations."""
    return jax.random.key(0)


def free_energy(posterior: Weights, batch: Sample, noise: float | Array, key: jax.Array) -> Float[Array, ""]:
    """Minus the evidence's lower bound, with one network for the minibatch and a flat prior, but for constants.

    ``sum_j (d_j - Q_theta(s_j, a_j))^2 / (2 noise^2) - sum_i log sd_i``: the entropy is exact, the fit is sampled.
    """
    outputs = posterior.draw(key).per_member(batch.obs[None])[0]
    misfit = batch.target - chosen_for_loss(outputs, batch.action)[..., 0]
    return jnp.sum(misfit**2) / (2 * noise**2) - posterior.log_sd()


VDQN_OPTIONS = ("preset", *options_of(VDQNAgent))


def make_vdqn(spec: EnvSpec, **options: Any) -> VDQNAgent:
    """Make VDQN from options: fields of `VDQNAgent`, ``risk`` also as text (``"cvar:0.25"``), and ``preset``.

    The preset ``"paper"`` changes nothing. ``"learner"`` learns as SENTINEL's default does: the encoder that fits the
    observation, updates, batch, discount, time limit and exploration.

    Raises:
        UsageError: for an unknown option or a value out of range.

    Example:
        >>> spec = EnvSpec("CartPole-v0", 4, 2)
        >>> make_vdqn(spec, noise=0.5).noise, str(make_vdqn_cvar(spec).risk)
        (0.5, 'cvar:0.25')
    """
    require_known(options, VDQN_OPTIONS)
    if "risk" in options:
        options["risk"] = measure("risk", options["risk"])
    return VDQNAgent(**baseline_options(VDQNAgent, spec, options))


def make_vdqn_cvar(spec: EnvSpec, **options: Any) -> VDQNAgent:
    """Make VDQN-CVaR: CVaR 0.25 over the draws of the return chooses, also the successor's action."""
    return make_vdqn(spec, **{**CVAR, **options})
