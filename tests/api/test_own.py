"""An agent and an environment of the user's own with the familiar class, by name and as instances."""

from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest

from sentinel_rl.api import Learner, learner_class, load_agent
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.explanation import Estimates
from tests.learners import PLAN, make
from tests.own import AGENT, ENV, Bandit, Coins, registered
from tests.tiny import tiny


@pytest.fixture(scope="module", autouse=True)
def _names() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture(scope="module")
def trained() -> Learner:
    return learner_class(AGENT)("MlpPolicy", ENV, **PLAN, optimism=2.0).learn(60)


def test_it_learns(trained: Learner):
    assert (trained.num_timesteps, type(trained).__name__, trained.kind) == (60, AGENT, AGENT)
    assert isinstance(trained.agent, Bandit)
    np.testing.assert_allclose(trained.state.values, [0.0, 1.0])
    assert trained.predict(np.zeros(1))[0] == 1
    assert np.isfinite(trained.result.curves["loss"][0, [19, 39, 59]]).all()


def test_it_explains_itself_with_the_names_of_the_actions(trained: Learner):
    why = trained.assess(np.zeros(1))
    assert isinstance(why, Estimates)
    assert why.action == 1
    assert "> take" in str(why)


def test_it_is_saved_and_loaded_by_its_name(trained: Learner, tmp_path):
    path = trained.save(tmp_path / "own")
    loaded = load_agent(path, env=ENV)
    assert (loaded.kind, loaded.agent, loaded.options) == (AGENT, trained.agent, trained.options)
    np.testing.assert_array_equal(loaded.state.values, trained.state.values)
    with pytest.raises(IncompatibleError, match=f"of kind '{AGENT}', not 'sentinel'"):
        tiny().load(path)


def test_the_class_needs_its_options_and_no_others():
    with pytest.raises(UsageError, match="unknown option optimsm: did you mean optimism"):
        learner_class(AGENT)("MlpPolicy", ENV, optimsm=1.0)
    with pytest.raises(UsageError, match="unknown agent 'tests-bandits': did you mean 'tests-bandit'"):
        learner_class("tests-bandits")


def test_an_environment_is_taken_as_an_instance_and_through_gymnasium(trained: Learner):
    direct = learner_class(AGENT)("MlpPolicy", Coins(prize=3.0), **PLAN).learn(60)
    np.testing.assert_allclose(direct.state.values, [0.0, 3.0])
    stepped = learner_class(AGENT)("MlpPolicy", gymnasium.make(ENV), **PLAN, optimism=2.0).learn(60)
    np.testing.assert_allclose(stepped.state.values, trained.state.values)


def test_the_librarys_agents_play_in_it():
    agent = make("random", ENV).learn(60)
    assert agent.assess(np.zeros(1)).labels == ["leave", "take"]
    assert set(agent.result.table.length) == {4}


def test_vectors_of_environments():
    """Two environments, one agent; the steps asked for are made although they are odd."""
    agent = learner_class(AGENT)("MlpPolicy", gymnasium.make_vec("CartPole-v1", num_envs=2), **PLAN)
    seen = []
    agent.learn(61, callback=lambda local, _: seen.append((local["rewards"].shape, len(local["infos"]))))
    assert agent.num_timesteps == 61
    assert set(seen) == {((2,), 2)}
    assert agent.get_env().num_envs == 2
    assert agent.predict(np.zeros((2, 4)))[0].shape == (2,)
    assert agent.result.curves["loss"].shape == (1, 61)
