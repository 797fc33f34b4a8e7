"""Exploration by members: who acts, when another one takes over, and what stays the ensemble's."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.agents.sentinel import SentinelState
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Transition
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import JaxWorld
from sentinel_rl.training.segments import segments
from tests.agents.small import OBS, SPEC, fresh, small
from tests.training.pole import ENV, PLAN, SIZES, begin, run_alone

COMPILE_QUICKLY = True
NEVER = jnp.zeros(())
AGENT = small(explore="member")


@pytest.fixture(scope="module")
def state() -> SentinelState:
    return dataclasses.replace(fresh(AGENT), leader=jnp.int32(1))


def observed(state: SentinelState, terminated: bool, truncated: bool, count: int) -> list[int]:
    """The leaders after one transition, by as many keys."""
    seen = Transition(OBS, jnp.int32(0), jnp.float32(0), OBS, jnp.asarray(terminated), jnp.asarray(truncated))
    after = jax.jit(jax.vmap(lambda key: AGENT.observe(state, jnp.int32(0), seen, key).leader))
    return np.asarray(after(jax.random.split(jax.random.key(1), count))).tolist()


def test_the_leader_acts_by_the_risk_of_its_own_law(state: SentinelState):
    risks = AGENT.aleatory(AGENT.head.law(state.online(OBS)))
    for leader in range(AGENT.k):
        led = dataclasses.replace(state, leader=jnp.int32(leader))
        assert int(AGENT.act(led, OBS, NEVER, jax.random.key(0))) == int(jnp.argmax(risks[leader]))


def test_the_frozen_policy_is_the_ensembles(state: SentinelState):
    ensemble = small()
    for leader in range(AGENT.k):
        led = dataclasses.replace(state, leader=jnp.int32(leader))
        expected = ensemble.greedy(fresh(ensemble), OBS, jax.random.key(0))
        assert int(AGENT.greedy(led, OBS, jax.random.key(0))) == int(expected)
    policy = AGENT.with_policy(AGENT.policy(state))
    assert int(AGENT.act(policy, OBS, NEVER, jax.random.key(0))) == int(expected), "a saved policy has no leader"


def test_the_networks_are_those_of_the_ensemble():
    led, ensemble = (agent.init(SPEC, jax.random.key(0)) for agent in (AGENT, small()))
    jax.tree.map(np.testing.assert_array_equal, led.online, ensemble.online)
    assert ensemble.leader is None
    assert 0 <= int(led.leader) < AGENT.k


@pytest.mark.parametrize(("terminated", "truncated"), [(True, False), (False, True)])
def test_the_end_of_an_episode_draws_another_one_evenly(state: SentinelState, terminated: bool, truncated: bool):
    leaders = observed(state, terminated, truncated, 900)
    counts = np.bincount(leaders, minlength=AGENT.k)
    assert counts == pytest.approx(900 / AGENT.k, abs=4 * np.sqrt(900 / AGENT.k))


def test_within_an_episode_nobody_takes_over(state: SentinelState):
    assert set(observed(state, False, False, 50)) == {int(state.leader)}


def test_of_environments_side_by_side_every_nth_end_changes_the_leader(state: SentinelState):
    """With probability 1 / copies somebody is drawn, who may be the same."""
    many = dataclasses.replace(state, replay=dataclasses.replace(state.replay, copies=5))
    kept = np.mean(np.array(observed(many, True, False, 2_000)) == int(state.leader))
    assert kept == pytest.approx(1 - 0.2 * (1 - 1 / AGENT.k), abs=4 * np.sqrt(0.25 / 2_000))


def test_both_runners_follow_the_same_leaders():
    """On the host transitions are handed over late, though not later than the end of their episode."""
    agent = make_sentinel(ENV.spec, **SIZES, explore="member")
    run = HostRun(agent, JaxWorld(ENV), PLAN, seed=0)
    actions = [int(run.step()[1][0]) for _ in range(PLAN.steps)]
    fused = jax.jit(lambda one: run_alone(agent, ENV, PLAN, one, segments(PLAN, 0), PLAN.steps))
    after, trace, _ = fused(begin(agent, ENV, jax.random.key(0)))
    assert actions == trace.action.tolist()
    assert np.count_nonzero(trace.terminated) > 1
    assert int(run.state.leader) == int(after.agent.leader)


def test_an_unknown_way_to_explore_is_named():
    with pytest.raises(UsageError, match="explore must be one of ensemble, member, got 'thompson'"):
        make_sentinel(SPEC, explore="thompson")
