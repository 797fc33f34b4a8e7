"""Files of version 0.1, made by it: policies and runs are read with the defaults of that version, and runs go on."""

import shutil
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from sentinel_rl.agents import options as agent_options
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.api import load_agent
from sentinel_rl.cli import verify
from sentinel_rl.cli.runs import read_run
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.risk import CVaR, Expectation
from sentinel_rl.storage.checkpoint import save
from sentinel_rl.storage.configuration import restored
from sentinel_rl.storage.run_folder import status
from sentinel_rl.training import legacy
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.evaluation import evaluate
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.keeper import Keeper
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.result import Result
from sentinel_rl.training.schedule import PLAN_OPTIONS, Every, Plan, make_plan
from sentinel_rl.training.session import Session
from sentinel_rl.training.trainer import train
from tests.storage.trees import assert_same
from tests.training.pole import AGENT, ENV, PLAN, bit_equal

FILES = Path(__file__).parents[1] / "fixtures" / "v0_1"
POLE = EnvSpec("CartPole-v1", 4, 2, reward_range=(1.0, 1.0), max_steps=500)
OBS = np.linspace(-1, 1, 20).reshape(5, 4) * 0.1
SIZES: dict[str, Any] = {"k": 2, "hidden": (4,), "capacity": 300, "samples": 16, "batch": 8, "preset": "paper"}

# Every field of every agent of version 0.1, as that version made it without options.
_REPLAY = {
    "gamma": 0.99,
    "learning_rate": 0.00025,
    "adam_eps": 1e-07,
    "samples": 100,
    "batch": 32,
    "capacity": 100_000,
    "target_every": 10,
    "time_limit": "terminal",
}
_MEMBERS = {
    "hidden": (32, 32, 128),
    "encoder": "separate",
    "draws": "own",
    "bootstrap_action": "online",
    "target_update": "copy",
    "aggregate": "belief",
    "divergence": "marginal_to_member",
    "prefer": "consensus",
    "mask": "bernoulli",
}
_VDQN = {
    "use_epsilon": False,
    "noise": 0.1,
    "risk": Expectation(),
    "acting": "step",
    "bootstrap": "greedy",
    "draws": 100,
    "hidden": (100,),
    "initial_sd": 0.017,
}
FIELDS: dict[str, dict[str, Any]] = {
    "sentinel": {
        **_REPLAY,
        **_MEMBERS,
        "k": 4,
        "epistemic": CVaR(0.25),
        "aleatory": CVaR(0.25),
        "lam": 1.0,
        "mask_rate": 1 / 3,
    },
    "cdqn": {
        **_REPLAY,
        **_MEMBERS,
        "k": 1,
        "epistemic": Expectation(),
        "aleatory": Expectation(),
        "lam": 0.0,
        "mask_rate": 1.0,
    },
    "vdqn": {**_REPLAY, **_VDQN},
    "vdqn-cvar": {**_REPLAY, **_VDQN, "risk": CVaR(0.25), "acting": "score", "bootstrap": "score"},
    "uadqn": {
        **_REPLAY,
        "use_epsilon": False,
        "quantiles": 50,
        "kappa": 1.0,
        "beta": 0.2,
        "aversion": 0.1,
        "anchor_noise": 1.0,
        "centring": "action",
        "evaluation": "risk",
        "gain": 3.0,
        "hidden": (256,),
    },
    "random": {"action": None, "gamma": 0.99},
}


def made(name: str, **typed: Any) -> Any:
    """The agent that a file of 0.1 stands for."""
    options = legacy.full_options(name, typed)
    return make_agent(name, POLE, **{key: value for key, value in options.items() if key not in PLAN_OPTIONS})


@pytest.mark.parametrize("name", FIELDS)
def test_the_defaults_are_those_of_that_version(name: str):
    agent = made(name)
    for field, value in FIELDS[name].items():
        assert getattr(agent, field) == value, field
    if name in ("sentinel", "cdqn"):
        assert (agent.support.low, agent.support.size) == (0.0, 51)
        assert agent.support.high == pytest.approx((1 - 0.99**500) / 0.01)


@pytest.mark.parametrize(("name", "warmup"), [("sentinel", 100), ("random", 0)])
def test_the_plan_is_that_of_that_version(name: str, warmup: int):
    plan = make_plan(1_000, {"warmup": 7}, legacy.full_options(name, {}))
    assert plan == Plan(1_000, Every(100), warmup, epsilon_start=1.0, epsilon_end=0.05, epsilon_fraction=0.25)
    options = {"samples": 16, "learn_every": 50, "epsilon_end": 0.2}
    typed = make_plan(1_000, {"warmup": 7}, legacy.full_options("sentinel", options))
    assert (typed.warmup, typed.learn, typed.epsilon_end) == (16, Every(50), 0.2)


