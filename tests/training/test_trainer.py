"""`train`: what comes out of it, on JAX and Gymnasium environments, by name and as instances, and what is refused."""

import contextlib
import csv
import dataclasses
import json
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import IncompatibleError, NumericalError, SentinelWarning, UsageError
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.evaluation import EVALUATION_SEED, evaluate_run
from sentinel_rl.training.job import Job, checked_plan
from sentinel_rl.training.metrics import Episodes, measure
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.trainer import run_job, train
from tests.training.conftest import JUDGED, PLAN, SEEDS, STEPS, Trained
from tests.training.mine import Greedy, Walk
from tests.training.pole import AGENT, ENV, NAME, SIZES, bit_equal
from tests.training.results import assert_same_result

GRID = np.arange(20, 241, 20)
TIMES = [100, 200, 240]


def episodes_of(played: Episodes, run: int) -> list[list[Any]]:
    return [np.asarray(field)[run].tolist() for field in played]


def test_every_array_has_the_runs_first(trained: Trained):
    result = trained.result
    assert (result.seeds, result.steps, result.failures) == (SEEDS, STEPS, {})
    assert result.curves["steps"].tolist() == GRID.tolist()
    told = {"return", "terminations", "loss", "clip_low", "clip_high", "aleatory", "epistemic", "composite"}
    assert set(result.curves) == told | {"steps"}
    assert {result.curves[name].shape for name in told} == {(2, 12)}
    assert {name: values.shape for name, values in result.totals.items()} == dict.fromkeys(
        ("terminations", "episodes", "return", "discounted", "tail"), (2,)
    )
    assert [np.shape(field) for field in result.episodes] == [(2, 3)] * 4
    assert result.evaluations[0].tolist() == TIMES
    assert [np.shape(field) for field in result.evaluations[1]] == [(2, 3, 3)] * 4
    assert len(result.best) == len(result.agents) == len(result.agent_states) == 2
    stacked = jax.tree.leaves(result.states)
    for run, state in enumerate(result.agent_states):
        assert bit_equal([leaf[run] for leaf in stacked], jax.tree.leaves(state))


def test_curves_are_those_of_the_episodes(trained: Trained):
    result = trained.result
    for run in range(2):
        table, fallen = result.table.of_run(run), 0
        rows = list(zip(table.end, table.reward, table.terminated, strict=True))
        for point, end in enumerate(GRID):
            here = [(reward, fell) for last, reward, fell in rows if end - 20 < last <= end]
            fallen += sum(fell for _, fell in here)
            mean = sum(reward for reward, _ in here) / len(here) if here else np.nan
            np.testing.assert_equal(result.curves["return"][run, point], mean)
            assert result.curves["terminations"][run, point] == fallen
        totals = {name: values[run] for name, values in result.totals.items()}
        assert (totals["episodes"], totals["terminations"]) == (len(rows), fallen)
        assert totals["return"] == pytest.approx(sum(table.reward) / len(rows))
        assert totals["discounted"] == pytest.approx(sum(table.discounted) / len(rows))
        assert totals["tail"] == pytest.approx(float(measure(_played(table), ["tail"])["tail"]))


def _played(table: Any) -> Episodes:
    return Episodes(table.reward, table.discounted, table.length, table.terminated)


def test_the_table_holds_every_step_once(trained: Trained):
    for run in range(2):
        table = trained.result.table.of_run(run)
        np.testing.assert_array_equal(np.cumsum(table.length), table.end)
        assert STEPS - 200 < table.end[-1] <= STEPS
        np.testing.assert_array_equal(table.reward, table.length)  # CartPole pays 1 a step
        np.testing.assert_allclose(table.discounted, (1 - 0.99**table.length) / 0.01)
        assert np.all(np.diff(table.time) >= 0)


