"""Training goes on: `learn` again, load then learn, and run folders that are extended; the same bits either way."""

import dataclasses
import shutil
import signal
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.api.classes import Random, Sentinel, load_agent
from sentinel_rl.errors import CorruptError, IncompatibleError, Stopped, UsageError
from sentinel_rl.replay import Replay
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.trainer import train
from tests.faults.test_forged import forge, put
from tests.learners import OPTIONS
from tests.tiny import Box2D, tiny
from tests.training.pole import bit_equal
from tests.training.results import assert_same_folder

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1"
GYM = {"v_min": 0.0, "v_max": 6.0}


def replay(agent: Any) -> Replay:
    return agent.state.replay


@pytest.fixture(scope="module")
def in_two() -> Sentinel:
    """Trained for 60 steps, and then for 40 more."""
    return tiny(seed=5).learn(60).learn(40, reset_num_timesteps=False)


def test_two_calls_are_one_training(in_two: Sentinel):
    """Against one training in one go, with the schedules that the first call planned."""
    from sentinel_rl.training.compiled import Training

    agent = in_two.agent
    plan = dataclasses.replace(in_two._job(60, [5]).plan, steps=100, horizon=60)
    whole = Training([agent], in_two.env, plan, [5])
    for _ in whole.chunks():
        pass
    assert bit_equal(in_two.state, whole.agent_states()[0])
    assert in_two.num_timesteps == in_two.result.steps == 100
    assert in_two.result.table.end.tolist() == whole.history.table().end.tolist()
    np.testing.assert_array_equal(in_two.result.curves["loss"], whole.history.curves()["loss"])
    assert in_two.result.curves["steps"][-1] == 100


