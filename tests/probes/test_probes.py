"""SENTINEL learns each of the five probe worlds: the return of every action is known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.returns import Support
from sentinel_rl.runners.fused import run_chunk, start
from sentinel_rl.runners.schedule import Every, Plan, segments
from tests.probes import environments as worlds

GAMMA = 0.5
PLAN = Plan(steps=1_600, learn=Every(4), warmup=40, epsilon_end=0.3)
AGENT = SentinelAgent(
    Support(-1.5, 1.5, 13),
    k=2,
    gamma=GAMMA,
    learning_rate=1e-2,
    mask_rate=0.5,
    samples=16,
    batch=16,
    capacity=256,
    hidden=(16,),
    target_every=5,
)

# The world, and for the states that occur the mean return of every action.
PROBES: dict[str, tuple[worlds.Probe, dict[int, list[float]]]] = {
    "one reward": (worlds.ONE_REWARD, {0: [1.0]}),
    "the reward is seen": (worlds.REWARD_IS_SEEN, {0: [-1.0], 1: [1.0]}),
    "late reward": (worlds.LATE_REWARD, {0: [GAMMA], 1: [1.0]}),
    "choice": (worlds.CHOICE, {0: [-1.0, 1.0]}),
    "the choice is seen": (worlds.CHOICE_IS_SEEN, {0: [1.0, -1.0], 1: [-1.0, 1.0]}),
}


@jax.jit
def train(world: worlds.Probe, key: jax.Array) -> tuple[Any, Any]:
    """Run through the plan; returns the members' means ``[state, K, A]`` and the trace."""
    run, trace, _ = run_chunk(AGENT, world, PLAN, start(AGENT, world, key), segments(PLAN, 0), PLAN.steps)
    means = jax.vmap(lambda obs: AGENT.belief(run.agent.online, obs).members.mean())(jnp.array([[-1.0], [1.0]]))
    return means, trace


@pytest.mark.parametrize("probe", PROBES)
def test_sentinel_learns(probe: str):
    world, expected = PROBES[probe]
    means, trace = train(world, jax.random.key(0))
    for state, returns in expected.items():
        for member in range(AGENT.k):
            np.testing.assert_allclose(means[state, member], returns, atol=0.15, err_msg=f"{member=} {state=}")
    if world.spec.num_actions > 1:
        assert np.mean(trace.reward[-200:]) > 0.5, "epsilon of 0.3 leaves a mean of 0.7"
