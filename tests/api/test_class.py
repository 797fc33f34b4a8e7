"""The familiar class: exact steps, equal paths, files, populations and warnings."""

import io
import json
import zipfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from gymnasium import spaces

from sentinel_rl.api.classes import Sentinel, load_agent
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.risk import CVaR, Wang
from sentinel_rl.training import train
from tests.own import Gloomy
from tests.tiny import TINY, Box2D, tiny

STEPS = 300


def leaves_equal(one: Any, other: Any) -> bool:
    same = jax.tree.map(lambda a, b: bool(np.array_equal(np.asarray(a), np.asarray(b))), one, other)
    return all(jax.tree.leaves(same))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "logs"


@pytest.fixture(scope="module")
def trained(logs: Path) -> Sentinel:
    """A strict support: the paper's holds every return of CartPole, though fresh networks lose 2 % at its edge."""
    agent = tiny(seed=3, monitor_dir=logs, strict_support=True, verbose=1)
    with redirect_stdout(io.StringIO()) as printed:
        agent.learn(STEPS)
    (logs / "printed.txt").write_text(printed.getvalue())
    return agent


@pytest.fixture(scope="module")
def on_box() -> Sentinel:
    """Stopped by a callback, the second of two."""
    calls: list[int] = []
    stop = [lambda *_: calls.append(1), lambda *_: len(calls) < 120]
    return tiny(Box2D(), v_min=0.0, v_max=6.0).learn(STEPS, callback=stop)


@pytest.fixture(scope="module")
def saved(trained: Sentinel, tmp_path_factory: pytest.TempPathFactory):
    return trained.save(tmp_path_factory.mktemp("agent") / "pole")


def test_it_makes_the_steps_asked_for_or_those_before_a_callback_stops(trained: Sentinel, on_box: Sentinel):
    assert trained.num_timesteps == STEPS
    assert int(trained.state.replay.newest) == STEPS - 1
    assert on_box.num_timesteps == on_box.get_env().unwrapped.total == 120


def test_step_by_step_equals_compiled(trained: Sentinel, capsys: pytest.CaptureFixture[str]):
    """And it is said that a callback of every step leaves the compiled path, and what does not."""
    seen = []

    def watch(locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        seen.append((locals_["rewards"][0], locals_["dones"][0], locals_["infos"][0]))

    driven = tiny(seed=3).learn(STEPS, callback=watch)
    assert capsys.readouterr().err.count("leaves the compiled path: CartPole-v0 is stepped from Python") == 1
    assert leaves_equal(driven.state, trained.state)
    assert len(seen) == STEPS
    ends = [info for _, done, info in seen if done]
    assert sum(info["episode"]["l"] for info in ends) <= STEPS
    assert all(info["episode"]["r"] == info["episode"]["l"] for info in ends), "one point a step"


def test_nothing_is_said_of_a_callback_of_every_chunk_of_steps(capsys: pytest.CaptureFixture[str]):
    seen: list[int] = []
    train("sentinel", "CartPole-v0", STEPS, callbacks=lambda progress: seen.append(progress.t), **TINY)
    assert seen[-1] == STEPS
    assert "compiled path" not in capsys.readouterr().err


def test_what_is_no_callback_is_refused():
    with pytest.raises(UsageError, match=r"a callback is a function .* got 3"):
        tiny().learn(STEPS, callback=3)


def test_predictions_have_the_shape_of_what_is_seen(trained: Sentinel, on_box: Sentinel):
    single, state = trained.predict(np.zeros(4), state="kept")
    assert (np.shape(single), state) == ((), "kept")
    batch, _ = trained.predict(np.zeros((60, 4)))
    assert (batch.shape, batch.dtype) == ((60,), np.int64)
    assert np.shape(on_box.predict(np.zeros((2, 3)))[0]) == ()
    assert on_box.predict(np.zeros((7, 2, 3)))[0].shape == (7,)
    assert on_box.predict(np.zeros((7, 6)))[0].shape == (7,)


@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (0, 4), (1, 1, 4)])
def test_observations_of_another_shape_are_refused(trained: Sentinel, shape: tuple[int, ...]):
    with pytest.raises(UsageError, match=r"has the shape \(4,\), got"):
        trained.predict(np.zeros(shape))