def test_what_was_typed_counts():
    agent = made("sentinel", preset="literal", k=8, aleatory="wang:0.5")
    assert (agent.target_update, agent.bootstrap_action) == ("gradient", "target")
    assert (agent.k, str(agent.aleatory)) == (8, "wang:0.5")
    assert made("sentinel", preset="literal", target_update="copy").target_update == "copy"


def test_other_defaults_of_this_version_do_not_touch_files_of_that_one(monkeypatch: pytest.MonkeyPatch):
    before = load_policy(FILES / "sentinel.zip").agent
    monkeypatch.setitem(agent_options.READINGS, "sound", {"bootstrap_action": "member", "lam": 9.0, "gamma": 0.5})
    assert make_agent("sentinel", POLE).bootstrap_action == "member"
    assert load_policy(FILES / "sentinel.zip").agent == before


def test_the_first_runs_had_only_one_agent():
    assert legacy.request({"env": "CartPole-v1", "steps": 10, "seeds": [0], "options": {}})["agent"] == "sentinel"


def test_a_saved_agent_acts_and_explains_as_it_did():
    agent = load_agent(FILES / "sentinel.zip")
    assert agent.predict(OBS)[0].tolist() == [1, 1, 1, 0, 0]
    np.testing.assert_allclose(agent.assess(OBS[0]).value, [11.472152709960938, 11.619361877441406], rtol=1e-5)
    assert (agent.agent.k, agent.agent.hidden, agent.agent.capacity, agent.agent.lam) == (2, (4,), 200, 1.0)
    assert agent.handle.spec == resolve_env("CartPole-v1").spec


def test_an_agent_of_another_kind_acts_too():
    agent = load_agent(FILES / "vdqn-cvar.zip")
    assert agent.kind == "vdqn-cvar"
    assert (str(agent.agent.risk), agent.agent.acting, agent.agent.noise) == ("cvar:0.25", "score", 0.1)
    assert set(agent.predict(OBS)[0].tolist()) <= {0, 1}
    assert np.isfinite(agent.assess(OBS[0]).value).all()


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    return shutil.copytree(FILES / "finished", tmp_path / "finished")


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    return shutil.copytree(FILES / "unfinished", tmp_path / "unfinished")


def test_a_finished_run_can_be_evaluated(finished: Path):
    run = read_run(finished)
    assert (run.env, run.kind, run.seeds, run.request["steps"]) == ("CartPole-v1", "sentinel", [0, 1], 400)
    for agent in run.policies():
        assert agent.agent.capacity == 100
        played = evaluate(agent.agent, agent.state, agent.handle, 3)
        assert np.all(played.length > 0)
    training = run.training()
    Keeper(training, finished / "checkpoints", monitors=finished).resume()
    assert training.t == 400
    assert [len(training.history.table().of_run(run).run) for run in range(2)] == [15, 28]
    for policy, state in zip(run.policies(), training.agent_states(), strict=True):
        assert bit_equal(policy.state.online, state.online), "the checkpoint's last networks are the saved ones"


def test_a_finished_run_is_not_trained_again(finished: Path):
    options = {name: value for name, value in read_run(finished).request["options"].items() if name != "warmup"}
    with pytest.raises(UsageError, match="holds a finished run of this configuration"):
        train("sentinel", "CartPole-v1", 400, [0, 1], folder=finished, **restored(options))


def go_on(folder: Path, **options: Any) -> Result:
    return train("sentinel", "CartPole-v1", 20_000, seeds=[0, 1], folder=folder, reports=False, **SIZES, **options)


def monitored(seed: int) -> list[tuple[float, int]]:
    """The episodes that 0.1 wrote down, and where they ended."""
    rows = np.loadtxt(FILES / "unfinished" / f"seed_{seed}.monitor.csv", delimiter=",", skiprows=2)
    ends = np.cumsum(rows[:, 1].astype(int))
    return [(float(reward), int(end)) for reward, end in zip(rows[:, 0], ends, strict=True) if end <= 4_000]


def test_an_unfinished_run_goes_on_to_its_end(unfinished: Path):
    told: list[int] = []
    result = go_on(unfinished, callbacks=lambda progress: told.append(progress.t))
    assert told[:2] == [4_000, 6_000]
    assert result.steps == told[-1] == 20_000
    for run in range(2):
        table = result.table.of_run(run)
        before = monitored(run)
        assert list(zip(table.reward, table.end, strict=True))[: len(before)] == before
        np.testing.assert_array_equal(np.cumsum(table.length), table.end)
        assert np.all(np.diff(table.time) >= 0), "the clock goes on"
        assert np.isfinite(result.curves["loss"][run, 50:]).all()
        assert np.isnan(result.curves["loss"][run, :39]).all(), "0.1 kept no curves"
        discounted = np.isfinite(table.discounted)
        assert not discounted[: len(before)].any(), "nor what was discounted"
        assert discounted[len(before) + 1 :].all()
    assert status(unfinished).state == "finished"
    assert load_policy(unfinished / "policy_seed_1.zip").steps == 20_000


