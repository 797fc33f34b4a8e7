"""The familiar classes of all agents: one training each, and what users do with it; refusals."""

import contextlib
import json
import zipfile
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from sentinel_rl import CDQN, UADQN, VDQN, Random, Sentinel, VDQNCVaR
from sentinel_rl.agents.registry import agent_names
from sentinel_rl.api.classes import LEARNERS, Learner, learner_class, load_agent
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Estimates, Explanation
from sentinel_rl.replay import Replay
from sentinel_rl.training.evaluation import evaluate
from tests.learners import OPTIONS, PLAN, make
from tests.tiny import Box2D

OBS = np.array([0.01, 0.2, -0.03, 0.1])
# A batch of one size everywhere: another size is another program.
BATCH = np.random.default_rng(0).normal(size=(60, 4)) * [1.0, 1.0, 0.1, 1.0]
# What can be told of an action, and words of the note on what cannot.
TOLD: dict[str, tuple[type[Any], set[str], str]] = {
    "sentinel": (Explanation, {"probs", "weights", "aleatory_penalty", "epistemic_penalty"}, ""),
    "cdqn": (Explanation, {"probs", "aleatory_penalty"}, "aleatory only"),
    "vdqn": (Estimates, {"draws", "mean", "epistemic_sd", "aleatory_sd"}, "constant noise"),
    "vdqn-cvar": (Estimates, {"draws", "mean", "epistemic_sd", "aleatory_sd"}, "constant noise"),
    "uadqn": (Estimates, {"mean", "epistemic_sd", "aleatory_sd"}, "no laws of the return"),
    "random": (Estimates, {"probability"}, "nothing is learnt"),
}


