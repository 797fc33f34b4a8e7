"""Much of everything: batch sizes, calls, seeds and environments hold their memory, and the clock may be set."""

import os
import re
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from sentinel_rl import Sentinel, train
from sentinel_rl.api import Random, choosing
from sentinel_rl.training import history
from tests.docs.pages import ROOT
from tests.training.pole import SIZES

OBS = np.random.default_rng(0).normal(0, 0.1, (3_000, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def agent():
    return Sentinel("MlpPolicy", "CartPole-v0", seed=1, **SIZES)


@pytest.mark.attack("batch-sizes")
def test_any_batch_size_compiles_a_bounded_number_of_programs(agent, attacks):
    choosing.greedy.clear_cache()
    alone = agent.predict(OBS[:37])[0]
    sizes = [*range(1, 31), 33, 37, 64, 100, 1_000, 1_500, 3_000]
    for size in sizes:
        np.testing.assert_array_equal(agent.predict(OBS[:size])[0][:37], alone[:size])
    assert choosing.greedy._cache_size() <= 11
    attacks(len(sizes))


@pytest.mark.attack("batch-sizes")
def test_drawn_actions_do_not_depend_on_the_batch(attacks):
    sizes = (1, 3, 8, 20, 1_030)
    drawn = [Random("MlpPolicy", "CartPole-v0", seed=3).predict(OBS[:size])[0] for size in sizes]
    for size, actions in zip(sizes, drawn, strict=True):
        np.testing.assert_array_equal(actions, drawn[-1][:size])
    assert 0.4 < drawn[-1].mean() < 0.6
    assert drawn[-1][1_024:].tolist() != drawn[-1][:6].tolist(), "another block, other draws"
    attacks(len(sizes))


def grown(work, times):
    """The Python memory that repeating some work leaves behind, in bytes per call."""
    for _ in range(20):
        work()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(times):
        work()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / times


@pytest.mark.attack("long")
def test_assess_again_and_again_holds_its_memory(agent, attacks):
    assert grown(lambda: agent.assess(OBS[0]), 60) < 5_000, "bytes per call"
    attacks(60)


# In a process of its own, whose memory the kernel counts: tracing every call would take a quarter of an hour.
ASSESS = """
import sys
import numpy as np
from pathlib import Path
from sentinel_rl import Sentinel

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

agent = Sentinel("MlpPolicy", "CartPole-v0", seed=1, k=2, hidden=(32, 32), atoms=21, capacity=1_000)
obs = np.random.default_rng(0).normal(0, 0.1, (1_000, 4)).astype(np.float32)
for call in range(2_000):
    agent.assess(obs[call % 1_000])
before = resident()
for call in range(int(sys.argv[1])):
    agent.assess(obs[call % 1_000])
print(before, resident())
"""


@pytest.mark.attack("long")
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the kernel does not tell")
def test_a_hundred_thousand_assessments(attacks):
    told = subprocess.run([sys.executable, "-c", ASSESS, "100000"], capture_output=True, text=True, check=True)
    before, after = map(int, told.stdout.split())
    print(f"100,000 calls of assess: {before / 2**20:.1f} MB before, {after / 2**20:.1f} MB after")
    assert after - before < 10 * 2**20
    attacks(100_000)


@pytest.mark.attack("long")
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not tell")
@pytest.mark.parametrize("options", [(), ("--env", "MountainCar-v0")], ids=["compiled", "gymnasium"])
def test_a_long_training_holds_its_memory(options, attacks):
    """For a minute, or as many as SENTINEL_LONG_MINUTES says."""
    minutes = os.environ.get("SENTINEL_LONG_MINUTES", "1")
    script = [sys.executable, ROOT / "benchmarks" / "long_training.py", "--minutes", minutes, *options]
    told = subprocess.run(list(map(str, script)), capture_output=True, text=True, check=True)
    print(told.stdout)
    (gained,) = re.findall(r"second half: ([-+.\d]+) MB", told.stdout)
    assert float(gained) < 20
    attacks(1)


@pytest.mark.attack("long")
@pytest.mark.slow
def test_a_thousand_seeds(attacks):
    tiny = {"k": 1, "hidden": (4,), "atoms": 5, "samples": 4, "batch": 4, "capacity": 32, "epistemic": "expectation"}
    result = train("sentinel", "CartPole-v0", 200, seeds=1_000, learn_every=50, warmup=20, reports=False, **tiny)
    assert (len(result.agent_states), len(result.failures)) == (1_000, 0)
    attacks(1_000)


@pytest.mark.attack("long")
@pytest.mark.slow
def test_fifty_gymnasium_environments_side_by_side(attacks):
    vector = gymnasium.make_vec("MountainCar-v0", num_envs=50, vectorization_mode="sync")
    result = train("random", vector, 20_000)
    assert result.steps == 20_000
    assert result.table.length.max() == 200
    attacks(50)


@pytest.mark.attack("clock")
def test_the_clock_set_back_and_forth_does_no_harm(monkeypatch, attacks):
    """Only the header of a monitor asks the clock on the wall."""
    jumps = iter([1e9, 2e9, 0.0, -1e6, 4e9, 1e9] * 10_000)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    result = train("random", gymnasium.make("MountainCar-v0"), 450)
    assert np.all(np.diff(result.table.time) >= 0)
    assert np.all((result.table.time >= 0) & (result.table.time < 600))
    attacks(6)


@pytest.mark.attack("clock")
def test_a_history_counts_seconds_of_its_own(monkeypatch):
    kept = history.History(1, 100, 10, 0.9)
    kept._begin(50.0)
    other = history.History(1, 100, 10, 0.9)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 0.0)
        other.restore(10, {**history.History(1, 100, 10, 0.9).state(), "elapsed": np.array(kept.elapsed)})
        assert 50 <= other.elapsed < 60


def test_a_policy_that_draws_is_repeated_by_its_seed():
    one, other = (Random("MlpPolicy", "CartPole-v0", seed=3) for _ in range(2))
    assert [one.predict(OBS[:5])[0].tolist() for _ in range(3)] == [
        other.predict(OBS[:5])[0].tolist() for _ in range(3)
    ]
