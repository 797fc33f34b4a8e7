"""What one update of SENTINEL-K does: targets by hand, the loss and its gradient, minibatches, target networks."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from sentinel_rl.agents.learning import shortened
from sentinel_rl.agents.sentinel import Batch, SentinelAgent, SentinelState, weighted_loss
from sentinel_rl.nets import Networks
from sentinel_rl.replay import Transition, init_replay
from sentinel_rl.risk import Expectation
from tests.agents.small import SPEC, SUPPORT, fresh, small

ATOMS = np.linspace(SUPPORT.low, SUPPORT.high, SUPPORT.size)


def constant(*atoms: list[int], sharpness: float = 50.0) -> Networks:
    """Networks that put all mass on one atom whatever they see: ``atoms[member][action]`` is its number."""
    logits = sharpness * jax.nn.one_hot(jnp.asarray(atoms), SUPPORT.size)
    return Networks((jnp.zeros((*logits.shape[:2], SPEC.obs_size, SUPPORT.size)),), (logits,), SPEC.num_actions)


def one(reward: float, terminated: bool = False, truncated: bool = False, members: int = 1) -> Transition:
    """One transition for each member."""
    shape = (members, 1)
    obs = jnp.zeros((*shape, SPEC.obs_size))
    return Transition(
        obs,
        jnp.zeros(shape, jnp.int32),
        jnp.full(shape, reward, jnp.float32),
        obs,
        jnp.full(shape, terminated),
        jnp.full(shape, truncated),
    )


def state_of(online: Networks, target: Networks) -> SentinelState:
    return dataclasses.replace(fresh(small()), online=online, target=target)


@jax.jit
def targets(agent: SentinelAgent, state: SentinelState, transition: Transition) -> Any:
    """The targets and metrics of a transition that was drawn from a replay."""
    members = len(transition.reward)
    replay = init_replay(1, SPEC.obs_size, members)
    replay = replay.add(jnp.int32(0), jax.tree.map(lambda leaf: leaf[0, 0], transition), jnp.ones(members))
    drawn = replay.sample(jax.random.key(0), 1, agent._horizon)
    return agent._targets(state, drawn.transitions, drawn.discount)


def target_of(agent: SentinelAgent, state: SentinelState, transition: Transition) -> np.ndarray:
    return np.asarray(targets(agent, state, transition)[0])[:, 0]


def law(**masses: float) -> np.ndarray:
    result = np.zeros(SUPPORT.size)
    for place, mass in masses.items():
        result[int(place[1:])] = mass
    return result


@pytest.mark.parametrize(
    ("end", "time_limit", "expected"),
    [
        ((False, False), "terminal", law(z6=0.5, z7=0.5)),  # 1 + 0.5 * 2.5 = 2.25, between 2.0 and 2.5
        ((True, False), "terminal", law(z4=1)),  # 1 alone
        ((False, True), "terminal", law(z4=1)),  # the time limit ends the return ...
        ((False, True), "bootstrap", law(z6=0.5, z7=0.5)),  # ... or does not
        ((True, False), "bootstrap", law(z4=1)),
        ((True, True), "bootstrap", law(z4=1)),  # fallen on the last step
        ((False, False), "bootstrap", law(z6=0.5, z7=0.5)),
    ],
)
def test_a_target_by_hand(end: tuple[bool, bool], time_limit: Any, expected: np.ndarray):
    """The best action is the second; the target network expects 2.5 of it, the online network 0."""
    agent = small(k=1, gamma=0.5, time_limit=time_limit)
    state = state_of(constant([0, 2, 1]), constant([8, 7, 8]))
    found = target_of(agent, state, one(1.0, *end))
    np.testing.assert_allclose(found, [expected], atol=1e-6)


BOOTSTRAP = {
    # The online members prefer action 0, 1, 2 (worth 2, 1 and 1 to them, else -1), on average action 0.
    "online": [4, 1, 5],
    # The target members prefer action 2 on average.
    "target": [6, 3, 7],
    # Each member follows its own online preference.
    "member": [4, 2, 7],
}


@pytest.mark.parametrize("option", BOOTSTRAP)
def test_who_chooses_the_action_of_the_successor(option: Any):
    """The chosen action's atom of each member's own target network comes back: gamma is 1 and the reward 0."""
    online = constant([6, 0, 0], [0, 4, 0], [0, 0, 4])
    target = constant([4, 1, 6], [1, 2, 3], [5, 0, 7])
    agent = small(bootstrap_action=option, gamma=1.0, lam=0.0, epistemic=Expectation(), aleatory=Expectation())
    found = target_of(agent, state_of(online, target), one(0.0, members=3))
    assert found.argmax(axis=1).tolist() == BOOTSTRAP[option]
    np.testing.assert_allclose(found.max(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(("option", "expected"), [("online", [3, 3, 3]), ("target", [2, 2, 8])])
def test_the_literal_reading_chooses_without_weights(option: Any, expected: list[int]):
    """The third member praises action 0 alone: weighted by consensus action 1 is best, unweighted action 0."""
    networks = constant([2, 3, 0], [2, 3, 0], [8, 3, 0])
    agent = small(bootstrap_action=option, gamma=1.0, lam=1.0, epistemic=Expectation(), aleatory=Expectation())
    found = target_of(agent, state_of(networks, networks), one(0.0, members=3))
    assert found.argmax(axis=1).tolist() == expected


def test_clipped_mass_is_reported():
    agent = small(k=1, gamma=1.0)
    state = state_of(constant([0, 0, 0]), constant([8, 8, 8]))
    assert targets(agent, state, one(0.0))[1] == {"clip_low": 0, "clip_high": 0}
    assert targets(agent, state, one(1.0))[1] == {"clip_low": 0, "clip_high": 1}
    assert targets(agent, state, one(-9.0))[1] == {"clip_low": 1, "clip_high": 0}


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    return Batch(
        obs=jnp.asarray(rng.normal(size=(3, 4, 2)), jnp.float32),
        action=jnp.asarray(rng.integers(0, 3, (3, 4)), jnp.int32),
        target=jnp.asarray(rng.dirichlet(np.ones(9), (3, 4)), jnp.float32),
        weight=jnp.asarray(rng.integers(0, 3, (3, 4)), jnp.float32),
    )


def test_the_loss_and_its_gradient_are_softmax_minus_target(batch: Batch):
    """Linear networks: the gradient of a bias is the weighted mean of ``softmax(logits) - target``, per action."""
    rng = np.random.default_rng(1)
    weight, bias = rng.normal(size=(3, 3, 2, 9)), rng.normal(size=(3, 3, 9))
    networks = Networks((jnp.asarray(weight, jnp.float32),), (jnp.asarray(bias, jnp.float32),), 3)
    loss, gradient = jax.jit(jax.value_and_grad(weighted_loss))(networks, batch, small().head)
    expected, by_weight, by_bias = 0.0, np.zeros_like(weight), np.zeros_like(bias)
    for member in range(3):
        for obs, action, target, mass in zip(*(np.asarray(part[member], float) for part in batch), strict=True):
            a = int(action)
            logits = obs @ weight[member, a] + bias[member, a]
            expected -= mass / 4 * target @ special.log_softmax(logits)
            by_bias[member, a] += mass / 4 * (special.softmax(logits) - target)
            by_weight[member, a] += mass / 4 * np.outer(obs, special.softmax(logits) - target)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(gradient.biases[0], by_bias, atol=1e-6)
    np.testing.assert_allclose(gradient.weights[0], by_weight, atol=1e-6)


@jax.jit
def learn(agent: SentinelAgent, state: SentinelState, update: jax.Array) -> tuple[SentinelState, dict[str, jax.Array]]:
    return agent.learn(state, update, jax.random.fold_in(jax.random.key(3), update))


def fill(agent: SentinelAgent, state: SentinelState, blind: tuple[int, ...] = ()) -> SentinelState:
    """Sixteen transitions; the members named see none of them."""
    rng = np.random.default_rng(2)
    replay = state.replay
    sees = np.ones(agent.k, np.float32)
    sees[list(blind)] = 0
    add = jax.jit(lambda r, t, seen: r.add(t, seen, jnp.asarray(sees)))
    for t in range(16):
        obs, after = rng.normal(size=(2, 2)).astype(np.float32)
        seen = Transition(obs, np.int32(t % 3), np.float32(rng.normal()), after, np.bool_(t % 4 == 0), np.bool_(False))
        replay = add(replay, np.int32(t), seen)
    return dataclasses.replace(state, replay=replay)


def started(agent: SentinelAgent, **options: Any) -> SentinelState:
    return fill(agent, fresh(agent), **options)


def same(one: Networks, other: Networks) -> bool:
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


def close(one: Networks, other: Networks) -> bool:
    return all(np.allclose(a, b, atol=1e-6) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def test_targets_are_copied_at_every_third_update_and_not_between():
    agent = small(target_every=3)
    state = started(agent)
    assert same(state.online, state.target)
    for update in range(1, 8):
        before = state
        state, metrics = learn(agent, state, jnp.asarray(update))
        assert np.isfinite(metrics["loss"])
        assert not same(state.online, before.online)
        assert same(state.target, state.online if update % 3 == 0 else before.target)


def test_targets_that_take_steps_of_their_own():
    """Line 12 read literally: at their times they learn like the online networks, and they are never copies."""
    agent = small(target_every=3, target_update="gradient")
    state = started(agent)
    for update in range(1, 8):
        before = state
        state, _ = learn(agent, state, jnp.asarray(update))
        assert not same(state.target, state.online)
        if update % 3:
            assert same(state.target, before.target)
            assert jax.tree.all(jax.tree.map(np.array_equal, state.target_optimiser, before.target_optimiser))
        else:
            assert not same(state.target, before.target)


def test_a_first_step_of_the_targets_is_the_online_networks_step():
    """From the same start both take the same steps on the same targets."""
    agent = small(target_every=3, target_update="gradient")
    state, _ = learn(agent, started(agent), jnp.asarray(3))
    assert close(state.target, state.online)


def test_a_member_without_data_does_not_change():
    agent = small(target_every=3)
    before = started(agent, blind=(1,))
    after = before
    for update in (1, 2):
        after, metrics = learn(agent, after, jnp.asarray(update))
    assert np.isfinite(metrics["loss"])
    for old, new in zip(jax.tree.leaves(before.online), jax.tree.leaves(after.online), strict=True):
        np.testing.assert_array_equal(old[1], new[1])
    changed = after.online.biases[-1] != before.online.biases[-1]
    assert np.any(changed[0])
    assert np.any(changed[2])


@pytest.mark.parametrize(("samples", "batch", "steps"), [(100, 32, 4), (5, 32, 1)])
def test_the_last_minibatch_may_be_short(samples: int, batch: int, steps: int):
    agent = small(samples=samples, batch=batch)
    state, metrics = learn(agent, started(agent), jnp.asarray(1))
    assert int(state.optimiser[0].count) == steps
    assert np.isfinite(metrics["loss"])


def test_an_epoch_is_adam_on_consecutive_minibatches(batch: Batch):
    """Three draws in minibatches of two: steps on the first two and on the last one, which counts in full."""
    agent = small(samples=3, batch=2)
    part = jax.tree.map(lambda leaf: leaf[:, :3], batch)
    first = fresh(agent)
    networks, _, loss = jax.jit(lambda a, s, b: a._epoch(a._adam, s.online, s.optimiser, b))(agent, first, part)
    gradient_of = jax.jit(jax.value_and_grad(weighted_loss))
    moments: Any = jax.tree.map(lambda leaf: (np.zeros(leaf.shape), np.zeros(leaf.shape)), first.online)
    expected, losses = first.online, []
    for number, places in enumerate([slice(0, 2), slice(2, 3)], start=1):
        value, gradient = gradient_of(expected, jax.tree.map(lambda leaf, p=places: leaf[:, p], part), agent.head)
        losses.append(float(value) / agent.k)
        moments = jax.tree.map(
            lambda g, old: (0.9 * old[0] + 0.1 * np.asarray(g), 0.999 * old[1] + 0.001 * np.asarray(g) ** 2),
            gradient,
            moments,
        )
        expected = jax.tree.map(
            lambda leaf, m, n=number: (
                leaf - 0.1 * (m[0] / (1 - 0.9**n)) / (np.sqrt(m[1] / (1 - 0.999**n)) + agent.adam_eps)
            ),
            expected,
            moments,
        )
    for found, right in zip(jax.tree.leaves(networks), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-4)
    assert float(loss) == pytest.approx(np.mean(losses), rel=1e-4)


def test_the_learning_rate_declines_over_the_updates_of_a_training():
    """A first step of Adam is its learning rate long: .1 at the first of five updates, .05 in the middle, then 0."""
    agent = small(learning_rate_end=0.0, samples=4).planned(5)
    state = started(agent)
    lengths = []
    for update in (1, 3, 5, 9):
        after = learn(agent, state, jnp.asarray(update))[0]
        change = jax.tree.map(lambda new, old: jnp.max(jnp.abs(new - old)), after.online, state.online)
        lengths.append(max(map(float, jax.tree.leaves(change))))
    np.testing.assert_allclose(lengths, [0.1, 0.05, 0.0, 0.0], rtol=1e-4)
    assert small().planned(5) == small()


def test_mapping_over_numbers_learns_like_separate_agents():
    agents = [small(lam=0.0, learning_rate=0.1, gamma=0.5), small(lam=4.0, learning_rate=0.01, gamma=0.9)]
    state = started(agents[0])
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *agents)
    both, _ = jax.vmap(learn, in_axes=(0, None, None))(stacked, state, jnp.asarray(1))
    for run, agent in enumerate(agents):
        alone, _ = learn(agent, state, jnp.asarray(1))
        assert close(jax.tree.map(lambda leaf, run=run: leaf[run], both.online), alone.online)
    assert not close(*(jax.tree.map(lambda leaf, run=run: leaf[run], both.online) for run in range(2)))


def test_observing_keeps_the_transition_with_its_mask():
    agent = small(mask_rate=0.2)
    state = fresh(agent)
    seen = jax.tree.map(lambda leaf: leaf[0, 0], one(0.75, terminated=True))
    for t in range(40):
        state = jax.jit(SentinelAgent.observe)(agent, state, jnp.asarray(t), seen, jax.random.key(t))
    assert np.mean(state.replay.count) / 40 == pytest.approx(0.2, abs=0.11), "three standard deviations"
    assert np.all(np.asarray(state.replay.count) > 0), "each member sees some"
    assert int(state.replay.newest) == 39


@pytest.mark.parametrize("length", [0.0, 0.5, 2.0, 7.0])
def test_long_gradients_are_shortened_as_optax_does(length: float):
    gradient = {"weight": jnp.array([[0.6, 0.0], [0.0, 0.0]]) * length, "bias": jnp.array([0.0, -0.8]) * length}
    expected, _ = optax.clip_by_global_norm(2.0).update(gradient, optax.EmptyState())
    jax.tree.map(
        lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-6), shortened(gradient, 2.0), expected
    )


def test_every_member_has_a_gradient_of_its_own_to_shorten():
    long_and_short = {"weight": jnp.array([[30.0, 40.0], [0.3, 0.4]])}
    found = small(max_grad_norm=1.0)._clipped(long_and_short)["weight"]
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