def test_metrics_of_updates_are_means_since_the_point_before(trained: Trained):
    """An update every 20 steps and a point every 20: each point has one update, but the first, which is warm-up."""
    chunks: dict[int, list[np.ndarray]] = {}
    for progress in trained.told:
        if "loss" in progress.metrics:
            chunks.setdefault(len(progress.metrics["loss"]), []).append(progress.metrics["loss"])
    losses = np.concatenate(chunks[2] if 2 in chunks else chunks[1], axis=1)
    made = losses[:, np.isfinite(losses[0])].reshape(2, -1)
    curve = trained.result.curves["loss"]
    assert np.isnan(curve[:, 0]).all()
    np.testing.assert_array_equal(curve[:, 1:], made)


def test_reports_are_those_of_the_agents(trained: Trained):
    report = jax.jit(lambda agent, state: agent.report(state))
    for run, state in enumerate(trained.result.agent_states):
        for name, value in report(AGENT, state).items():
            assert trained.result.curves[name][run, -1] == pytest.approx(float(value), rel=1e-5, abs=1e-6), name


def test_the_final_evaluation_is_that_of_the_final_policies(trained: Trained):
    result = trained.result
    handle = resolve_env(ENV if result.handle.is_jax else gymnasium.make("CartPole-v1"))
    for run, (seed, state) in enumerate(zip(SEEDS, result.agent_states, strict=True)):
        played = evaluate_run(AGENT, state, handle, 3, EVALUATION_SEED, seed, 0.99)
        np.testing.assert_array_equal(played.length, result.episodes.length[run])
        np.testing.assert_allclose(played.discounted, result.episodes.discounted[run], rtol=1e-5)
    last = jax.tree.map(lambda field: np.asarray(field)[:, -1], result.evaluations[1])
    assert jax.tree.all(jax.tree.map(np.array_equal, last, result.episodes)), "the same episodes at the end"
    assert np.any(result.episodes.length[0] != result.episodes.length[1]), "every run has its own"


def test_the_best_policy_is_that_of_the_best_evaluation(trained: Trained):
    times, played = trained.result.evaluations
    means = np.mean(played.reward, axis=-1)
    handle = resolve_env(ENV if trained.result.handle.is_jax else gymnasium.make("CartPole-v1"))
    for run, best in enumerate(trained.result.best):
        first = int(np.argmax(means[run]))
        assert (best.step, best.score) == (times[first], means[run, first])
        state = AGENT.with_policy(best.policy)
        again = evaluate_run(AGENT, state, handle, 3, EVALUATION_SEED, SEEDS[run], 0.99)
        np.testing.assert_array_equal(again.length, played.length[run, first])


def test_diagnostics_are_means_over_the_decisions_of_the_final_evaluation(on_jax: Trained):
    told = on_jax.result.diagnostics
    assert told["actions"].shape == (2, 2)
    np.testing.assert_allclose(told["actions"].sum(axis=1), 1.0)
    assert {"aleatory", "epistemic", "differs_additive", "differs_neutral"} < set(told)


def test_neither_evaluations_nor_reports_nor_sinks_change_what_is_learnt(on_jax: Trained, on_gymnasium: Trained):
    plain = train(AGENT, ENV, STEPS, SEEDS, reports=False, progress=True, **PLAN)
    assert bit_equal(plain.agent_states, on_jax.result.agent_states)
    np.testing.assert_array_equal(plain.table.end, on_jax.result.table.end)
    assert set(plain.curves) == {"steps", "return", "terminations", "loss", "clip_low", "clip_high"}
    assert (plain.episodes, plain.evaluations, plain.best, plain.diagnostics) == (None, None, [], {})
    stepped = train(AGENT, gymnasium.make("CartPole-v1"), STEPS, SEEDS, reports=False, **PLAN)
    assert bit_equal(stepped.agent_states, on_gymnasium.result.agent_states)
    np.testing.assert_array_equal(stepped.table.end, on_gymnasium.result.table.end)