@pytest.fixture(scope="module", params=LEARNERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def agents(name: str) -> list[Learner]:
    """Two seeds at once."""
    return make(name).learn_many(60, seeds=[1, 2])


def test_all_kinds_have_a_class():
    assert set(LEARNERS) <= set(agent_names())
    assert list(LEARNERS.values()) == [Sentinel, CDQN, VDQN, VDQNCVaR, UADQN, Random]
    assert [learner_class(kind) for kind in LEARNERS] == list(LEARNERS.values())
    assert [each.kind for each in LEARNERS.values()] == list(LEARNERS) == list(OPTIONS)


def test_predictions_have_the_shape_of_what_is_seen(name: str, agents: list[Learner]):
    agent = agents[0]
    assert agent.num_timesteps == 60
    one, _ = agent.predict(OBS)
    many, _ = agent.predict(BATCH)
    assert (np.shape(one), many.shape) == ((), (60,))
    if name != "random":
        assert one == agent.predict(OBS)[0], "a deterministic prediction repeats"
    assert set(np.ravel([agent.predict(BATCH, deterministic=False)[0] for _ in range(3)])) <= {0, 1}


def test_what_is_explained_is_what_is_done(name: str, agents: list[Learner]):
    """At sixty observations, alone and in a batch, wherever they stand in it."""
    agent = make("random", action=1) if name == "random" else agents[0]
    together, _ = agent.predict(BATCH)
    explained = [agent.assess(obs).action for obs in BATCH]
    np.testing.assert_array_equal(together, explained)
    np.testing.assert_array_equal(agent.predict(BATCH[::-1])[0], together[::-1])
    np.testing.assert_array_equal([agent.predict(obs)[0] for obs in BATCH[:5]], together[:5])


def test_every_agent_has_the_curves_of_all_runs(name: str, agents: list[Learner]):
    result = agents[0].result
    assert result is agents[1].result
    assert (result.seeds, result.steps, result.failures) == ([1, 2], 60, {})
    assert result.curves["return"].shape == (2, 60), "a point for every step where there are few"
    assert (result.curves["terminations"][:, -1] == result.totals["terminations"]).all()
    assert result.totals["episodes"].sum() == len(result.table.reward) > 0
    if name != "random":
        assert np.isfinite(result.curves["loss"][:, [19, 39, 59]]).all(), "an update every 20 steps"


def test_a_decision_is_told_with_what_cannot_be(name: str, agents: list[Learner]):
    kind, fields, note = TOLD[name]
    why = agents[0].assess(OBS)
    assert isinstance(why, kind)
    content = json.loads(why.to_json())
    assert fields <= set(content)
    assert note in str(why)
    assert content.get("note", "") == why.note
    assert (len(why.value), why.actions) == (2, range(2))
    assert str(why).count(">") == 1
    if name != "random":
        assert np.isfinite(why.value).all()
    with pytest.raises(UsageError, match="one observation"):
        agents[0].assess(np.stack([OBS, OBS]))


def test_pictures_are_drawn(agents: list[Learner], tmp_path):
    agents[0].assess(OBS).plot(tmp_path / "why.png")
    assert (tmp_path / "why.png").stat().st_size > 1_000


def test_a_saved_agent_comes_back_as_what_it_is(name: str, agents: list[Learner], tmp_path):
    path = agents[1].save(tmp_path / "agent")
    assert "replay" not in str(zipfile.ZipFile(path).namelist())
    loaded = load_agent(path)
    assert type(loaded) is LEARNERS[name]
    assert (loaded.seed, loaded.num_timesteps) == (2, 60)
    assert loaded.options.items() >= agents[1].options.items()
    assert loaded.assess(OBS).to_json() == agents[1].assess(OBS).to_json()
    replays = [leaf for leaf in jax.tree.leaves(loaded.state, is_leaf=_is_replay) if _is_replay(leaf)]
    assert replays == [], "acting needs none"
    other = Sentinel if name == "random" else LEARNERS["random"]
    with pytest.raises(IncompatibleError, match=f"of kind '{name}', not '{other.kind}'"):
        other.load(path)
    with pytest.raises(UsageError, match="no environment to learn in"):
        loaded.learn(10)


def _is_replay(leaf: Any) -> bool:
    return isinstance(leaf, Replay)


# The agents share the path; stable-baselines3's callbacks see the others in `tests/clients`.
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in ("sentinel", "random") else pytest.mark.slow) for each in LEARNERS],
    scope="module",
)
def test_a_gymnasium_environment_will_do(name: str):
    """Stepped from Python, with a callback: what stable-baselines3's do."""
    calls: list[int] = []
    agent = LEARNERS[name]("MlpPolicy", gymnasium.make("CartPole-v1"), **OPTIONS[name], **GRID.get(name, {}), **PLAN)
    # A policy that learns nothing is not told so.
    with contextlib.nullcontext() if name == "random" else pytest.warns(SentinelWarning, match="0 updates"):
        agent.learn(5, callback=lambda local, _: calls.append(len(local["rewards"])))
    assert (calls, agent.num_timesteps) == ([1] * 5, 5)
    assert agent.action_space.n == 2


GRID = {kind: {"v_min": 0.0, "v_max": 100.0} for kind in ("sentinel", "cdqn")}


def test_unknown_options_are_refused(name: str):
    with pytest.raises(UsageError, match="unknown option zzz"):
        make(name, zzz=1)
    with pytest.raises(UsageError, match="unknown policy"):
        LEARNERS[name]("LstmPolicy", "CartPole-v0")


def test_only_sentinel_can_change_its_risk():
    assert [kind for kind, each in LEARNERS.items() if hasattr(each, "with_risk")] == ["sentinel"]


def test_a_random_policy_draws_anew_with_every_call():
    agent = make("random", seed=4)
    drawn = [int(agent.predict(OBS)[0]) for _ in range(30)]
    assert set(drawn) == {0, 1}
    again = make("random", seed=4)
    assert [int(again.predict(OBS)[0]) for _ in range(30)] == drawn, "of its seed"
    assert set(agent.predict(np.stack([OBS] * 60))[0]) == {0, 1}
    constant = make("random", action=1)
    assert {int(constant.predict(OBS)[0]) for _ in range(30)} == {1}


def test_a_random_policy_is_evaluated_as_one():
    """Stepped from Python, where every decision is a call of its own."""
    world, agent = Box2D(), make("random", Box2D())
    evaluate(agent.agent, agent.state, world, episodes=6)
    assert set(world.actions) == {1, 2, 3}