def test_an_observation_with_nan_is_refused(trained: Sentinel):
    with pytest.raises(UsageError, match="holds nan"):
        trained.predict([0.0, np.nan, 0.0, 0.0])


def test_predictions_repeat_and_explore(trained: Sentinel):
    obs = np.random.default_rng(0).normal(size=(60, 4))
    greedy, _ = trained.predict(obs)
    trained.predict(obs, deterministic=False)
    np.testing.assert_array_equal(trained.predict(obs)[0], greedy)
    curious = tiny(epsilon_end=1.0)
    one, two = (curious.predict(obs, deterministic=False)[0] for _ in range(2))
    assert 0 < one.mean() < 1
    assert (one != two).any()


def test_actions_may_count_from_one(on_box: Sentinel):
    assert set(on_box.get_env().unwrapped.actions) == {1, 2, 3}
    why = on_box.assess(np.zeros((2, 3)))
    assert why.action == on_box.predict(np.zeros((2, 3)))[0]
    assert list(why.actions) == [1, 2, 3]
    assert on_box.action_space == spaces.Discrete(3, start=1)
    assert on_box.observation_space == Box2D.observation_space


def test_a_decision_is_explained(trained: Sentinel):
    why = trained.assess(np.zeros(4))
    assert why.probs.shape == (2, 2, 5)
    assert why.action == trained.predict(np.zeros(4))[0]
    assert json.loads(why.to_json())["measure"] == "cvar:0.25 o cvar:0.25"
    with pytest.raises(UsageError, match="one observation"):
        trained.assess(np.zeros((2, 4)))


def test_the_result_has_the_learning_curves(trained: Sentinel, on_box: Sentinel):
    curves, totals = trained.result.curves, trained.result.totals
    assert trained.result.seeds == [3]
    assert curves["return"].shape == curves["loss"].shape == (1, 200)
    assert curves["steps"][-1] == STEPS
    table = trained.result.table
    assert totals["episodes"][0] == len(table.reward)
    assert totals["return"][0] == pytest.approx(np.mean(table.reward))
    # Stopped after 24 episodes of 5 steps.
    assert (on_box.result.steps, on_box.result.totals["episodes"][0]) == (120, 24)
    assert tiny().result is None, "there is none before training"


def test_other_risk_needs_no_training(trained: Sentinel):
    other = trained.with_risk(aleatory="wang:0.1")
    assert (other.agent.aleatory, other.agent.epistemic) == (Wang(0.1), CVaR(0.25))
    assert other.state is trained.state
    assert trained.agent.aleatory == CVaR(0.25), "the first is untouched"
    np.testing.assert_array_equal(other.assess(np.zeros(4)).probs, trained.assess(np.zeros(4)).probs)
    with pytest.raises(UsageError, match="did you mean 'wang'"):
        trained.with_risk(aleatory="wng:0.1")


def test_a_saved_agent_comes_back(trained: Sentinel, saved):
    assert saved.suffix == ".zip"
    assert saved.stat().st_size < 50_000, "networks only, without the replay"
    assert not any("pkl" in name or "pickle" in name for name in zipfile.ZipFile(saved).namelist())
    loaded = Sentinel.load(saved)
    assert leaves_equal(loaded.state.online, trained.state.online)
    np.testing.assert_array_equal(loaded.assess(np.ones(4)).probs, trained.assess(np.ones(4)).probs)
    assert (loaded.num_timesteps, loaded.seed) == (STEPS, 3)
    assert loaded.options.items() >= trained.options.items()
    assert loaded.get_env() is None
    with pytest.raises(UsageError, match="no environment to learn in"):
        loaded.learn(10)


def test_options_of_every_kind_survive_a_file(tmp_path):
    agent = tiny(lam=float("inf"), aleatory=Wang(0.1), reward_range=(0.0, 2.0), encoder="mlp")
    loaded = Sentinel.load(agent.save(tmp_path / "agent.zip"))
    assert (loaded.agent.lam, loaded.agent.aleatory) == (float("inf"), Wang(0.1))
    assert (loaded.agent.support, loaded.agent.hidden) == (agent.agent.support, (4,))