def test_a_name_stands_for_the_instance(on_jax: Trained):
    result = train("sentinel", NAME, STEPS, SEEDS, **JUDGED, **PLAN, **SIZES)
    assert_same_result(result, on_jax.result)
    assert result.handle.name == NAME


def test_the_paths_agree_on_a_jax_environment():
    """Stepped from Python, the same run has the same bits, episodes, curves and evaluations."""
    asked: Any = {"points": 12, "evaluate": 3, "evaluate_every": 80}
    whole = train(AGENT, ENV, STEPS, [9], save_every=80, **asked, **PLAN)
    job = Job([AGENT], resolve_env(ENV), checked_plan(STEPS, AGENT, PLAN), [9], 0.99, **asked)
    steps: list[int] = []
    stepped = run_job(job, save_every=80, on_step=lambda *happened: steps.append(1) is None)
    assert len(steps) == STEPS
    assert bit_equal(stepped.agent_states, whole.agent_states)
    assert set(stepped.curves) == set(whole.curves)
    for name in ("return", "terminations", "loss", "clip_low", "clip_high"):
        np.testing.assert_array_equal(stepped.curves[name], whole.curves[name], err_msg=name)
    for name in ("aleatory", "epistemic", "composite"):
        np.testing.assert_allclose(stepped.curves[name], whole.curves[name], rtol=1e-5, atol=1e-6, err_msg=name)
    assert stepped.evaluations[0].tolist() == whole.evaluations[0].tolist() == [80, 160, 240]
    for found, expected in ((stepped.episodes, whole.episodes), (stepped.evaluations[1], whole.evaluations[1])):
        for name in ("reward", "length", "terminated"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
        np.testing.assert_allclose(found.discounted, expected.discounted, rtol=1e-6)
    assert stepped.best[0].step == whole.best[0].step
    assert bit_equal(stepped.best[0].policy, whole.best[0].policy)
    with pytest.raises(UsageError, match="called after every step trains one seed at a time: give one seed"):
        run_job(dataclasses.replace(job, agents=[AGENT] * 2, seeds=[4, 9]), on_step=lambda *happened: True)


def test_progress_is_told_after_every_chunk(on_jax: Trained, on_gymnasium: Trained):
    assert [progress.t for progress in on_jax.told] == [80, 100, 180, 200, 240]
    assert [progress.done for progress in on_jax.told] == [False] * 4 + [True]
    assert {tuple(progress.seeds) for progress in on_jax.told} == {tuple(SEEDS)}
    ends = [progress.t for progress in on_gymnasium.told if progress.seeds == [SEEDS[0]]]
    assert set(TIMES) <= set(ends)
    assert {tuple(progress.seeds) for progress in on_gymnasium.told} == {(4,), (9,)}


def test_sinks_are_told_and_closed(trained: Trained):
    lines = trained.sink.lines
    assert {seed for _, seed, _ in lines} == set(SEEDS)
    assert lines[-1][0] == STEPS
    assert trained.sink.closed == 1
    last = lines[-1][2]
    assert last["risk/composite"] == trained.result.curves["composite"][1, -1]
    assert last["rollout/ep_rew_mean"] == pytest.approx(np.mean(trained.result.table.of_run(1).reward))
    assert last["time/fps"] > 0
    assert {"train/loss", "risk/support_clip_low", "risk/support_clip_high"} <= set(last)


def test_a_folder_holds_the_run(trained: Trained):
    found = status(trained.folder)
    assert (found.state, found.result["steps"]) == ("finished", STEPS)
    assert [line["seed"] for line in found.result["seeds"]] == SEEDS
    assert found.result == json.loads(json.dumps({"steps": STEPS, "seeds": trained.result.lines()}))
    for run, seed in enumerate(SEEDS):
        lines = (trained.folder / f"seed_{seed}.monitor.csv").read_text().splitlines()[1:]
        written = list(csv.DictReader(lines))
        table = trained.result.table.of_run(run)
        assert [int(row["l"]) for row in written] == table.length.tolist()
        assert [row["terminated"] == "1" for row in written] == table.terminated.tolist()
        final = load_policy(trained.folder / f"policy_seed_{seed}.zip")
        best = load_policy(trained.folder / f"best_seed_{seed}.zip")
        assert bit_equal(final.state.online, trained.result.agent_states[run].online)
        assert bit_equal(best.state.online, trained.result.best[run].policy)
        assert (final.steps, best.steps) == (STEPS, trained.result.best[run].step)
    with (trained.folder / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["seed"]), int(row["step"])) for row in rows] == [(s, t) for s in SEEDS for t in GRID]
    for name, curve in trained.result.curves.items():
        if name != "steps":
            found = [float(row[name]) if row[name] else np.nan for row in rows]
            np.testing.assert_allclose(found, curve.ravel(), rtol=1e-8, err_msg=name)