def test_what_is_gone_back_to_is_what_was_saved(unfinished: Path):
    training = read_run(unfinished).training()
    Keeper(training, unfinished / "checkpoints", monitors=unfinished).resume()
    with np.load(unfinished / "checkpoints" / "step_000004000" / "state.npz") as arrays:
        kept = [arrays[name] for name in arrays.files]
    (partial,) = [array for array in kept if array.shape == (2, 3)]
    going = training.history.state()
    np.testing.assert_array_equal(going["partial/reward"], partial[:, 0])
    np.testing.assert_array_equal(going["partial/length"], partial[:, 1])
    assert training.failures == {}
    restored_runs = [np.asarray(leaf) for leaf in _leaves(training.tree()["runs"])]
    expected = [array for array in kept if array is not partial]
    assert [array.shape for array in restored_runs] == [array.shape for array in expected]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(restored_runs, expected, strict=True))


def _leaves(tree: Any) -> list[Any]:
    leaves = jax.tree.leaves(tree)
    return [jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in leaves]


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"capacity": 301}, r"agent\.capacity +300 +301"), ({"epsilon_end": 0.1}, r"plan\.epsilon_end +0\.05 +0\.1")],
)
def test_another_configuration_is_refused(unfinished: Path, changed: dict[str, Any], what: str):
    with pytest.raises(UsageError, match=f"another configuration:\n(.|\n)*{what}"):
        train("sentinel", "CartPole-v1", 20_000, seeds=[0, 1], folder=unfinished, **{**SIZES, **changed})


@pytest.mark.slow
def test_it_ends_as_if_it_had_been_trained_by_this_version(unfinished: Path):
    """Bit for bit, where this machine computes as the one that made the files: then 0.1's steps are made again."""
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        verify.run(unfinished)
    except IncompatibleError:
        pytest.skip("this machine rounds in another way than the one that made the files")
    result = go_on(unfinished)
    whole = train("sentinel", "CartPole-v1", 20_000, seeds=[0, 1], reports=False, **SIZES)
    assert bit_equal(result.agent_states, whole.agent_states)
    np.testing.assert_array_equal(result.table.end, whole.table.end)


def earlier(training: Training | HostTraining, folder: Path) -> None:
    """Save a training as 0.1 did: without a history, its episodes beside the checkpoint."""
    keeper = Keeper(training, folder / "checkpoints", monitors=folder)
    tree = keeper._tree()
    history = tree.pop("history")
    if isinstance(training, Training):
        sums = history["partial/reward"], history["partial/length"], tree.pop("failed")
        tree["partial"] = np.stack([np.asarray(part, np.float64) for part in sums], axis=1)
    keeper.write_monitors()
    save(folder / "checkpoints", training.t, tree, keeper.about)


def compiled() -> Training:
    return Training([AGENT] * 2, ENV, PLAN, [4, 9])


def stepped() -> HostTraining:
    return HostTraining(AGENT, resolve_env(gymnasium.make("CartPole-v1")), PLAN, 3)


@pytest.mark.parametrize("begin", [compiled, stepped])
def test_checkpoints_without_a_history_are_resumed(begin: Any, tmp_path: Path):
    whole, first = begin(), begin()
    Session([whole]).run()
    end = int(whole.history.table().end[0]) if begin is stepped else 40  # an episode's, where that is needed
    for _ in first.chunks(end=end):
        pass
    earlier(first, tmp_path)
    again = begin()
    Session([again], keepers=[Keeper(again, tmp_path / "checkpoints", monitors=tmp_path)]).run()
    part = "state" if begin is stepped else "runs"
    assert_same(again.tree()[part], whole.tree()[part])
    for column in ("run", "reward", "length", "terminated", "end"):
        np.testing.assert_array_equal(getattr(again.history.table(), column), getattr(whole.history.table(), column))


def test_a_run_that_had_failed_is_known(tmp_path: Path):
    training = compiled()
    next(training.chunks(40))
    training.failures[1] = "it is ill"
    earlier(training, tmp_path)
    again = compiled()
    Keeper(again, tmp_path / "checkpoints", monitors=tmp_path).resume()
    assert again.failures == {1: "seed 9 had failed before step 40"}


def test_lost_episodes_are_warned_about(tmp_path: Path):
    training = compiled()
    next(training.chunks(40))
    earlier(training, tmp_path)
    (tmp_path / "seed_4.monitor.csv").unlink()
    again = compiled()
    with pytest.warns(SentinelWarning, match="the episodes before step 40 are lost, training goes on"):
        Session([again], keepers=[Keeper(again, tmp_path / "checkpoints", monitors=tmp_path)]).run()
    assert again.t == PLAN.steps
    assert len(again.history.table().of_run(1).run) == len(_whole_table().of_run(1).run)


def _whole_table() -> Any:
    whole = compiled()
    Session([whole]).run()
    return whole.history.table()
