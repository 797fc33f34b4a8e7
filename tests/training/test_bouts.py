"""Exploration in bouts: how long they are, how much of the time they explore, and that both runners agree on them."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import epsilon_greedy
from sentinel_rl.errors import UsageError
from sentinel_rl.training.fused import act_key, learn_key, step_keys
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import JaxWorld, VectorWorld
from sentinel_rl.training.schedule import Plan, make_plan
from sentinel_rl.training.segments import segments
from tests.training.pole import AGENT, ENV, PLAN, begin, bit_equal, run_alone

COMPILE_QUICKLY = True
RUN_KEY = jax.random.key(0)
BOUTS = dataclasses.replace(PLAN, longest_bout=16, epsilon_end=0.5)


def lengths(bout: int, steps: int) -> np.ndarray:
    """For every block of time the lengths of its bouts: steps in a row with one key."""
    keys = jax.random.key_data(jax.vmap(lambda t: act_key(RUN_KEY, t, jnp.int32(bout)))(jnp.arange(steps)))
    begins = np.flatnonzero(np.r_[True, np.any(np.asarray(keys[1:] != keys[:-1]), axis=-1)])
    return np.diff(np.r_[begins, steps])


def test_without_bouts_every_step_has_its_own_key():
    expected = step_keys(RUN_KEY, jnp.int32(7)).act
    assert bit_equal(act_key(RUN_KEY, jnp.int32(7), None), expected)
    assert bit_equal(act_key(RUN_KEY, jnp.int32(7), jnp.int32(1)), expected)
    assert Plan(longest_bout=1).exploration.bout is None


def test_bouts_of_all_lengths_take_the_same_share_of_the_time():
    found = lengths(16, 16 * 2_000)
    assert set(found) == {1, 2, 4, 8, 16}
    for length in (1, 2, 4, 8, 16):
        share = length * np.count_nonzero(found == length) / (16 * 2_000)
        assert share == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 2_000))


def test_a_bout_begins_with_the_key_of_its_first_step():
    blocks = jax.vmap(lambda t: act_key(RUN_KEY, t, jnp.int32(4)))(4 * jnp.arange(50))
    assert bit_equal(blocks, jax.vmap(lambda t: step_keys(RUN_KEY, t).act)(4 * jnp.arange(50)))


def test_the_share_of_steps_that_explore_is_epsilon():
    """Blocks are independent; a share of one block has a variance of at most epsilon (1 - epsilon)."""
    blocks, epsilon = 3_000, 0.3
    keys = jax.vmap(lambda t: act_key(RUN_KEY, t, jnp.int32(8)))(jnp.arange(8 * blocks))
    values = jnp.zeros(101).at[100].set(1.0)
    taken = np.asarray(jax.vmap(lambda key: epsilon_greedy(values, jnp.float32(epsilon), key))(keys))
    assert np.mean(taken != 100) == pytest.approx(epsilon * 100 / 101, abs=4 * np.sqrt(epsilon * 0.7 / blocks))


def test_keys_of_bouts_are_used_for_nothing_else():
    drawn_with = jax.vmap(lambda block: jax.random.fold_in(jax.random.fold_in(RUN_KEY, 2**31), block))(jnp.arange(100))
    steps = jax.vmap(lambda t: jax.random.fold_in(RUN_KEY, t))(jnp.arange(300))
    updates = jax.vmap(lambda number: learn_key(RUN_KEY, number))(jnp.arange(1, 300))
    words = [{row.tobytes() for row in np.asarray(jax.random.key_data(keys))} for keys in (drawn_with, steps, updates)]
    assert len(set().union(*words)) == 100 + 300 + 299


def test_the_two_runners_take_the_same_actions():
    run = HostRun(AGENT, JaxWorld(ENV), BOUTS, seed=0)
    actions = [int(run.step()[1][0]) for _ in range(BOUTS.steps)]
    fused = jax.jit(lambda one: run_alone(AGENT, ENV, BOUTS, one, segments(BOUTS, 0), BOUTS.steps))
    _, trace, _ = fused(begin(AGENT, ENV, jax.random.key(0)))
    assert actions == trace.action.tolist()


def test_copies_of_an_environment_explore_side_by_side():
    """All of epsilon 1: an action changes in a copy no sooner than a bout ends, and copies differ."""
    plan = dataclasses.replace(PLAN, steps=3 * 64, longest_bout=16, epsilon_end=1.0, warmup=3 * 64)
    world = VectorWorld(gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync"), seed=0)
    world._mode = gymnasium.vector.AutoresetMode.SAME_STEP  # the steps are counted, and not what they show
    run = HostRun(AGENT, world, plan, seed=0)
    actions = np.stack([np.asarray(run._next_actions()) for run.t in range(0, plan.steps, 3)])
    first = [act_key(run.key, jnp.int32(3 * step), jnp.int32(16), 3) for step in range(64)]
    changed = np.flatnonzero(np.any(actions[1:] != actions[:-1], axis=1)) + 1
    began = [step for step in range(1, 64) if not bit_equal(first[step], first[step - 1])]
    assert set(changed) <= set(began)
    assert len({tuple(column) for column in actions.T}) == 3


@pytest.mark.parametrize("longest", [0, -1, 2.5, True, "long", 10**9])
def test_a_bout_is_a_number_of_steps(untyped: None, longest: object):
    with pytest.raises(UsageError, match="longest_bout must be a whole number of steps from 1 to 65536, or None"):
        make_plan(100, {}, {"longest_bout": longest})


def test_lengths_are_powers_of_two():
    assert [Plan(longest_bout=longest).exploration.bout for longest in (2, 3, 50, 64)] == [2, 2, 32, 64]