def test_a_finished_folder_is_refused_and_overwritten_on_request(on_gymnasium: Trained, tmp_path):
    with pytest.raises(UsageError, match="holds a finished run of this configuration"):
        train(AGENT, gymnasium.make("CartPole-v1"), STEPS, SEEDS, folder=on_gymnasium.folder, **JUDGED, **PLAN)
    for steps in (40, 60):
        train("random", NAME, steps, 1, folder=tmp_path / "run", overwrite=steps == 60)
        assert status(tmp_path / "run").result["steps"] == steps


def test_an_environment_and_an_agent_of_the_users_own(tmp_path):
    agent = Greedy(rate=0.5)
    with pytest.warns(SentinelWarning, match="Greedy has no registered name, and its policies are not saved"):
        result = train(agent, Walk(), 100, seeds=3, evaluate=4, evaluate_every=50, folder=tmp_path / "run", **PLAN)
    assert set(result.curves) == {"steps", "return", "terminations", "largest", "updates"}
    assert result.seeds == [0, 1, 2]
    assert result.curves["updates"][:, -1].tolist() == [4.0] * 3
    np.testing.assert_array_equal(result.states.updates, [4.0] * 3)
    assert set(result.diagnostics) == {"actions", "distance", "right"}
    np.testing.assert_allclose(result.diagnostics["right"], result.diagnostics["actions"][:, 1])
    paid, length = np.sign(result.episodes.reward), result.episodes.length  # one action always: 1 or -1 a step
    np.testing.assert_allclose(result.episodes.discounted, paid * (1 - 0.9**length) / 0.1, rtol=1e-5)
    assert not list((tmp_path / "run").glob("*.zip"))
    assert status(tmp_path / "run").configuration["agent"] == {"class": "tests.training.mine.Greedy", "rate": 0.5}
    best = agent.with_policy(result.best[0].policy)
    assert best.sums.shape == (2,)


def test_a_range_of_returns_can_be_given_where_gymnasium_does_not_tell_it():
    sizes = {**SIZES, "v_min": -100.0, "v_max": 0.0}
    result = train("sentinel", "Acrobot-v1", 60, seeds=1, **PLAN, **sizes)
    assert (result.agents[0].support.low, result.agents[0].support.high) == (-100.0, 0.0)
    assert np.isfinite(result.curves["loss"][0, [39, 59]]).all()
    with pytest.raises(UsageError, match="returns of Acrobot-v1 is not known: give v_min and v_max"):
        train("sentinel", "Acrobot-v1", 60, **SIZES)


def test_a_vector_of_environments():
    env = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    result = train(AGENT, env, 81, [4], evaluate=2, **PLAN)
    assert result.steps == 81
    assert np.isfinite(result.curves["loss"]).sum() == 3, "updates after 40, 60 and 80 steps"
    assert result.table.length.sum() <= 81
    assert [np.shape(field) for field in result.episodes] == [(1, 2)] * 4
    assert int(result.agent_states[0].replay.newest) == 80


