"""SENTINEL-K: K bootstrapped networks of return laws, FTRL weights, composite risk (algorithm 1 of the paper).

Risk-neutral, additive, aleatory-only, epistemic-only and composite agents are this agent with other measures.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from sentinel_rl._checks import on_or_none
from sentinel_rl.agents.agent import Account, Diagnostics, Metrics, best_action, epsilon_greedy
from sentinel_rl.agents.learning import ReplayAgent, chosen, chosen_for_loss, copied_if, shortened
from sentinel_rl.agents.tightening import loosened, share_after
from sentinel_rl.belief import Belief, Divergence, Prefer, weights_of_losses
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.heads import CategoricalHead, Head, as_head
from sentinel_rl.nets import add_prior, learnt_part, make_networks, with_learnt
from sentinel_rl.replay import Mask, Transition, bootstrap_weights, init_replay
from sentinel_rl.returns import Support
from sentinel_rl.risk import Composite, CVaR, RiskMeasure, assess
from sentinel_rl.risk.assessment import Assessment
from sentinel_rl.risk.composite import Aggregate, across_members

BootstrapAction = Literal["online", "target", "member"]
TargetUpdate = Literal["copy", "gradient"]
Draws = Literal["own", "shared"]
Explore = Literal["ensemble", "member"]


class SentinelState(eqx.Module):
    """Everything that changes: networks, their optimisers, and what was seen; to act, ``online`` is enough.

    ``tightened`` is the share of an alpha schedule that is done, ``leader`` the member that acts, ``average`` the
    averaged networks that a frozen policy acts with, where there are such.
    """

    online: Any
    target: Any
    optimiser: optax.OptState
    target_optimiser: optax.OptState
    replay: Any
    tightened: Any = None
    leader: Int[Array, ""] | None = None
    average: Any = None


class Batch(NamedTuple):
    """What one gradient step sees of every member: ``[K, batch]`` transitions with their targets."""

    obs: Float[Array, "... batch obs"]
    action: Int[Array, "... batch"]
    target: Float[Array, "K batch n"]
    weight: Float[Array, "K batch"]


class SentinelAgent(ReplayAgent):
    """The hyperparameters of SENTINEL-K, beside those of `ReplayAgent`.

    Args:
        head: what the outputs of the networks say of the return; a grid stands for categorical laws on it.
        k: number of members.
        epistemic: risk measure across the members.
        aleatory: risk measure of each member's law.
        lam: FTRL's regularising parameter, 0 averages the members.
        mask: bootstrap weights, see `bootstrap_weights`.
        mask_rate: probability that a member sees a transition (bernoulli).
        hidden: sizes of the hidden layers; those that go with the encoder when None.
        encoder: one network per member and action (``"separate"``), one per member (``"mlp"``), one for rows that can
            be exchanged (``"set"``), what fits the observation (``"auto"``), or an `sentinel_rl.nets.Encoder`.
        stretch: numbers of an observation that the environment bounds narrowly are multiplied so that they reach 1.
        draws: every member draws its own samples (``"own"``), or all share a draw and each counts what its mask lets it
            see (``"shared"``): K passes through the networks for the targets instead of K squared.
        explore: who chooses the actions while learning: the ``"ensemble"`` by composite risk, or for every episode
            another ``"member"`` by the risk of its own law, as in bootstrapped DQN (Osband et al. 2016): what the
            others do not know does not hold it back. A frozen policy is the ensemble's in both cases.
        bootstrap_action: networks that choose the successor's action: the ensemble's ``"online"`` networks with FTRL
            weights, its ``"target"`` networks unweighted (as section 5.1 prints), or each ``"member"`` by itself.
        target_update: ``"copy"``, or ``"gradient"`` (line 12 read literally: at its times the target networks take
            the same steps with an optimiser of their own, and are never copied).
        aggregate: what the weights do, see `Composite`.
        divergence: the loss of FTRL, see `ftrl_losses`.
        prefer: the sign of FTRL, see `ftrl_weights`.
        prior_scale: a fixed random network is added to every member with this scale (`sentinel_rl.nets.PriorNetworks`);
            None or 0 for none.
        prior_on: what the random networks are added to: all ``"outputs"`` (None, too), or the ``"mean"``: one number
            per action that shifts quantiles, or tilts logits.
        alpha_start: CVaR and EVaR begin with this alpha, 1 is neutral, and move linearly to their own; None for none.
        alpha_fraction: share of the updates after which they have arrived; half of them when None.
        layer_norm: the sums of hidden dense layers are normalised before ReLU (Ba et al. 2016,
            `sentinel_rl.nets.layer_norm`), where `encoder` is ``"mlp"``, ``"set"`` or ``"cnn"``; None is False.
    """

    head: Head = eqx.field(converter=as_head)
    k: int = eqx.field(static=True, default=4)
    epistemic: RiskMeasure = CVaR(0.25)
    aleatory: RiskMeasure = CVaR(0.25)
    lam: float | Array = 1.0
    mask: Mask = eqx.field(static=True, default="bernoulli")
    mask_rate: float | Array = 1 / 3
    hidden: tuple[int, ...] | None = eqx.field(static=True, default=None)
    encoder: Any = eqx.field(static=True, default="separate")
    stretch: bool = eqx.field(static=True, default=False)
    draws: Draws = eqx.field(static=True, default="own")
    explore: Explore = eqx.field(static=True, default="ensemble")
    bootstrap_action: BootstrapAction = eqx.field(static=True, default="online")
    target_update: TargetUpdate = eqx.field(static=True, default="copy")
    aggregate: Aggregate = eqx.field(static=True, default="belief")
    divergence: Divergence = eqx.field(static=True, default="marginal_to_member")
    prefer: Prefer = eqx.field(static=True, default="consensus")
    prior_scale: float | None = eqx.field(static=True, default=None, converter=lambda scale: scale or None)
    prior_on: str | None = eqx.field(static=True, default=None)
    alpha_start: float | Array | None = None
    alpha_fraction: float | Array | None = None
    layer_norm: bool | None = eqx.field(static=True, default=None, converter=on_or_none)

    def init(self, spec: EnvSpec, key: jax.Array) -> SentinelState:
        """Draw the networks; the target networks start as copies."""
        of = self.k, spec, self.head.outputs, self.encoder, self.hidden, self.stretch
        online = make_networks(key, *of, layer_norm=self.layer_norm)
        if self.prior_scale is not None:
            direction = self.head.upwards if self.prior_on == "mean" else None
            online = add_prior(key, online, *of, self.prior_scale, direction, self.layer_norm)
        learnt = learnt_part(online)
        replay = init_replay(self.capacity, spec.obs_size, self.k, spec.copies, spec.in_bytes)
        tightened = None if self.alpha_start is None else jnp.zeros(())
        leader = jax.random.randint(jax.random.fold_in(key, 1), (), 0, self.k) if self.explore == "member" else None
        optimisers = self._adam.init(learnt), self._target_adam.init(learnt)
        average = None if self.average_over is None else online
        return SentinelState(online, online, *optimisers, replay, tightened, leader, average)

    def planned(self, updates: int) -> Self:
        """The agent with the length of its schedules."""
        scheduled = self.learning_rate_end is not None or self.alpha_start is not None
        return dataclasses.replace(self, updates=updates) if scheduled else self

    def belief(self, state: SentinelState, obs: Float[Array, " obs"]) -> Belief:
        """What the members expect of every action at one observation, weighted by FTRL: laws ``[K, A, n]``."""
        return self.belief_of(self.policy(state), obs)

    def belief_of(self, networks: Any, obs: Float[Array, " obs"], lam: float | Array | None = None) -> Belief:
        """What the members expect of every action at one observation, weighted by FTRL: laws ``[K, A, n]``."""
        laws, losses = self.head.laws_and_losses(networks(obs), self.divergence)
        return Belief(laws, weights_of_losses(losses, self.lam if lam is None else lam, self.prefer))

    def values(self, networks: Any, obs: Float[Array, " obs"], lam: float | Array | None = None) -> Array:
        """The composite risk of every action at one observation."""
        return Composite(self.epistemic, self.aleatory, self.aggregate)(self.belief_of(networks, obs, lam))

    def values_of_many(
        self, networks: Any, obs: Float[Array, "batch obs"], lam: float | Array
    ) -> Float[Array, "A batch"]:
        """The composite risk of every action at many observations: `values` of each."""
        found = None
        if self.k > 1 and jax.default_backend() == "cpu":
            found = self.head.risks_in_columns(networks.columns(obs), self.aleatory, self.divergence)
        if found is None:
            return jax.vmap(lambda one: self.values(networks, one, lam), out_axes=-1)(obs)
        risks, losses = found
        return across_members(self.epistemic, risks, weights_of_losses(losses, lam, self.prefer), self.aggregate)

    def act(self, state: SentinelState, obs: Array, epsilon: Array, key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest composite risk (line 20), or of the leader's risk; with epsilon any."""
        now = self._now(state)
        if state.leader is None:
            return epsilon_greedy(now.values(state.online, obs), epsilon, key)
        return epsilon_greedy(now.aleatory(self.head.law(state.online(obs)[state.leader])), epsilon, key)

    def greedy(self, state: SentinelState, obs: Array, key: jax.Array) -> Int[Array, ""]:
        """Take the action of the highest composite risk, the first of equals."""
        return best_action(self.values(self.policy(state), obs))

    def observe(self, state: SentinelState, t: Array, transition: Transition, key: jax.Array) -> SentinelState:
        """Keep a transition, with the bootstrap weights that say which members may learn from it."""
        weights = bootstrap_weights(key, self.k, self.mask, self.mask_rate)
        leader = state.leader
        if leader is not None:
            # Environments that are stepped together have one leader, for as long as an episode on average.
            change, member = jax.random.uniform(jax.random.fold_in(key, 1), (2,))
            ends = (transition.terminated | transition.truncated) & (change * state.replay.copies < 1)
            leader = jnp.where(ends, (member * self.k).astype(jnp.int32), leader)
        return dataclasses.replace(state, replay=state.replay.add(t, transition, weights), leader=leader)

    def assess(self, state: SentinelState, obs: Array) -> Assessment:
        """Decompose the composite risk of every action at one observation."""
        return assess(self.belief(state, obs), self.epistemic, self.aleatory, self.aggregate)

    def account(self, state: SentinelState, obs: Array) -> Account:
        """The composite risk of every action and its two penalties."""
        why = self.assess(state, obs)
        penalties = {"aleatory": why.aleatory_penalty, "epistemic": why.epistemic_penalty}
        return Account(why.composite, {**penalties, "composite": why.composite})

    def with_policy(self, policy: Any) -> SentinelState:
        """A state without target networks, optimisers and replay."""
        return SentinelState(policy, None, None, None, None)

    def diagnostics(self, state: SentinelState, obs: Array, action: Int[Array, ""]) -> Diagnostics:
        """The penalties of the action taken, and whether other values of the same belief prefer another one."""
        why = self.assess(state, obs)
        return {
            "aleatory": why.aleatory_penalty[action],
            "epistemic": why.epistemic_penalty[action],
            "differs_additive": (why.additive[action] < jnp.max(why.additive)).astype(obs.dtype),
            "differs_neutral": (why.mean[action] < jnp.max(why.mean)).astype(obs.dtype),
        }

    def check(self, t: int, metrics: Mapping[str, float], state: Callable[[], Any]) -> str | None:
        """Warn of what the head finds wrong, such as a support that is too small for the returns that were seen."""
        return self.head.warning(float(self.gamma), t, metrics, lambda: state().replay)

    @property
    def support(self) -> Support:
        """The grid of categorical laws.

        Raises:
            AttributeError: for other laws, which have none.
        """
        if not isinstance(self.head, CategoricalHead):
            raise AttributeError(f"the laws of {type(self.head).__name__} are on no grid")
        return self.head.support

    @property
    def composite(self) -> Composite:
        """The composite risk that is maximised."""
        return Composite(self.epistemic, self.aleatory, self.aggregate)

    @property
    def objective(self) -> str:
        """The composite risk."""
        return str(self.composite)

    @property
    def caveat(self) -> str:
        """One network cannot disagree with itself."""
        if self.k > 1:
            return ""
        return "aleatory only: one network cannot disagree with itself, so nothing is told of what it does not know"

    def learn(self, state: SentinelState, update: Array, key: jax.Array) -> tuple[SentinelState, Metrics]:
        """One epoch of minibatches over fresh draws from every member's data (lines 4 to 13)."""
        sample = state.replay.sample if self.draws == "own" else state.replay.sample_shared
        drawn = sample(key, self.samples, self._horizon)
        transitions = drawn.transitions
        target, metrics = self._now(state)._targets(state, transitions, drawn.discount)
        batch = Batch(transitions.obs, transitions.action, target, drawn.weights)
        online, optimiser, loss = self._epoch(self._adam_at(update), state.online, state.optimiser, batch)
        if self.target_update == "copy":
            moved, target_optimiser = copied_if(self._due(update), online, state.target), state.target_optimiser
        else:
            moved, target_optimiser = jax.lax.cond(
                self._due(update),
                lambda nets, opt: self._epoch(self._adam_at(update), nets, opt, batch)[:2],
                lambda nets, opt: (nets, opt),
                state.target,
                state.target_optimiser,
            )
        tightened = None
        if state.tightened is not None:
            tightened = share_after(update, self.updates, self.alpha_fraction)
        rest = state.replay, tightened, state.leader, self._averaged(update, online, state)
        after = SentinelState(online, moved, optimiser, target_optimiser, *rest)
        return after, {"loss": loss, **metrics}

    def _now(self, state: SentinelState) -> Self:
        """The agent with the measures that an alpha schedule has come to."""
        if self.alpha_start is None or state.tightened is None:
            return self
        start, share = self.alpha_start, state.tightened
        epistemic, aleatory = loosened(self.epistemic, start, share), loosened(self.aleatory, start, share)
        return dataclasses.replace(self, epistemic=epistemic, aleatory=aleatory)

    @property
    def _target_adam(self) -> optax.GradientTransformation:
        return self._adam if self.target_update == "gradient" else optax.identity()

    def _clipped(self, gradient: Any) -> Any:
        """Every member's gradient by itself: that of the loss is a gradient of each, side by side."""
        if self.max_grad_norm is None:
            return gradient
        return jax.vmap(shortened, in_axes=(0, None))(gradient, self.max_grad_norm)

    def _targets(
        self, state: SentinelState, transitions: Transition, discount: Float[Array, "..."]
    ) -> tuple[Float[Array, "K batch n"], Metrics]:
        """The targets of ``r + gamma Z_i(s', a*)``, each member's from its own target network."""
        best = self._best_actions(state, transitions.next_obs)
        shared = transitions.next_obs.ndim == 2
        outputs = (state.target.batch if shared else state.target.per_member)(transitions.next_obs)
        following = chosen(outputs, jnp.broadcast_to(best, outputs.shape[:2]))
        of_members = jax.vmap(jax.vmap(self.head.target), in_axes=(0, *([None] * 2 if shared else [0] * 2)))
        target, told = of_members(following, transitions.reward, discount)
        return target, {name: jnp.mean(numbers) for name, numbers in told.items()}

    def _best_actions(self, state: SentinelState, next_obs: Float[Array, "... batch obs"]) -> Int[Array, "... batch"]:
        """The action a* of every successor (line 9)."""
        if self.bootstrap_action == "member":
            shared = next_obs.ndim == 2
            outputs = (state.online.batch if shared else state.online.per_member)(next_obs)
            return jnp.argmax(self.aleatory(self.head.law(outputs)), axis=-1)
        networks, lam = (state.online, self.lam) if self.bootstrap_action == "online" else (state.target, 0.0)
        successors = next_obs.reshape(-1, next_obs.shape[-1])
        values = self.values_of_many(networks, successors, lam)
        return jnp.argmax(values, axis=0).reshape(next_obs.shape[:-1])

    def _epoch(
        self, adam: optax.GradientTransformation, networks: Any, optimiser: optax.OptState, batch: Batch
    ) -> tuple[Any, optax.OptState, Float[Array, ""]]:
        """One pass over the draws in minibatches; the loss is the mean of the members'."""

        def loss(nets: Any, part: Batch, number: Array) -> Array:
            return weighted_loss(with_learnt(networks, nets), part, self.head)

        own = jnp.broadcast_to(batch.action, batch.weight.shape)
        batch = batch._replace(obs=jnp.broadcast_to(batch.obs, (*own.shape, batch.obs.shape[-1])), action=own)
        learnt, optimiser, mean = self._minimise(loss, adam, learnt_part(networks), optimiser, batch, axis=1)
        return with_learnt(networks, learnt), optimiser, mean / self.k


def weighted_loss(networks: Any, batch: Batch, head: Head) -> Float[Array, ""]:
    """The sum over members of the weighted mean of a head's losses, on the actions taken."""
    taken = chosen_for_loss(networks.per_member(batch.obs), batch.action)
    losses = jax.vmap(jax.vmap(head.loss))(taken, batch.target)
    return jnp.sum(jnp.mean(batch.weight * losses, axis=1))
