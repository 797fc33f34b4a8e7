"""The familiar classes of all agents: one training each, and what users do with it; refusals."""

import json
import zipfile
from typing import Any

import gymnasium
import numpy as np
import pytest

from sentinel_rl import CDQN, UADQN, VDQN, Sentinel
from sentinel_rl.agents.catalog import AGENTS
from sentinel_rl.api.classes import LEARNERS, Learner, load_agent
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Estimates, Explanation
from tests.learners import OPTIONS, make

OBS = np.array([0.01, 0.2, -0.03, 0.1])
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
    return make(name, learn_every=20, warmup=10).learn_many(60, seeds=[1, 2])


def test_all_kinds_have_a_class():
    assert set(LEARNERS) == set(AGENTS)
    assert [LEARNERS[kind] for kind in ("sentinel", "cdqn", "vdqn", "uadqn")] == [Sentinel, CDQN, VDQN, UADQN]


def test_predictions_have_the_shape_of_what_is_seen(agents: list[Learner]):
    agent = agents[0]
    assert agent.num_timesteps == 60
    one, _ = agent.predict(OBS)
    many, _ = agent.predict(np.stack([OBS, OBS]))
    assert (np.shape(one), many.shape) == ((), (2,))
    assert one == agent.predict(OBS)[0], "a deterministic prediction repeats"
    assert set(np.ravel([agent.predict(np.stack([OBS] * 20), deterministic=False)[0] for _ in range(3)])) <= {0, 1}


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
    assert (loaded.seed, loaded.num_timesteps, loaded.options) == (2, 60, agents[1].options)
    assert loaded.assess(OBS).to_json() == agents[1].assess(OBS).to_json()
    other = Sentinel if name == "random" else LEARNERS["random"]
    with pytest.raises(IncompatibleError, match=f"of kind '{name}', not '{other.kind}'"):
        other.load(path)
    with pytest.raises(UsageError, match="no environment to learn in"):
        loaded.learn(10)


def test_a_gymnasium_environment_will_do(name: str):
    """Stepped from Python, with a callback: what stable-baselines3's do."""
    calls: list[int] = []
    agent = LEARNERS[name]("MlpPolicy", gymnasium.make("CartPole-v1"), **OPTIONS[name], **GRID.get(name, {}))
    with pytest.warns(SentinelWarning, match="0 updates"):
        agent.learn(5, callback=lambda local, _: calls.append(len(local["rewards"])))
    assert (calls, agent.num_timesteps) == ([1] * 5, 5)
    assert agent.action_space.n == 2


GRID = {kind: {"v_min": 0.0, "v_max": 100.0} for kind in ("sentinel", "cdqn")}


def test_unknown_options_are_refused(name: str):
    with pytest.raises(UsageError, match="unknown option zzz"):
        make(name, zzz=1)
    with pytest.raises(UsageError, match="unknown policy"):
        LEARNERS[name]("CnnPolicy", "CartPole-v0")


def test_only_sentinel_can_change_its_risk():
    assert [kind for kind, each in LEARNERS.items() if hasattr(each, "with_risk")] == ["sentinel"]