def test_a_callback_in_between_changes_nothing():
    """From the compiled loop to steps made in Python and back, in the middle of episodes."""
    agent = Random("MlpPolicy", "CartPole-v0", seed=5).learn(30)
    agent.learn(17, callback=lambda *_: True, reset_num_timesteps=False).learn(53, reset_num_timesteps=False)
    other = Random("MlpPolicy", "CartPole-v0", seed=5).learn(100)
    for one, two in zip(agent.result.table[:6], other.result.table[:6], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_saved_training_goes_on_bit_for_bit(in_two: Sentinel, tmp_path: Path):
    path = tiny(seed=5).learn(60).save(tmp_path / "half", include="training")
    loaded = Sentinel.load(path, env="CartPole-v0", include="training")
    assert loaded.num_timesteps == 60
    loaded.learn(40, reset_num_timesteps=False)
    assert bit_equal(loaded.state, in_two.state)
    assert loaded.result.table.end.tolist() == in_two.result.table.end.tolist()
    acting = load_agent(path)  # and it acts as any other policy does
    assert acting.predict(np.zeros(4))[0] in (0, 1)


def test_the_counter_begins_again_and_what_was_learnt_stays():
    agent = tiny(seed=5, capacity=64, monitor_dir=None).learn(60)
    before, moments = np.asarray(agent.state.online.weights[0]), jax.tree.leaves(agent.state.optimiser)
    agent.learn(30)
    assert agent.num_timesteps == agent.result.steps == 30
    assert agent.result.curves["steps"][-1] == 30
    assert int(replay(agent).newest) == 89, "the replay holds what was seen before, too"
    after = np.asarray(agent.state.online.weights[0])
    # One update after the warm-up: near to what was there, and not where it began.
    start = np.asarray(tiny(seed=5).state.online.weights[0])
    assert 0 < np.abs(after - before).max() < np.abs(after - start).max()
    (count,) = {int(leaf) for leaf in jax.tree.leaves(agent.state.optimiser) if leaf.ndim == 0}
    assert count == 4, "Adam's count goes on: three updates of the first training, one of this one"
    assert len(moments) == len(jax.tree.leaves(agent.state.optimiser))
    assert len(agent.result.table.end) == 0 or agent.result.table.end.max() <= 30


def test_random_numbers_are_not_drawn_twice():
    """A second training from the counter 0 sees other episodes than the first."""
    agent = Random("MlpPolicy", "CartPole-v0", seed=1).learn(200)
    first = agent.result.table.length.tolist()
    agent.learn(200)
    assert agent.result.table.length.tolist() != first


def test_gymnasium_goes_on_with_the_next_episode(tmp_path: Path):
    env = Box2D(length=7)
    agent = tiny(env, **GYM).learn(50)
    path = agent.save(tmp_path / "half", include="training")
    agent.learn(50, reset_num_timesteps=False)
    assert (agent.num_timesteps, env.total) == (100, 100)
    assert agent.result.table.length.sum() == 7 * 14, "seven whole episodes of each call"
    loaded = Sentinel.load(path, env=Box2D(length=7)).learn(50, reset_num_timesteps=False)
    for one, two in zip(*(jax.tree.leaves(each.state) for each in (loaded, agent)), strict=True):
        np.testing.assert_array_equal(one, two)  # the environment observes 0 or -0
    vector = gymnasium.vector.SyncVectorEnv([lambda: Box2D(length=7)] * 2)
    both = tiny(vector, **GYM).learn(30).learn(30, reset_num_timesteps=False)
    assert (both.num_timesteps, int(replay(both).newest)) == (60, 59)


def test_episodes_are_kept_over_calls(tmp_path: Path):
    agent = tiny(Box2D(), monitor_dir=tmp_path, **GYM).learn(20).learn(20)
    agent.learn(10, reset_num_timesteps=False)
    assert len((tmp_path / "monitor.csv").read_text().splitlines()) == 2 + 10


def test_files_without_their_training(tmp_path: Path, in_two: Sentinel):
    old = Sentinel.load(FIXTURES / "sentinel.zip", env="CartPole-v0")
    small = Sentinel.load(in_two.save(tmp_path / "small"), env="CartPole-v0")
    for agent in (old, small):
        weights = jax.tree.leaves(agent.state)
        with pytest.raises(UsageError, match=r"without optimiser and replay: save the agent with save\(path, include"):
            agent.learn(50)
        with pytest.raises(UsageError, match="the training cannot be saved"):
            agent.save(tmp_path / "none", include="training")
        assert bit_equal(weights, jax.tree.leaves(agent.state)), "nothing is lost"
    for file in (FIXTURES / "sentinel.zip", tmp_path / "small.zip"):
        with pytest.raises(IncompatibleError, match="without optimiser and replay"):
            Sentinel.load(file, include="training")
    with pytest.raises(UsageError, match="include is None or 'training', got 'all'"):
        in_two.save(tmp_path / "all", include="all")


@pytest.mark.parametrize("counter", ["t", "before", "horizon", "episode"])
@pytest.mark.parametrize("value", [-1, 10**12, "3", 2.5, None])
def test_counters_of_a_file_are_checked(counter: str, value: Any, in_two: Sentinel, tmp_path: Path):
    path = in_two.save(tmp_path / "whole", include="training")
    with pytest.raises(CorruptError, match=rf"training.{counter} must be a whole number"):
        load_policy(forge(path, tmp_path / "forged.zip", put(f"about.training.{counter}", value)))


def test_a_training_of_another_length_is_refused(in_two: Sentinel, tmp_path: Path):
    path = in_two.save(tmp_path / "whole", include="training")
    with pytest.raises(IncompatibleError, match="replay"):
        load_policy(forge(path, tmp_path / "forged.zip", put("about.training.t", 9)))


def go(folder: Path, steps: int, env: str = "CartPole-v0", callback: Any = (), **options: Any) -> Any:
    given = {"save_every": 20, "reports": False, "callbacks": callback, "folder": folder, "points": 10}
    return train("sentinel", env, steps, [4, 9], **given, **OPTIONS["sentinel"], learn_every=20, warmup=20, **options)


def test_a_finished_run_is_extended(tmp_path: Path):
    """In one piece, interrupted and resumed: the same folder; and epsilon is not raised again."""
    first = go(tmp_path / "run", 60)
    shutil.copytree(tmp_path / "run", tmp_path / "stopped")
    extended = go(tmp_path / "run", 120)
    assert (extended.steps, extended.curves["steps"].tolist()) == (120, [6 * i for i in range(1, 21)])
    found = status(tmp_path / "run")
    assert (found.state, found.configuration["plan"]["steps"], found.configuration["plan"]["horizon"]) == (
        "finished",
        120,
        60,
    )
    for run in range(2):
        ends = extended.table.of_run(run).end
        assert ends[ends <= 60].tolist() == first.table.of_run(run).end.tolist()
    plan = Plan(60, warmup=20)
    longer = dataclasses.replace(plan, steps=120, horizon=60)
    assert [float(longer.epsilon(jnp.int32(t))) for t in (0, 25, 60, 119)] == [
        float(plan.epsilon(jnp.int32(t))) for t in (0, 25, 60, 119)
    ]

    def stop(progress: Any) -> None:
        if progress.t == 80:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped, match="after 80 of 120 steps, and saved"):
        go(tmp_path / "stopped", 120, callback=stop)
    again = go(tmp_path / "stopped", 120)
    assert bit_equal(again.agent_states, extended.agent_states)
    assert_same_folder(tmp_path / "stopped", tmp_path / "run")
    with pytest.raises(UsageError, match="holds a finished run of this configuration"):
        go(tmp_path / "run", 120)
    with pytest.raises(UsageError, match=r"another configuration:(.|\n)*plan.steps +120 +100"):
        go(tmp_path / "run", 100)
    with pytest.raises(UsageError, match=r"another configuration:(.|\n)*agent.lam"):
        go(tmp_path / "run", 200, lam=0.5)
    assert status(tmp_path / "run").state == "finished", "refused before anything is touched"


def test_a_gymnasium_run_is_extended(tmp_path: Path):
    gymnasium.register("tests/Box2D-v0", "tests.tiny:Box2D")
    try:
        go(tmp_path / "run", 52, "tests/Box2D-v0", **GYM)
        shutil.copytree(tmp_path / "run", tmp_path / "killed")
        whole = go(tmp_path / "run", 90, "tests/Box2D-v0", **GYM)

        def kill(progress: Any) -> None:
            if progress.t == 80:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "killed", 90, "tests/Box2D-v0", callback=kill, **GYM)
        resumed = go(tmp_path / "killed", 90, "tests/Box2D-v0", **GYM)
        for one, two in zip(*map(jax.tree.leaves, (resumed.agent_states, whole.agent_states)), strict=True):
            np.testing.assert_array_equal(one, two)
        # Two steps of an episode that was cut off by the end of the first training, and one by that of the second.
        assert whole.table.length.sum() == 2 * (50 + 35)
    finally:
        gymnasium.registry.pop("tests/Box2D-v0")


def test_vectors_have_no_checkpoints_to_go_on_from(tmp_path: Path):
    def pair() -> Any:
        return gymnasium.make_vec("CartPole-v1", 2)

    options = {
        **OPTIONS["sentinel"],
        "learn_every": 20,
        "warmup": 20,
        "folder": tmp_path / "run",
        "v_min": 0,
        "v_max": 100,
    }
    train("sentinel", pair(), 40, [0], **options)
    with pytest.raises(UsageError, match="a vector of environments, of which there are no checkpoints"):
        train("sentinel", pair(), 80, [0], **options)