def test_a_measure_of_ones_own_is_given_again_when_loading(tmp_path):
    agent = tiny(aleatory=Gloomy(0.3))
    with pytest.warns(SentinelWarning, match=r"cannot hold the risk measure of aleatory.*aleatory=Gloomy\(\.\.\.\)"):
        path = agent.save(tmp_path / "gloomy")
    with pytest.raises(UsageError, match=r"without the risk measure of aleatory: load it with aleatory="):
        Sentinel.load(path)
    loaded = Sentinel.load(path, aleatory=Gloomy(0.3))
    assert loaded.agent == agent.agent
    assert loaded.options.items() >= agent.options.items()
    observations = np.random.default_rng(0).normal(size=(60, 4))
    np.testing.assert_array_equal(loaded.predict(observations)[0], agent.predict(observations)[0])
    assert load_agent(path, aleatory=Gloomy(0.3)).agent.aleatory == Gloomy(0.3)
    with pytest.raises(UsageError, match="unknown option aleatry"):
        Sentinel.load(path, aleatry=Gloomy(0.3))


def test_a_saved_agent_remembers_how_its_world_counts(on_box: Sentinel, tmp_path):
    loaded = Sentinel.load(on_box.save(tmp_path / "box"))
    obs = np.full((2, 3), 0.1)
    assert loaded.predict(obs)[0] == on_box.predict(obs)[0]
    assert loaded.action_space == spaces.Discrete(3, start=1)
    assert loaded.observation_space.shape == (2, 3)


def test_files_that_do_not_fit_are_refused(saved, tmp_path):
    with pytest.raises(IncompatibleError, match=r"trained on CartPole-v0 \(4 numbers, 2 actions\).* has 3 and 2"):
        Sentinel.load(saved, env="sentinel/Toy-v0")
    foreign, truncated = tmp_path / "foreign.zip", tmp_path / "truncated.zip"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("policy.pth", b"torch")
    truncated.write_bytes(saved.read_bytes()[:-200])
    for path in (foreign, truncated):
        with pytest.raises(IncompatibleError, match=path.name):
            Sentinel.load(path)
    with pytest.raises(UsageError, match="there is no file"):
        Sentinel.load(tmp_path / "absent.zip")


def test_a_population_equals_its_seeds_alone(trained: Sentinel):
    family = tiny(seed=9)
    agents = family.learn_many(STEPS, seeds=[3, 4])
    assert [agent.seed for agent in agents] == [3, 4]
    assert [agent.num_timesteps for agent in agents] == [STEPS, STEPS]
    assert leaves_equal(agents[0].state.online, trained.state.online)
    assert not leaves_equal(agents[0].state.online, agents[1].state.online)
    assert family.num_timesteps == 0


def test_populations_need_jax(on_box: Sentinel):
    with pytest.raises(UsageError, match="needs an environment in JAX"):
        on_box.learn_many(100, seeds=range(2))
    with pytest.raises(UsageError, match="needs seeds"):
        tiny().learn_many(100, seeds=[])


def test_warnings_of_a_plan_that_teaches_nothing():
    with pytest.warns(SentinelWarning, match="epistemic risk has no effect"):
        tiny(k=1)
    tiny(k=1, epistemic="expectation")
    with pytest.raises(SentinelWarning, match="0 updates would be made in 15 steps"):  # an error in tests
        tiny().learn(15)


@pytest.mark.usefixtures("trained")
def test_episodes_are_written_down(logs: Path):
    head, columns, *rows = (logs / "monitor.csv").read_text().splitlines()
    assert json.loads(head[1:])["env_id"] == "CartPole-v0"
    assert columns.startswith("r,l,t")
    lengths = [int(row.split(",")[1]) for row in rows]
    assert 0 < sum(lengths) <= STEPS


@pytest.mark.usefixtures("trained")
def test_scalars_are_printed_when_asked_for(logs: Path):
    (line,) = (logs / "printed.txt").read_text().splitlines()
    assert line.startswith(f"step {STEPS}: ")
    for tag in ("rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/loss"):
        assert tag in line
    for part in ("support_clip_low", "support_clip_high", "aleatory", "epistemic", "composite"):
        assert f"risk/{part}" in line
