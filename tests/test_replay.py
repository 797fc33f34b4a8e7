"""The masked replay: a plain model of what every member may draw, uniform draws, and the moments of the masks."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sentinel_rl.replay import Horizon, Replay, Transition, bootstrap_weights, init_replay

K, OBS, DRAWS = 3, 2, 64
MASKS = st.lists(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=K, max_size=K), min_size=1, max_size=24)


@jax.jit
def add(replay: Replay, t: jax.Array, weights: jax.Array) -> Replay:
    """Keep a transition whose parts all tell its number."""
    number = t.astype(jnp.float32)
    obs = jnp.stack([number, -number])
    transition = Transition(obs, t % 5, 10 * number, obs + 0.5, t % 2 == 0, t % 3 == 0)
    return replay.add(t, transition, weights)


available = jax.jit(Replay.available)
sample = jax.jit(Replay.sample, static_argnames="size")


def filled(capacity: int, masks: list[list[float]]) -> Replay:
    replay = init_replay(capacity, OBS, K)
    for t, weights in enumerate(masks):
        replay = add(replay, jnp.asarray(t), jnp.asarray(weights, jnp.float32))
    return replay


def visible(capacity: int, masks: list[list[float]]) -> list[dict[int, float]]:
    """The model: for every member the numbers and weights of the transitions that it may draw."""
    alive = range(max(len(masks) - capacity, 0), len(masks))
    return [{t: masks[t][member] for t in alive if masks[t][member] > 0} for member in range(K)]


@pytest.mark.parametrize("capacity", [1, 2, 5])
@settings(max_examples=25)
@given(MASKS, st.integers(0, 2**31 - 1))
def test_members_draw_what_the_model_lets_them(capacity, masks, seed):
    replay, model = filled(capacity, masks), visible(capacity, masks)
    assert available(replay).tolist() == [len(own) for own in model]
    drawn, _, weights, told = sample(replay, jax.random.key(seed), DRAWS)
    for member, own in enumerate(model):
        numbers = np.asarray(drawn.obs[member, :, 0]).astype(int)
        if own:
            assert set(numbers) <= set(own)
            np.testing.assert_array_equal(told[member], numbers)
            np.testing.assert_array_equal(weights[member], [np.float32(own[t]) for t in numbers])
        else:
            assert not np.any(weights[member])


@settings(max_examples=10)
@given(MASKS)
def test_everything_visible_is_drawn_sooner_or_later(masks):
    replay, model = filled(5, masks), visible(5, masks)
    drawn, _, _, _ = sample(replay, jax.random.key(0), DRAWS)  # missing one of five has probability 3e-6
    for member, own in enumerate(model):
        if own:
            assert set(np.asarray(drawn.obs[member, :, 0]).astype(int)) == set(own)


def test_draws_are_uniform_and_members_draw_apart():
    masks = [[1.0, float(t % 2), float(t % 3 == 0)] for t in range(23)]
    replay, model = filled(8, masks), visible(8, masks)
    drawn, _, _, _ = sample(replay, jax.random.key(1), 4_000)
    numbers = np.asarray(drawn.obs[..., 0]).astype(int)
    for member, own in enumerate(model):
        counts = Counter(numbers[member].tolist())
        assert stats.chisquare([counts[t] for t in own]).pvalue > 1e-3
    assert np.corrcoef(numbers[0], numbers[1])[0, 1] == pytest.approx(0, abs=0.05)


def test_a_transition_comes_back_whole():
    drawn, _, _, _ = sample(filled(8, [[1.0] * K] * 8), jax.random.key(2), DRAWS)
    t = np.asarray(drawn.obs[..., 0])
    assert [part.dtype for part in drawn] == [jnp.float32, jnp.int32, jnp.float32, jnp.float32, jnp.bool_, jnp.bool_]
    np.testing.assert_array_equal(drawn.obs, np.stack([t, -t], axis=-1))
    np.testing.assert_array_equal(drawn.action, t % 5)
    np.testing.assert_array_equal(drawn.reward, 10 * t)
    np.testing.assert_array_equal(drawn.next_obs, drawn.obs + 0.5)
    np.testing.assert_array_equal(drawn.terminated, t % 2 == 0)
    np.testing.assert_array_equal(drawn.truncated, t % 3 == 0)


@pytest.mark.parametrize("steps", [2, 7])
def test_the_latest_transitions_stand_alone(steps: int):
    """Oldest first, also from a ring that was filled more than once; the first one is repeated where there are few."""
    replay = filled(4, [[1.0] * K] * steps)
    wanted = [0, 0, 1] if steps == 2 else [4, 5, 6]
    for latest in (replay.latest(3), replay.only_latest(3).latest(3)):
        np.testing.assert_array_equal(latest.obs[:, 0], wanted)


def test_an_empty_replay_gives_weights_of_zero():
    empty = init_replay(5, OBS, K)
    assert available(empty).tolist() == [0] * K
    assert not np.any(sample(empty, jax.random.key(0), DRAWS).weights)


def test_a_member_whose_data_is_overwritten_has_none():
    replay = filled(2, [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    assert available(replay).tolist() == [2, 0, 1]


def test_runs_beside_each_other_keep_their_own():
    """Vmapped over runs with one clock, as in the fused runner."""
    masks = np.random.default_rng(0).integers(0, 2, (2, 9, K)).astype(float)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), init_replay(4, OBS, K))
    for t in range(9):
        both = jax.vmap(add, in_axes=(0, None, 0))(both, jnp.asarray(t), jnp.asarray(masks[:, t], jnp.float32))
    for run in range(2):
        alone = filled(4, masks[run].tolist())
        for ours, expected in zip(jax.tree.leaves(both), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(ours[run], expected)


@pytest.mark.parametrize(
    ("mask", "rate", "mean", "variance"),
    [("bernoulli", 1 / 3, 1 / 3, 2 / 9), ("poisson", 1 / 3, 1, 1), ("exponential", 1 / 3, 1, 1)],
)
def test_moments_of_the_masks(mask, rate: float, mean: float, variance: float):
    weights = np.asarray(bootstrap_weights(jax.random.key(4), 20_000, mask, rate))
    assert weights.mean() == pytest.approx(mean, abs=0.025)
    assert weights.var() == pytest.approx(variance, abs=0.06)
    assert (weights >= 0).all()
    if mask == "bernoulli":
        assert set(weights) == {0.0, 1.0}
    if mask == "poisson":
        assert np.array_equal(weights, weights.round())
    if mask == "exponential":
        assert stats.kstest(weights, "expon").pvalue > 1e-3


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 0.0), (1.0, 1.0)])
def test_certain_masks(rate: float, expected: float):
    assert bootstrap_weights(jax.random.key(0), 50, "bernoulli", rate).tolist() == [expected] * 50


def test_an_unknown_mask_is_named(untyped: None):
    with pytest.raises(ValueError, match=r"unknown mask 'gamma'.*bernoulli"):
        bootstrap_weights(jax.random.key(0), K, "gamma", 0.5)


sample_shared = jax.jit(Replay.sample_shared, static_argnames="size")


@pytest.mark.parametrize("capacity", [1, 2, 5])
@settings(max_examples=25)
@given(MASKS, st.integers(0, 2**31 - 1))
def test_a_shared_draw_counts_for_those_who_may_see_it(capacity, masks, seed):
    drawn, _, weights, told = sample_shared(filled(capacity, masks), jax.random.key(seed), DRAWS)
    numbers = np.asarray(drawn.obs[:, 0]).astype(int)
    np.testing.assert_array_equal(told, numbers)
    assert set(numbers) <= set(range(max(len(masks) - capacity, 0), len(masks)))
    np.testing.assert_array_equal(weights, np.array(masks, np.float32)[numbers].T)


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_one_that_sees_everything_may_share_its_draw(steps: int):
    """VDQN and UA-DQN do, and need not search for what is alive."""
    replay = init_replay(8, OBS, 1)
    for t in range(steps):
        replay = add(replay, jnp.asarray(t), jnp.ones(1))
    horizon = Horizon(0.9, 3, True)
    own, shared = (draw(jax.random.key(3), DRAWS, horizon) for draw in (replay.sample, replay.sample_shared))
    alone = jax.tree.map(lambda leaf: leaf[0], (own.transitions, own.discount, own.number))
    jax.tree.map(np.testing.assert_array_equal, alone, (shared.transitions, shared.discount, shared.number))
    np.testing.assert_array_equal(own.weights, shared.weights)
    assert set(np.asarray(shared.number).tolist()) <= set(range(max(0, steps - 8), steps))


def test_shared_draws_are_uniform():
    replay = filled(5, [[1.0, 0.0, 1.0]] * 7)
    numbers = np.asarray(sample_shared(replay, jax.random.key(0), 5_000).number)
    counts = Counter(numbers.tolist())
    assert set(counts) == {2, 3, 4, 5, 6}
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_observations_of_bytes_are_kept_as_bytes():
    """Everything that is drawn equals what a replay of numbers gives, at a quarter of the memory for what is seen."""
    plain, small = (init_replay(8, 3, 2, in_bytes=in_bytes) for in_bytes in (False, True))
    add = jax.jit(lambda replay, t, one: replay.add(t, one, jnp.ones(2)))
    rng, seen = np.random.default_rng(0), []
    for t in range(12):
        obs, after = (jnp.asarray(rng.integers(0, 256, 3), jnp.float32) for _ in range(2))
        one = Transition(obs, jnp.int32(t % 3), jnp.float32(t), after, jnp.asarray(t % 5 == 4), jnp.asarray(False))
        seen.append(one)
        plain, small = (add(replay, jnp.int32(t), one) for replay in (plain, small))
    assert small.frames.dtype == jnp.uint8
    assert 4 * small.frames.nbytes + small.rows.nbytes == plain.rows.nbytes
    for draw in (
        lambda replay: replay.sample(jax.random.key(0), 20, Horizon(0.9, 3)),
        lambda replay: replay.sample_shared(jax.random.key(0), 20, Horizon(0.9, 3)),
        lambda replay: replay.latest(5),
        lambda replay: replay.only_latest(5).latest(5),
    ):
        jax.tree.map(np.testing.assert_array_equal, draw(small), draw(plain))
    jax.tree.map(np.testing.assert_array_equal, small.latest(1), jax.tree.map(lambda leaf: leaf[None], seen[-1]))
