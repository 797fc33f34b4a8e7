"""Every agent learns each of the five probe worlds: the return of every action is known."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.segments import segments
from tests.probes import environments as worlds
from tests.training.pole import run_alone, start

GAMMA = 0.5
PLAN = Plan(steps=1_600, learn=Every(4), warmup=40, epsilon_end=0.3)
SHARED = {"gamma": GAMMA, "learning_rate": 1e-2, "samples": 16, "batch": 16, "capacity": 256, "target_every": 5}
GRID = {"atoms": 13, "v_min": -1.5, "v_max": 1.5}
AGENTS: dict[str, dict[str, Any]] = {
    "sentinel": {"k": 2, "mask_rate": 0.5, "hidden": (16,), "preset": "paper", **GRID},
    "sentinel, quantiles": {"k": 2, "hidden": (16,), "head": "quantile", "atoms": 9, "n_step": 2, "preset": "learner"},
    "cdqn": {"hidden": (16,), "preset": "paper", **GRID},
    "vdqn": {"hidden": (16,), "use_epsilon": True},
    "vdqn-cvar": {"hidden": (16,), "use_epsilon": True, "draws": 20},
    "uadqn": {"hidden": (16,), "use_epsilon": True, "quantiles": 8, "gain": 1.0},
}

# The world, and for the states that occur the mean return of every action.
PROBES: dict[str, tuple[worlds.Probe, dict[int, list[float]]]] = {
    "one reward": (worlds.ONE_REWARD, {0: [1, 1]}),
    "the reward is seen": (worlds.REWARD_IS_SEEN, {0: [-1, -1], 1: [1, 1]}),
    "late reward": (worlds.LATE_REWARD, {0: [GAMMA, GAMMA], 1: [1, 1]}),
    "choice": (worlds.CHOICE, {0: [-1, 1]}),
    "the choice is seen": (worlds.CHOICE_IS_SEEN, {0: [1, -1], 1: [-1, 1]}),
}


def means(agent: Agent, state: Any, obs: jax.Array) -> jax.Array:
    """What is expected of every action ``[members, A]``; the members of an ensemble are asked one by one."""
    if hasattr(agent, "belief"):
        found: jax.Array = agent.belief(state, obs).members.mean()
        return found
    return agent.account(state, obs).parts["mean"][None]


@functools.cache
def trained(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Run through the plan in all worlds, in the last again with the same and with another key.

    Returns:
        the means ``[run, state, members, A]`` and the rewards ``[run, step]``.
    """
    agent = make_agent(name.partition(",")[0], worlds.CHOICE.spec, **AGENTS[name], **SHARED)

    def run(world: worlds.Probe, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        run, trace, _ = run_alone(agent, world, PLAN, start(agent, world, key), segments(PLAN, 0), PLAN.steps)
        seen = jax.vmap(lambda obs: means(agent, run.agent, obs))(jnp.array([[-1.0], [1.0]]))
        return seen, trace.reward

    every = [world for world, _ in PROBES.values()]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *every, every[-1], every[-1])
    keys = jnp.stack([jax.random.key(int(number == len(every) + 1)) for number in range(len(every) + 2)])
    found, rewards = jax.jit(jax.vmap(run))(stacked, keys)
    return np.asarray(found), np.asarray(rewards)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("probe", PROBES)
def test_an_agent_learns(name: str, probe: str):
    index, (_, expected) = list(PROBES).index(probe), PROBES[probe]
    found, rewards = trained(name)
    for state, returns in expected.items():
        for member, told in enumerate(found[index, state]):
            np.testing.assert_allclose(told, returns, atol=0.15, err_msg=f"{member=} {state=}")
    if "choice" in probe:
        assert np.mean(rewards[index, -200:]) > 0.5, "epsilon of 0.3 leaves a mean of 0.7"


@pytest.mark.parametrize("name", AGENTS)
def test_a_seed_repeats_and_seeds_differ(name: str):
    for part in trained(name):
        *_, first, again, other = part
        np.testing.assert_array_equal(first, again)
        assert np.any(first != other)
