"""Draws that look several steps ahead, against a loop over the episodes as they happened."""

from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.replay import Horizon, Replay, Transition, init_replay
from sentinel_rl.training.host_envs import VectorWorld

GAMMA = 0.9


class Step(NamedTuple):
    """A step of one of several environments."""

    env: int
    obs: float
    reward: float
    successor: float
    terminated: bool
    truncated: bool


def play(copies: int, steps: int, waits: bool) -> list[Step]:
    """Steps in the order in which they are kept; ends of both kinds. An environment may need a step to begin anew."""
    rng = np.random.default_rng(copies)
    now, number, pausing = [float(env) for env in range(copies)], copies, [False] * copies
    seen: list[Step] = []
    while len(seen) < steps:
        for env in range(copies):
            if pausing[env]:
                pausing[env] = False
                continue
            number += 1
            terminated, truncated = rng.random() < 0.2, rng.random() < 0.2
            seen.append(Step(env, now[env], rng.normal(), float(number), terminated, truncated))
            number += terminated or truncated
            now[env] = float(number)
            pausing[env] = waits and (terminated or truncated)
    return seen[:steps]


def kept(seen: list[Step], capacity: int, copies: int) -> Replay:
    replay = init_replay(capacity, 1, 2, copies)
    add = jax.jit(lambda replay, t, one: replay.add(t, one, jnp.ones(2)))
    for t, step in enumerate(seen):
        fields = jnp.array([step.obs]), jnp.int32(t % 3), jnp.float32(step.reward), jnp.array([step.successor])
        replay = add(
            replay, jnp.int32(t), Transition(*fields, jnp.asarray(step.terminated), jnp.asarray(step.truncated))
        )
    return replay


def by_hand(seen: list[Step], t: int, steps: int, limit_ends: bool) -> tuple[float, float, float]:
    """The reward, the discount and the successor from step ``t`` on."""
    reward, factor, last = 0.0, 1.0, seen[t]
    for step in [one for one in seen[t:] if one.env == seen[t].env][:steps]:
        reward, factor, last = reward + factor * step.reward, factor * GAMMA, step
        if step.terminated or step.truncated:
            break
    ended = last.terminated or (limit_ends and last.truncated)
    return reward, 0.0 if ended else factor, last.successor


@pytest.mark.parametrize("limit_ends", [False, True])
@pytest.mark.parametrize(("copies", "waits"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("steps", [1, 3])
def test_draws_are_the_episodes_as_they_happened(copies: int, waits: bool, steps: int, limit_ends: bool):
    """More steps than are kept: what was overwritten is not drawn, and nothing beyond the newest is looked for."""
    seen = play(copies, 70, waits)
    replay = kept(seen, 48, copies)
    horizon = Horizon(GAMMA, steps, limit_ends)
    shared = jax.jit(lambda key: replay.sample_shared(key, 300, horizon))(jax.random.key(0))
    own = jax.jit(lambda key: replay.sample(key, 100, horizon))(jax.random.key(0))
    assert set(shared.number.tolist()) >= set(range(30, 70)), "the newest are drawn too"
    for drawn in (shared, own):
        parts = drawn.number, drawn.transitions.reward, drawn.discount, drawn.transitions.next_obs[..., 0]
        for number, *found in zip(*(np.ravel(part) for part in parts), strict=True):
            np.testing.assert_allclose(found, by_hand(seen, int(number), steps, limit_ends), rtol=1e-5)
        np.testing.assert_array_equal(np.ravel(drawn.transitions.obs), [seen[t].obs for t in np.ravel(drawn.number)])
        np.testing.assert_array_equal(np.ravel(drawn.transitions.action), np.ravel(drawn.number) % 3)


@pytest.mark.parametrize("capacity", [48, 100])
def test_a_world_that_always_looks_the_same_is_cut_at_its_ends(capacity: int):
    """Where the next episode begins with what the last one ended with, and beyond the newest older steps stand."""
    seen = [step._replace(obs=0.0, successor=0.0) for step in play(1, 70, waits=False)]
    seen[-1] = seen[-1]._replace(terminated=False, truncated=False)
    replay = kept(seen, capacity, 1)
    drawn = jax.jit(lambda key: replay.sample_shared(key, 300, Horizon(GAMMA, 3)))(jax.random.key(0))
    assert {68, 69} <= set(drawn.number.tolist())
    for number, *found in zip(drawn.number.tolist(), drawn.transitions.reward, drawn.discount, strict=True):
        np.testing.assert_allclose(found, by_hand(seen, number, 3, limit_ends=False)[:2], rtol=1e-5)


def test_the_replay_of_a_vector_knows_how_many_write_into_it():
    world = VectorWorld(gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync"), seed=0)
    form = jax.eval_shape(lambda key: make_sentinel(world.spec, k=2).init(world.spec, key), jax.random.key(0))
    assert form.replay.copies == world.spec.copies == 3