def test_agents_may_differ_in_numbers(on_jax: Trained):
    other = dataclasses.replace(AGENT, gamma=0.5)
    result = train([AGENT, other], ENV, STEPS, SEEDS, reports=False, **PLAN)
    assert bit_equal(result.agent_states[0], on_jax.result.agent_states[0])
    assert not bit_equal(result.agent_states[1].online, on_jax.result.agent_states[1].online)
    assert result.agents == [AGENT, other]


def test_a_callback_that_returns_false_ends_the_training(on_jax: Trained, tmp_path):
    seen: list[int] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress.t)
        return progress.t < 100

    result = train(AGENT, ENV, STEPS, SEEDS, callbacks=[stop], folder=tmp_path / "run", **JUDGED, **PLAN)
    assert seen == [80, 100]
    assert result.steps == 100
    assert np.shape(result.episodes.reward) == (2, 3), "what there is is evaluated"
    np.testing.assert_array_equal(
        result.table.end, on_jax.result.table.end[on_jax.result.table.end <= 100], "up to there it is the same"
    )
    assert load_policy(tmp_path / "run" / "policy_seed_9.zip").steps == 100


def test_a_callback_ends_runs_that_come_one_after_the_other():
    result = train("random", gymnasium.make("CartPole-v1"), 50, [4, 9], callbacks=lambda progress: False)
    assert (result.seeds, result.steps) == ([4], 50)


ILL = dataclasses.replace(AGENT, learning_rate=float("inf"))


@pytest.mark.parametrize("env", ["jax", "gymnasium"])
def test_a_run_that_fails_is_noted_and_the_others_go_on(env, on_jax: Trained, on_gymnasium: Trained, tmp_path):
    place = ENV if env == "jax" else gymnasium.make("CartPole-v1")
    whole = on_jax if env == "jax" else on_gymnasium
    with pytest.warns(SentinelWarning, match="loss nan at step 60 of seed 4: .*go on"):
        result = train([ILL, AGENT], place, STEPS, SEEDS, folder=tmp_path / "run", **JUDGED, **PLAN)
    assert list(result.failures) == [4]
    assert bit_equal(result.agent_states[1], whole.result.agent_states[1])
    assert episodes_of(result.episodes, 1) == episodes_of(whole.result.episodes, 1)
    assert np.isnan(result.episodes.reward[0]).all(), "a run that failed is not judged"
    assert np.isnan(result.evaluations[1].reward[0]).all()
    assert episodes_of(result.evaluations[1], 1) == episodes_of(whole.result.evaluations[1], 1)
    assert result.best[0] is None
    assert result.best[1].step == whole.result.best[1].step
    names = sorted(path.name for path in (tmp_path / "run").glob("*.zip"))
    assert names == ["best_seed_9.zip", "policy_seed_9.zip"]
    lines = {line["seed"]: line for line in status(tmp_path / "run").result["seeds"]}
    assert "loss nan" in lines[4]["failed"]
    assert "failed" not in lines[9]


@pytest.mark.parametrize("env", [ENV, "gymnasium"])
def test_where_all_runs_fail_it_is_an_error(env):
    place = gymnasium.make("CartPole-v1") if env == "gymnasium" else env
    one_by_one = pytest.warns(SentinelWarning, match="seed 4") if env == "gymnasium" else contextlib.nullcontext()
    with one_by_one, pytest.raises(NumericalError, match="loss nan at step"):
        train(ILL, place, STEPS, SEEDS, **PLAN)


def test_another_environment_to_evaluate_in(on_jax: Trained):
    harder = CartPole(max_steps=5)
    result = train(AGENT, ENV, 40, [4], evaluate=3, evaluation_env=harder, **PLAN)
    assert result.episodes.length.tolist() == [[5, 5, 5]]
    played = train(AGENT, ENV, 40, [4], evaluate=2, evaluation_env=gymnasium.make("CartPole-v1"), **PLAN)
    assert np.shape(played.episodes.reward) == (1, 2)
    with pytest.raises(IncompatibleError, match=r"the agent was trained on CartPole-v0 .* but Acrobot-v1 has 6 and 3"):
        train(AGENT, ENV, 40, [4], evaluate=3, evaluation_env="Acrobot-v1", **PLAN)


