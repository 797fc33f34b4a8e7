"""Many runs at once: each is what it would be alone, in its random numbers and its first steps."""

import dataclasses
import functools
import subprocess
import sys

import jax
import numpy as np
import pytest

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.returns import Support
from sentinel_rl.risk import CVaR, Expectation
from sentinel_rl.training.fused import Population
from sentinel_rl.training.population import Fleet, seed_keys, stack_agents, use_all_cores
from tests.training.pole import AGENT, ENV, PARTS, PLAN, advance, begin, bit_equal, leaves, whole_run


class Crowd(Fleet):
    """Runs in groups of three, as on an accelerator."""

    def group_size(self, runs: int) -> int:
        return 3


@functools.cache
def fleet(kind: type[Fleet] = Fleet) -> Fleet:
    return kind(ENV, PLAN, jax.local_devices()[:1])


def of_run(tree, run: int):
    return jax.tree.map(lambda leaf: leaf[run], tree)


def with_lam(lam: float) -> SentinelAgent:
    return dataclasses.replace(AGENT, lam=lam)


@functools.cache
def crowd() -> tuple[list[Population], tuple]:
    """Four seeds in groups of three, the first with other numbers; and the first group's course."""
    agents = [with_lam(9.0), with_lam(1.0), with_lam(1.0), with_lam(1.0)]
    groups = fleet(Crowd).start(agents, [5, 1, 0, 7])
    kept = jax.tree.map(lambda leaf: leaf.copy(), groups)  # advancing gives up the old state
    return kept, fleet(Crowd).advance(groups[:1], PARTS, PLAN.steps)[0]


def test_groups_are_filled_with_repetitions():
    groups, _ = crowd()
    assert len(groups) == 2
    np.testing.assert_array_equal(groups[0].agents.lam, [9, 1, 1])
    assert bit_equal(of_run(groups[1], 1), of_run(groups[1], 0))
    assert bit_equal(of_run(groups[1], 2), of_run(groups[1], 0))


@pytest.mark.parametrize(("place", "seed"), [(1, 1), (2, 0)])
def test_a_run_does_not_depend_on_those_beside_it(place: int, seed: int):
    """Keys, first state and first steps are the same bits; later numbers may differ in their last."""
    groups, (after, trace, _) = crowd()
    alone = begin(AGENT, ENV, jax.random.key(seed))
    assert bit_equal(of_run(groups[0].runs, place), alone)
    run, expected, _ = whole_run(seed)
    warm = PLAN.learn_times[0]
    assert bit_equal(of_run(trace, place).action[:warm], expected.action[:warm])
    assert bit_equal(of_run(trace, place).terminated[:warm], expected.terminated[:warm])
    assert bit_equal(of_run(after.runs.key, place), run.key)


def test_the_numbers_of_an_agent_count():
    """The same seed with another discount starts alike and learns something else."""
    agent = dataclasses.replace(AGENT, gamma=0.5)
    run, trace, _ = advance(begin(agent, ENV, jax.random.key(0)), agent=agent)
    usual, usual_trace, _ = whole_run(0)
    assert bit_equal(run.key, usual.key)
    assert bit_equal(trace.action[:20], usual_trace.action[:20]), "all at random"
    assert not bit_equal(run.agent.online, usual.agent.online)


def test_a_fleet_on_one_core_does_what_the_runner_does():
    (group,) = fleet().start([AGENT], [0])
    ((after, trace, metrics),) = fleet().advance([group], PARTS, PLAN.steps)
    run, expected, expected_metrics = whole_run(0)
    assert bit_equal(of_run(trace, 0), expected)
    assert bit_equal(of_run(after.runs, 0), run)
    assert bit_equal(of_run(metrics, 0), expected_metrics)


def test_keys_of_seeds_do_not_depend_on_the_others():
    keys = seed_keys(range(20))
    assert len({leaf.tobytes() for leaf in leaves(list(keys))}) == 20
    assert bit_equal(seed_keys([7, 3])[1], keys[3])
    assert bit_equal(keys[3], jax.random.key(3))


def test_agents_of_one_population_differ_in_numbers_only():
    stacked = stack_agents([with_lam(1.0), with_lam(2.0)])
    assert stacked.lam.tolist() == [1, 2]
    others = [
        SentinelAgent(Support(0.0, 20.0, 11), k=3),
        SentinelAgent(Support(0.0, 21.0, 11), k=2),
        SentinelAgent(Support(0.0, 20.0, 11), k=2, epistemic=Expectation()),
        SentinelAgent(Support(0.0, 20.0, 11), k=2, prefer="outliers"),
    ]
    for other in others:
        with pytest.raises(ValueError, match="may differ in numbers only"):
            stack_agents([SentinelAgent(Support(0.0, 20.0, 11), k=2), other])
    alphas = stack_agents([SentinelAgent(Support(0.0, 20.0, 11), epistemic=CVaR(a)) for a in (0.1, 0.5)])
    np.testing.assert_allclose(alphas.epistemic.alpha, [0.1, 0.5])


def test_asking_for_all_cores_too_late_is_ignored():
    before = jax.local_devices()
    use_all_cores()
    assert jax.local_devices() == before


def test_one_run_is_taken_from_many_devices_without_a_program_that_spans_them():
    """Such programs wait for each other's parts, and with two threads two of them wait for ever."""
    program = """
import os, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_num_cpu_devices", 2)
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sentinel_rl.training.population import take_run
place = NamedSharding(Mesh(np.asarray(jax.devices()), ("runs",)), PartitionSpec("runs"))
runs = {"x": jnp.arange(8.0).reshape(4, 2), "key": jax.random.split(jax.random.key(0), 4)}
spread = jax.tree.map(lambda leaf: jax.device_put(leaf, place), runs)
for i in range(4):
    one = take_run(spread, i)
    assert len(one["x"].sharding.device_set) == len(one["key"].sharding.device_set) == 1
    assert np.array_equal(one["x"], runs["x"][i])
    assert np.array_equal(jax.random.key_data(one["key"]), jax.random.key_data(runs["key"][i]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
