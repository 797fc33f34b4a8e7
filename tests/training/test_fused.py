"""The fused runner: a seed repeats bit for bit, chunks do not matter, the replay holds true successors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.training.fused import StepTrace, learn_key, step_keys, unpack
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.segments import segments
from tests.training.pole import (
    AGENT,
    ENV,
    PARTS,
    PLAN,
    advance,
    begin,
    bit_equal,
    leaves,
    run_alone,
    start,
    whole_run,
)


def words(keys: jax.Array) -> set[tuple[int, ...]]:
    return {tuple(key) for key in np.asarray(jax.random.key_data(keys)).reshape(-1, 2).tolist()}


def test_a_seed_repeats_bit_for_bit():
    again = advance(begin(AGENT, ENV, jax.random.key(0)))
    assert bit_equal(again, whole_run(0))


def test_another_seed_differs():
    (run, trace, _), (other, other_trace, _) = whole_run(0), whole_run(1)
    assert not np.array_equal(trace.action, other_trace.action)
    assert not np.array_equal(run.agent.online.biases[-1], other.agent.online.biases[-1])


def test_neither_chunks_nor_the_kind_of_loop_matter():
    """In two chunks, and with stretches of unknown length as the triangular schedule has: a loop, not a scan."""
    run = begin(AGENT, ENV, jax.random.key(0))
    parts = dataclasses.replace(PARTS, length=None)
    run, first, early = advance(run, parts[:2])
    run, second, late = advance(run, parts[2:])
    joined = jax.tree.map(lambda *chunks: jnp.concatenate(chunks), (first, early), (second, late))
    expected, *told = whole_run(0)
    assert bit_equal(run, expected)
    assert bit_equal(joined, tuple(told))


def test_twenty_seeds_are_twenty_runs():
    runs = [begin(AGENT, ENV, jax.random.key(seed)) for seed in range(20)]
    assert len(set().union(*(words(run.key) for run in runs))) == 20
    for values in zip(*(leaves((run.obs, run.agent.online.weights)) for run in runs), strict=True):
        assert len({value.tobytes() for value in values}) == 20


def test_every_purpose_of_every_step_has_a_key_of_its_own():
    run_key = jax.random.key(0)
    of_steps = jax.vmap(step_keys, in_axes=(None, 0))(run_key, jnp.arange(300))
    of_updates = jax.vmap(learn_key, in_axes=(None, 0))(run_key, jnp.arange(1, 300))
    folded = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(run_key, jnp.arange(300))
    keys = [*of_steps, of_updates, folded, run_key[None]]
    assert len(set().union(*map(words, keys))) == 4 * 300 + 299 + 300 + 1


def test_the_replay_holds_true_successors():
    run, trace, _ = whole_run(0)
    rows = np.asarray(run.agent.replay.rows)  # the last 64 of 80 steps, step t in row t % 64
    obs, after = rows[:, :4], rows[:, 4:8]
    ended = np.asarray(trace.terminated)
    assert ended[16:-1].any(), "an episode ends in the time that is looked at"
    for t in range(16, 79):
        following = obs[(t + 1) % 64]
        if ended[t]:
            assert abs(after[t % 64, 2]) > ENV.theta_limit
            assert np.abs(following).max() <= 0.05, "a new episode"
        else:
            np.testing.assert_array_equal(after[t % 64], following)
        assert rows[t % 64, 8] == trace.action[t]
        assert rows[t % 64, 10] == ended[t]


@pytest.mark.parametrize("length", [None, 15])
def test_an_episode_that_the_time_limit_ends_is_followed_by_a_new_one(length: int | None):
    """No pole falls in five steps: only truncations end these episodes."""
    world, plan, agent = CartPole(max_steps=5), Plan(steps=15, learn=Every(15)), RandomAgent()
    parts = dataclasses.replace(segments(plan), length=length)
    advance = jax.jit(lambda run: run_alone(agent, world, plan, run, parts, plan.steps))
    run, trace, _ = advance(start(agent, world, jax.random.key(2)))
    assert not trace.terminated.any()
    assert trace.truncated.tolist() == [False, False, False, False, True] * 3
    assert run.env.time == 0
    assert np.abs(run.obs).max() <= 0.05
    np.testing.assert_array_equal(run.obs, run.env.motion)


def test_metrics_are_nan_where_no_update_is_made():
    _, _, metrics = whole_run(0)
    for name, values in metrics.items():
        assert np.isnan(values).tolist() == [True, False, False, False], name
    assert PLAN.learn_times.tolist() == [40, 60, 80]


def test_a_trace_comes_back_from_its_rows():
    trace = StepTrace(jnp.array([1.5, -2.0]), jnp.array([True, False]), jnp.array([False, True]), jnp.array([3, 0]))
    assert bit_equal(unpack(trace.pack()), trace)