def test_other_episodes_and_another_discount_of_the_evaluation(on_jax: Trained):
    result = train(AGENT, ENV, 40, [4], evaluate=3, evaluation_gamma=0.0, evaluation_seed=7, **PLAN)
    np.testing.assert_array_equal(result.episodes.discounted, [[1.0] * 3])
    np.testing.assert_array_equal(result.table.discounted, 1.0)
    again = train(AGENT, ENV, 40, [4], evaluate=3, **PLAN)
    np.testing.assert_array_equal(again.table.length, result.table.length)
    assert np.any(again.episodes.length != result.episodes.length)


class Alarmed(Greedy):
    """Warns of what it has seen."""

    def check(self, t: int, metrics: Any, state: Any) -> str | None:
        return f"{metrics['largest']:g} of {float(state().updates):g} updates after {t} steps"


def test_what_the_agent_warns_about_can_be_an_error():
    with pytest.warns(SentinelWarning, match=r"^\d+ of 3 updates after 80 steps") as warned:
        train(Alarmed(), Walk(), 160, SEEDS, save_every=80, **PLAN)
    assert len(warned) == 1, "once, although there are two runs and two chunks"
    with pytest.raises(UsageError, match="of 3 updates after 80 steps"):
        train(Alarmed(), Walk(), 160, SEEDS, save_every=80, strict=True, **PLAN)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((AGENT, ENV, 40, []), {}, "seeds of at least 0, each once, .* got none"),
        ((AGENT, ENV, 40, [3, 3]), {}, r"each once, .*\[3, 3\]"),
        ((AGENT, ENV, 40, [-1]), {}, "a seed must be a whole number from 0"),
        ((AGENT, ENV, 40), {"k": 4}, r"unknown option k: options of the agent go with its name, train\('sentinel'"),
        (([AGENT, AGENT], ENV, 40, [1]), {}, "there are 2 agents for 1 seeds: give one, or one per seed"),
        ((AGENT, ENV.spec, 40), {}, "training needs an environment, got EnvSpec"),
        ((AGENT, None, 40), {}, "an environment is needed to know its sizes, got None"),
        ((AGENT, ENV, 0), {}, "at least 1 step .*got steps=0"),
        ((AGENT, ENV, 400), {"evaluate": -1}, "evaluate is a number of episodes .*, got -1"),
        ((AGENT, ENV, 400), {"evaluate": 1, "evaluate_every": 0}, "evaluate_every one of steps, got 1 and 0"),
        ((AGENT, ENV, 400), {"evaluate_every": 10}, "evaluate_every=10 needs episodes: give evaluate=100"),
        ((AGENT, ENV, 40), {"learn_every": "often"}, "a number of steps of at least 1, or 'triangular', got 'often'"),
        (("sentinal", ENV, 40), {}, "unknown agent 'sentinal': did you mean 'sentinel'"),
        (("sentinel", "CartPol-v1", 40), {}, "unknown environment 'CartPol-v1': did you mean 'CartPole-v1'"),
        (("sentinel", ENV, 40), {"kk": 4}, r"unknown option kk: did you mean k\?"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: Any, options: Any, message: str):
    with pytest.raises(UsageError, match=message):
        train(*arguments, **options)


@pytest.mark.usefixtures("untyped")
def test_what_is_no_agent_is_refused():
    with pytest.raises(UsageError, match="object is no agent: it lacks init, act"):
        train(object(), ENV, 40)


def test_a_training_without_an_update_is_warned_about():
    with pytest.warns(SentinelWarning, match="0 updates would be made in 40 steps: .* the warm-up of 50"):
        train(AGENT, ENV, 40, [4], reports=False, learn_every=20, warmup=50)
